//! NPY files. A `bf16` array is stored as `u16`, since NumPy has no such type.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use exactile_core::ir::DType;
use npyz::{Endianness, NpyHeader, Order, TypeChar};

use crate::array::Array;
use crate::error::{Error, Result};

/// Reads an array. Fortran order and big-endian numbers are converted.
pub fn read(path: &Path) -> Result<Array> {
    let mut reader = BufReader::new(File::open(path).map_err(Error::file(path))?);
    let header = NpyHeader::from_reader(&mut reader)
        .map_err(|error| Error::format(path, format!("not an NPY file: {error}")))?;
    let (dtype, endianness) = data_type(path, &header)?;
    let shape = header
        .shape()
        .iter()
        .map(|&extent| usize::try_from(extent))
        .collect::<std::result::Result<Vec<_>, _>>()
        .map_err(|_| Error::format(path, format!("shape {:?} is too large", header.shape())))?;
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).map_err(Error::file(path))?;
    if endianness == Endianness::Big {
        for number in bytes.chunks_exact_mut(dtype.bytes() as usize) {
            number.reverse();
        }
    }
    if header.order() == Order::Fortran {
        bytes = row_major(dtype, &shape, &bytes);
    }
    Array::from_bytes(dtype, &shape, &bytes).map_err(|error| Error::format(path, error.to_string()))
}

fn data_type(path: &Path, header: &NpyHeader) -> Result<(DType, Endianness)> {
    let found = header.dtype();
    let unsupported = || {
        Error::format(
            path,
            format!("data type `{}` is not supported", found.descr()),
        )
    };
    let npyz::DType::Plain(plain) = &found else {
        return Err(unsupported());
    };
    let dtype = match (plain.type_char(), plain.size_field()) {
        (TypeChar::Bool, 1) => DType::Bool,
        (TypeChar::Int, 1) => DType::I8,
        (TypeChar::Int, 2) => DType::I16,
        (TypeChar::Int, 4) => DType::I32,
        (TypeChar::Int, 8) => DType::I64,
        (TypeChar::Uint, 1) => DType::U8,
        (TypeChar::Uint, 2) => DType::U16,
        (TypeChar::Uint, 4) => DType::U32,
        (TypeChar::Uint, 8) => DType::U64,
        (TypeChar::Float, 2) => DType::F16,
        (TypeChar::Float, 4) => DType::F32,
        (TypeChar::Float, 8) => DType::F64,
        _ => return Err(unsupported()),
    };
    Ok((dtype, plain.endianness()))
}

/// Column-major bytes in row-major order; what is too short stays short.
fn row_major(dtype: DType, shape: &[usize], bytes: &[u8]) -> Vec<u8> {
    let size = dtype.bytes() as usize;
    let count = shape.iter().product::<usize>().min(bytes.len() / size);
    let mut sorted = Vec::with_capacity(count * size);
    for flat in 0..count {
        let (mut rest, mut position, mut stride) = (flat, 0, count);
        for &extent in shape.iter().rev() {
            stride /= extent;
            position += rest % extent * stride;
            rest /= extent;
        }
        sorted.extend_from_slice(&bytes[position * size..(position + 1) * size]);
    }
    sorted
}

/// Writes an array. The file appears complete or not at all.
pub fn write(path: &Path, array: &Array) -> Result<()> {
    write_atomically(path, |writer| {
        writer.write_all(&header_of(array))?;
        writer.write_all(array.bytes())
    })
}

/// The header of version 1.0: its length with the magic is a multiple of 64.
fn header_of(array: &Array) -> Vec<u8> {
    let kind = match array.dtype() {
        DType::Bool => "|b1",
        DType::I8 => "|i1",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::U8 => "|u1",
        DType::U16 | DType::BF16 => "<u2",
        DType::U32 => "<u4",
        DType::U64 => "<u8",
        DType::F16 => "<f2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
    };
    let extents: String = array
        .shape()
        .iter()
        .map(|extent| format!("{extent}, "))
        .collect();
    let mut text = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({extents}), }}");
    const PREFIX: usize = 10;
    while !(PREFIX + text.len() + 1).is_multiple_of(64) {
        text.push(' ');
    }
    text.push('\n');
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend_from_slice(&(text.len() as u16).to_le_bytes());
    header.extend_from_slice(text.as_bytes());
    header
}

/// Writes a file beside its final place and renames it, so that a reader never sees a part.
pub fn write_atomically(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<()> {
    let mut name = path
        .file_name()
        .ok_or_else(|| Error::format(path, "not the name of a file"))?
        .to_os_string();
    name.push(format!(".{}.partial", std::process::id()));
    let partial: PathBuf = path.with_file_name(name);
    let write = || {
        let mut writer = BufWriter::new(File::create(&partial)?);
        fill(&mut writer)?;
        writer.flush()?;
        drop(writer);
        fs::rename(&partial, path)
    };
    write().map_err(|source| {
        // The first error is the one to report; a partial file may not exist.
        let _ = fs::remove_file(&partial);
        Error::File {
            path: path.to_path_buf(),
            source,
        }
    })
}
