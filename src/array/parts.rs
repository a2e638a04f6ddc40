//! Other arrays of the elements of one: in another order, of a part, of another type; views of it; its text.

use std::fmt;
use std::ops::RangeBounds;

use exactile_core::ir::{DType, Literal, Number};
use exactile_core::launch::printed::number;
use exactile_core::semantics::cast;
use exactile_cranelift::StandardFloats;

use super::{Array, literal_at};
use crate::buffer::{Buffer, Storage};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::part::{Part, PartMut};
use crate::slices::{BufferSlice, BufferSliceMut, in_range};
use crate::tensor::{TensorView, TensorViewMut};

/// An array of more elements is shown without those in the middle of long axes.
const SHOWN: usize = 1000;

/// So many elements are shown at either end of an axis then.
const AT_ENDS: usize = 3;

impl Array {
    /// Of one number.
    pub fn full<T: Number>(shape: impl AsRef<[usize]>, number: T) -> Result<Self> {
        let mut array = Self::zeros(T::DTYPE, shape)?;
        array.fill(number)?;
        Ok(array)
    }

    /// Overwrites all elements with one number.
    ///
    /// # Errors
    /// The array is of another type.
    pub fn fill<T: Number>(&mut self, number: T) -> Result<()> {
        self.expect_type::<T>()?;
        for slot in self.bytes_mut().chunks_exact_mut(T::DTYPE.bytes() as usize) {
            number.write_to(slot);
        }
        Ok(())
    }

    /// The same, or an error when the system has not so much memory.
    pub fn try_clone(&self) -> Result<Self> {
        Self::from_bytes(self.dtype, &self.shape, self.bytes())
    }

    /// The numbers as those of another type, as [`to`](crate::prelude::Tile::to) converts them in a kernel.
    pub fn cast(&self, dtype: DType) -> Result<Self> {
        let _floats = StandardFloats::new();
        let mut array = Self::zeros(dtype, &self.shape)?;
        let size = dtype.bytes() as usize;
        for (index, slot) in array.bytes_mut().chunks_exact_mut(size).enumerate() {
            let literal = literal_at(self.dtype, self.bytes(), index);
            let bits = cast(self.dtype, dtype, literal.bits);
            slot.copy_from_slice(&bits.to_le_bytes()[..size]);
        }
        Ok(array)
    }

    /// The same elements in row-major order with other extents.
    ///
    /// # Errors
    /// They are those of more elements, or of fewer.
    pub fn reshape(mut self, shape: impl AsRef<[usize]>) -> Result<Self> {
        let shape = shape.as_ref();
        if Self::byte_count(self.dtype, shape)? != self.bytes().len() {
            return Err(Error::ShapeMismatch {
                found: self.shape,
                expected: shape.to_vec(),
            });
        }
        self.shape = shape.to_vec();
        Ok(self)
    }

    /// A copy with the axes in another order: axis `i` is `axes[i]` of this one.
    ///
    /// # Errors
    /// `axes` does not name each axis once.
    pub fn permute(&self, axes: impl AsRef<[usize]>) -> Result<Self> {
        let axes = axes.as_ref();
        let mut sorted = axes.to_vec();
        sorted.sort_unstable();
        if !sorted.into_iter().eq(0..self.shape.len()) {
            return Err(Error::Invalid(format!(
                "axes {axes:?} are no order of the axes of an array of rank {}",
                self.shape.len()
            )));
        }
        let strides = self.strides();
        let pick = |of: &[usize]| axes.iter().map(|&axis| of[axis]).collect::<Vec<_>>();
        self.gather(&pick(&self.shape), &pick(&strides), 0)
    }

    /// A copy of the part whose indices along `axis` are in a range.
    ///
    /// # Errors
    /// There is no such axis, or the range is not in its extent.
    pub fn slice(&self, axis: usize, range: impl RangeBounds<usize>) -> Result<Self> {
        let rank = self.shape.len();
        let extent = self.shape.get(axis).ok_or_else(|| {
            Error::Invalid(format!(
                "axis {axis} is out of range for an array of rank {rank}"
            ))
        })?;
        let (first, count) = in_range(&range, *extent)?;
        let mut shape = self.shape.clone();
        shape[axis] = count;
        let strides = self.strides();
        // Where it is too large, there is no element.
        self.gather(&shape, &strides, first.saturating_mul(strides[axis]))
    }

