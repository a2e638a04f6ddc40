//! Views of buffers and slices with extents and strides, checked when they are made.

use exactile_core::ir::Number;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::bound::Bound;

use crate::buffer::Buffer;
use crate::error::{Error, Result};

/// Extents and strides, in elements, that stay inside a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extents<const RANK: usize> {
    /// How many elements along each axis, outermost first.
    pub extents: [usize; RANK],
    /// How far apart neighbours along each axis are.
    pub strides: [usize; RANK],
}

impl<const RANK: usize> Extents<RANK> {
    /// Row-major, without gaps.
    fn contiguous(extents: [usize; RANK]) -> Option<Self> {
        let mut strides = [1; RANK];
        for axis in (1..RANK).rev() {
            strides[axis - 1] = extents[axis].checked_mul(strides[axis])?;
        }
        Some(Self { extents, strides })
    }

    /// The least buffer length that holds every element.
    fn needed(&self) -> Option<usize> {
        if self.extents.contains(&0) {
            return Some(0);
        }
        let mut last = 0usize;
        for (&extent, &stride) in self.extents.iter().zip(&self.strides) {
            last = last.checked_add((extent - 1).checked_mul(stride)?)?;
        }
        last.checked_add(1)
    }

    fn check(layout: Option<Self>, extents: &[usize], len: usize) -> Result<Self> {
        layout
            .filter(|layout| layout.needed().is_some_and(|needed| needed <= len))
            .ok_or_else(|| {
                Error::Invalid(format!(
                    "a view of extents {extents:?} does not fit {len} elements"
                ))
            })
    }
}

/// What a view is one of.
#[derive(Clone, Copy, Debug)]
enum Viewed<'a, T> {
    Buffer(&'a Buffer<T>),
    /// The bytes of a slice.
    Slice(&'a [u8]),
}

/// What a view that writes is one of.
#[derive(Debug)]
enum ViewedMut<'a, T> {
    Buffer(&'a mut Buffer<T>),
    /// The bytes of a slice.
    Slice(&'a mut [u8]),
}

/// A buffer or a slice read as a tensor of rank `RANK`.
#[derive(Clone, Copy, Debug)]
pub struct TensorView<'a, T, const RANK: usize> {
    viewed: Viewed<'a, T>,
    pub(crate) layout: Extents<RANK>,
}

/// A buffer or a slice read and written as a tensor of rank `RANK`.
#[derive(Debug)]
pub struct TensorViewMut<'a, T, const RANK: usize> {
    viewed: ViewedMut<'a, T>,
    pub(crate) layout: Extents<RANK>,
}

impl<'a, T: Number, const RANK: usize> TensorView<'a, T, RANK> {
    /// The first numbers of a slice as a row-major tensor, for launches on the host. Nothing is copied.
    pub fn of_slice(numbers: &'a [T], extents: [usize; RANK]) -> Result<Self>
    where
        T: IntoBytes + Immutable,
    {
        let layout = Extents::check(Extents::contiguous(extents), &extents, numbers.len())?;
        let viewed = Viewed::Slice(numbers.as_bytes());
        Ok(Self { viewed, layout })
    }

    /// Numbers of a slice as a tensor with strides of the caller's choice, in elements; 0 repeats an axis.
    pub fn of_strided_slice(
        numbers: &'a [T],
        extents: [usize; RANK],
        strides: [usize; RANK],
    ) -> Result<Self>
    where
        T: IntoBytes + Immutable,
    {
        let layout = Some(Extents { extents, strides });
        let layout = Extents::check(layout, &extents, numbers.len())?;
        let viewed = Viewed::Slice(numbers.as_bytes());
        Ok(Self { viewed, layout })
    }

    pub(crate) fn memory(self) -> Bound<'a> {
        match self.viewed {
            Viewed::Buffer(buffer) => Bound::Read(buffer.device(), buffer.storage()),
            Viewed::Slice(bytes) => Bound::Slice(bytes),
        }
    }
}

impl<'a, T: Number, const RANK: usize> TensorViewMut<'a, T, RANK> {
    /// The first numbers of a slice as a row-major tensor that a kernel may write, for launches on the host. Nothing
    /// is copied.
    pub fn of_slice(numbers: &'a mut [T], extents: [usize; RANK]) -> Result<Self>
    where
        T: IntoBytes + FromBytes,
    {
        let layout = Extents::check(Extents::contiguous(extents), &extents, numbers.len())?;
        let viewed = ViewedMut::Slice(numbers.as_mut_bytes());
        Ok(Self { viewed, layout })
    }

    /// Numbers of a slice as a tensor that a kernel may write, with strides of the caller's choice, in elements.
    pub fn of_strided_slice(
        numbers: &'a mut [T],
        extents: [usize; RANK],
        strides: [usize; RANK],
    ) -> Result<Self>
    where
        T: IntoBytes + FromBytes,
    {
        let layout = Some(Extents { extents, strides });
        let layout = Extents::check(layout, &extents, numbers.len())?;
        let viewed = ViewedMut::Slice(numbers.as_mut_bytes());
        Ok(Self { viewed, layout })
    }

    pub(crate) fn memory(self) -> Bound<'a> {
        match self.viewed {
            ViewedMut::Buffer(buffer) => {
                let (device, storage) = buffer.parts_mut();
                Bound::ReadWrite(device, storage)
            }
            ViewedMut::Slice(bytes) => Bound::SliceMut(bytes),
        }
    }
}

impl<T: Number> Buffer<T> {
    /// The first elements as a row-major tensor.
    pub fn view<const RANK: usize>(
        &self,
        extents: [usize; RANK],
    ) -> Result<TensorView<'_, T, RANK>> {
        let layout = Extents::check(Extents::contiguous(extents), &extents, self.len())?;
        Ok(TensorView {
            viewed: Viewed::Buffer(self),
            layout,
        })
    }

    /// A tensor with strides of the caller's choice, in elements; 0 repeats an axis.
    pub fn view_strided<const RANK: usize>(
        &self,
        extents: [usize; RANK],
        strides: [usize; RANK],
    ) -> Result<TensorView<'_, T, RANK>> {
        let layout = Extents::check(Some(Extents { extents, strides }), &extents, self.len())?;
        Ok(TensorView {
            viewed: Viewed::Buffer(self),
            layout,
        })
    }

    /// The first elements as a row-major tensor that a kernel may write.
    pub fn view_mut<const RANK: usize>(
        &mut self,
        extents: [usize; RANK],
    ) -> Result<TensorViewMut<'_, T, RANK>> {
        let layout = Extents::check(Extents::contiguous(extents), &extents, self.len())?;
        Ok(TensorViewMut {
            viewed: ViewedMut::Buffer(self),
            layout,
        })
    }

    /// A tensor that a kernel may write, with strides of the caller's choice, in elements.
    pub fn view_strided_mut<const RANK: usize>(
        &mut self,
        extents: [usize; RANK],
        strides: [usize; RANK],
    ) -> Result<TensorViewMut<'_, T, RANK>> {
        let layout = Extents::check(Some(Extents { extents, strides }), &extents, self.len())?;
        Ok(TensorViewMut {
            viewed: ViewedMut::Buffer(self),
            layout,
        })
    }
}
