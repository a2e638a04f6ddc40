//! NPY files. A `bf16` array is stored as `u16`, since NumPy has no such type.

mod header;

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use exactile::internals::{Contents, write_files};
use exactile::{Array, Error, Result};

use header::{Header, Refusal};

/// Reads an array. Fortran order and big-endian numbers are converted.
///
/// The file must be as long as its header says. What NumPy writes for other types than those of
/// [`DType`](exactile::DType) is an error.
pub fn read(path: &Path) -> Result<Array> {
    let mut file = File::open(path).map_err(Error::file(path))?;
    let header = Header::read(&mut file).map_err(|refusal| match refusal {
        Refusal::Read(source) => Error::file(path)(source),
        Refusal::Malformed(message) => Error::format(path, format!("not an NPY file: {message}")),
    })?;
    let mut array = numbers(path, file, &header)?;
    if header.big_endian {
        for number in array
            .bytes_mut()
            .chunks_exact_mut(header.dtype.bytes() as usize)
        {
            number.reverse();
        }
    }
    if header.fortran_order {
        return row_major(&array);
    }
    Ok(array)
}

/// The numbers in the order of the file. What has a length, which a pipe has not, is refused by it
/// before there is memory for its numbers.
fn numbers(path: &Path, mut file: File, header: &Header) -> Result<Array> {
    let (dtype, shape) = (header.dtype, &header.shape);
    let needed =
        Array::byte_count(dtype, shape).map_err(|error| Error::format(path, error.to_string()))?;
    let unequal = |found: u64| {
        Error::format(
            path,
            format!("shape {shape:?} of `{dtype}` needs {needed} bytes, found {found}"),
        )
    };
    let metadata = file.metadata().map_err(Error::file(path))?;
    if metadata.is_file() {
        let found = metadata.len().saturating_sub(header.bytes as u64);
        if found != needed as u64 {
            return Err(unequal(found));
        }
        let mut array = Array::zeros(dtype, shape)?;
        file.read_exact(array.bytes_mut())
            .map_err(Error::file(path))?;
        return Ok(array);
    }
    let mut bytes = Vec::new();
    let most = (needed as u64).saturating_add(1);
    file.take(most)
        .read_to_end(&mut bytes)
        .map_err(Error::file(path))?;
    if bytes.len() != needed {
        return Err(unequal(bytes.len() as u64));
    }
    Array::from_bytes(dtype, shape, &bytes)
}

/// The array whose numbers lie in column-major order in `array`.
fn row_major(array: &Array) -> Result<Array> {
    let (count, size) = (array.len(), array.dtype().bytes() as usize);
    let mut sorted = Array::zeros(array.dtype(), array.shape())?;
    for (flat, number) in sorted.bytes_mut().chunks_exact_mut(size).enumerate() {
        let (mut rest, mut position, mut stride) = (flat, 0, count);
        for &extent in array.shape().iter().rev() {
            stride /= extent;
            position += rest % extent * stride;
            rest /= extent;
        }
        number.copy_from_slice(&array.bytes()[position * size..][..size]);
    }
    Ok(sorted)
}

/// Writes an array. The file appears complete or not at all; see [`write_all`].
pub fn write(path: &Path, array: &Array) -> Result<()> {
    write_all(&[(path, array)])
}

/// Writes several arrays, so that all files appear complete, or none does and files that were there
/// before stay. Symbolic links are followed. Fifos and devices cannot wait: the arrays flow into them
/// when all files are ready, and before any appears.
pub fn write_all(arrays: &[(&Path, &Array)]) -> Result<()> {
    let fill = |array: &Array, writer: &mut dyn Write| {
        let header = Header {
            dtype: array.dtype(),
            big_endian: false,
            fortran_order: false,
            shape: array.shape().to_vec(),
            bytes: 0,
        };
        writer.write_all(&header.to_bytes())?;
        writer.write_all(array.bytes())
    };
    let fills: Vec<_> = arrays
        .iter()
        .map(|&(path, array)| (path, move |writer: &mut dyn Write| fill(array, writer)))
        .collect();
    let contents: Vec<Contents<'_>> = fills
        .iter()
        .map(|(path, fill)| Contents { path, fill })
        .collect();
    write_files(&contents)
}
