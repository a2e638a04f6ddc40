//! An array on the host whose data type and shape are known at run time only.

mod parts;

use exactile_core::ir::{DType, Literal, Number};

use crate::error::{Error, Result};
use crate::memory::HostMemory;

/// Numbers of one type in row-major order, with their extents.
///
/// ```
/// # use exactile::{Array, DType};
/// let x = Array::from_slice([2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.5])?;
/// let columns = x.slice(1, 1..)?.permute([1, 0])?;
/// assert_eq!(columns.to_string(), "[[2.0, 5.0],\n [3.0, 6.5]]");
/// assert_eq!(x.cast(DType::I64)?.to_vec::<i64>()?, [1, 2, 3, 4, 5, 6]);
/// # Ok::<(), exactile::Error>(())
/// ```
///
/// `clone` ends the process when memory is short, as that of a `Vec` does;
/// [`Comparable::to_array`](crate::Comparable::to_array) is an error then.
#[derive(Clone, Debug)]
pub struct Array {
    dtype: DType,
    shape: Vec<usize>,
    memory: HostMemory,
}

impl Array {
    /// Bytes of `shape` elements of `dtype`, if they can be addressed.
    pub fn byte_count(dtype: DType, shape: &[usize]) -> Result<usize> {
        shape
            .iter()
            .try_fold(dtype.bytes() as usize, |total, &extent| {
                total.checked_mul(extent)
            })
            .filter(|&total| isize::try_from(total).is_ok())
            .ok_or_else(|| Error::Invalid(format!("shape {shape:?} of `{dtype}` is too large")))
    }

    /// All zero.
    pub fn zeros(dtype: DType, shape: impl AsRef<[usize]>) -> Result<Self> {
        let shape = shape.as_ref();
        Ok(Self {
            dtype,
            shape: shape.to_vec(),
            memory: HostMemory::allocate(Self::byte_count(dtype, shape)?)?,
        })
    }

    /// An array from the bytes of its memory, `bool` as one byte each.
    pub fn from_bytes(dtype: DType, shape: impl AsRef<[usize]>, bytes: &[u8]) -> Result<Self> {
        let shape = shape.as_ref();
        if Self::byte_count(dtype, shape)? != bytes.len() {
            return Err(Error::Invalid(format!(
                "shape {shape:?} of `{dtype}` needs {} bytes, found {}",
                Self::byte_count(dtype, shape)?,
                bytes.len()
            )));
        }
        Ok(Self {
            dtype,
            shape: shape.to_vec(),
            memory: HostMemory::from_bytes(bytes)?,
        })
    }

    /// An array of numbers; their count must be the product of the extents.
    pub fn from_slice<T: Number>(shape: impl AsRef<[usize]>, numbers: &[T]) -> Result<Self> {
        let shape = shape.as_ref();
        if Self::byte_count(T::DTYPE, shape)? != size_of_val(numbers) {
            return Err(Error::ShapeMismatch {
                found: vec![numbers.len()],
                expected: shape.to_vec(),
            });
        }
        let mut array = Self::zeros(T::DTYPE, shape)?;
        write_numbers(numbers, array.bytes_mut());
        Ok(array)
    }

    /// The data type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The extents, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The memory.
    pub fn bytes(&self) -> &[u8] {
        self.memory.bytes()
    }

    /// The memory, to change.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.memory.bytes_mut()
    }

    /// The numbers, when `T` is their type.
    pub fn to_vec<T: Number>(&self) -> Result<Vec<T>> {
        self.expect_type::<T>()?;
        read_numbers(self.bytes())
    }
}

/// Copies numbers into memory that has room for exactly them.
pub(crate) fn write_numbers<T: Number>(numbers: &[T], bytes: &mut [u8]) {
    let size = T::DTYPE.bytes() as usize;
    for (slot, number) in bytes.chunks_exact_mut(size).zip(numbers) {
        number.write_to(slot);
    }
}

/// A copy of the numbers in memory.
pub(crate) fn read_numbers<T: Number>(bytes: &[u8]) -> Result<Vec<T>> {
    let size = T::DTYPE.bytes() as usize;
    let mut numbers = vec_with_room(bytes.len() / size)?;
    numbers.extend(bytes.chunks_exact(size).map(T::read_from));
    Ok(numbers)
}

/// An empty vector with room for `len` elements, or an error when the system has not so much memory.
pub(crate) fn vec_with_room<T>(len: usize) -> Result<Vec<T>> {
    let mut vec = Vec::new();
    vec.try_reserve_exact(len).map_err(|_| Error::Memory {
        bytes: len.saturating_mul(size_of::<T>()),
    })?;
    Ok(vec)
}

/// Element `index` of memory that holds numbers of `dtype`.
pub(crate) fn literal_at(dtype: DType, bytes: &[u8], index: usize) -> Literal {
    let size = dtype.bytes() as usize;
    let mut raw = [0; 8];
    raw[..size].copy_from_slice(&bytes[index * size..(index + 1) * size]);
    let bits = u64::from_le_bytes(raw);
    let is_bool = dtype == DType::Bool;
    let bits = if is_bool { u64::from(bits != 0) } else { bits };
    Literal::from_bits(dtype, bits)
}

#[cfg(target_endian = "big")]
compile_error!("memory is read in little-endian order");