    /// How many elements apart neighbours along each axis are.
    fn strides(&self) -> Vec<usize> {
        let mut strides = vec![1_usize; self.shape.len()];
        for axis in (1..self.shape.len()).rev() {
            // Only one that never counts is larger than a memory.
            strides[axis - 1] = strides[axis].saturating_mul(self.shape[axis]);
        }
        strides
    }

    /// A copy of the elements at these strides from the one at `start`, all of which are there.
    fn gather(&self, shape: &[usize], strides: &[usize], start: usize) -> Result<Self> {
        let mut array = Self::zeros(self.dtype, shape)?;
        let size = self.dtype.bytes() as usize;
        let mut indices = vec![0; shape.len()];
        let mut place = start;
        for slot in array.bytes_mut().chunks_exact_mut(size) {
            slot.copy_from_slice(&self.bytes()[place * size..][..size]);
            for axis in (0..shape.len()).rev() {
                indices[axis] += 1;
                place += strides[axis];
                if indices[axis] < shape[axis] {
                    break;
                }
                indices[axis] = 0;
                place -= shape[axis] * strides[axis];
            }
        }
        Ok(array)
    }

    pub(super) fn expect_type<T: Number>(&self) -> Result<()> {
        if T::DTYPE == self.dtype {
            return Ok(());
        }
        Err(Error::DTypeMismatch {
            found: self.dtype,
            expected: T::DTYPE,
        })
    }

    fn extents<const RANK: usize>(&self) -> Result<[usize; RANK]> {
        let extents = <[usize; RANK]>::try_from(self.shape.as_slice());
        extents.map_err(|_| {
            Error::Invalid(format!(
                "a view of rank {RANK} of an array of extents {:?}",
                self.shape
            ))
        })
    }

    /// The array as a tensor that a kernel reads, for launches on the host. Nothing is copied.
    ///
    /// # Errors
    /// The array has another type or rank.
    pub fn view<T: Number, const RANK: usize>(&self) -> Result<TensorView<'_, T, RANK>> {
        self.expect_type::<T>()?;
        BufferSlice::of(Part::Slice(self.bytes())).view(self.extents()?)
    }

    /// The array as a tensor that a kernel may write, for launches on the host. Nothing is copied.
    ///
    /// # Errors
    /// The array has another type or rank.
    pub fn view_mut<T: Number, const RANK: usize>(&mut self) -> Result<TensorViewMut<'_, T, RANK>> {
        self.expect_type::<T>()?;
        let extents = self.extents()?;
        BufferSliceMut::of(PartMut::Slice(self.bytes_mut())).view_mut(extents)
    }

    /// The numbers on a device, in row-major order.
    ///
    /// # Errors
    /// The array is of another type, or there is not so much memory.
    pub fn to_buffer<T: Number>(&self, device: &Device) -> Result<Buffer<T>> {
        self.expect_type::<T>()?;
        let storage = Storage::from_bytes(device, self.bytes())?;
        Ok(Buffer::of_storage(device, storage, self.len()))
    }

    /// Writes the elements from one place on that have these extents.
    fn show(
        &self,
        f: &mut fmt::Formatter<'_>,
        [axis, first]: [usize; 2],
        strides: &[usize],
    ) -> fmt::Result {
        let Some(&extent) = self.shape.get(axis) else {
            let literal: Literal = literal_at(self.dtype, self.bytes(), first);
            return f.write_str(&number(literal));
        };
        let is_long = self.len() > SHOWN && extent > 2 * AT_ENDS;
        let hidden = match is_long {
            true => AT_ENDS..extent - AT_ENDS,
            false => 0..0,
        };
        f.write_str("[")?;
        for index in 0..extent {
            if hidden.contains(&index) && index > hidden.start {
                continue;
            }
            match (index, axis + 1 == self.shape.len()) {
                (0, _) => {}
                (_, true) => f.write_str(", ")?,
                (_, false) => write!(f, ",\n{:1$}", "", axis + 1)?,
            }
            match hidden.contains(&index) {
                true => f.write_str("..")?,
                false => self.show(f, [axis + 1, first + index * strides[axis]], strides)?,
            }
        }
        f.write_str("]")
    }
}

/// The numbers in nested brackets, each in few digits that name it alone; of a large array those at the ends of each axis.
impl fmt::Display for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_empty() {
            true => write!(f, "[] of extents {:?}", self.shape),
            false => self.show(f, [0, 0], &self.strides()),
        }
    }
}
