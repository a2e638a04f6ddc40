//! Views of buffers with extents and strides, checked when they are made.

use exactile_core::ir::Number;

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
                    "a view of extents {extents:?} does not fit a buffer of {len} elements"
                ))
            })
    }
}

/// A buffer read as a tensor of rank `RANK`.
#[derive(Clone, Copy, Debug)]
pub struct TensorView<'a, T, const RANK: usize> {
    pub(crate) buffer: &'a Buffer<T>,
    pub(crate) layout: Extents<RANK>,
}

/// A buffer read and written as a tensor of rank `RANK`.
#[derive(Debug)]
pub struct TensorViewMut<'a, T, const RANK: usize> {
    pub(crate) buffer: &'a mut Buffer<T>,
    pub(crate) layout: Extents<RANK>,
}

impl<T: Number> Buffer<T> {
    /// The first elements as a row-major tensor.
    pub fn view<const RANK: usize>(
        &self,
        extents: [usize; RANK],
    ) -> Result<TensorView<'_, T, RANK>> {
        let layout = Extents::check(Extents::contiguous(extents), &extents, self.len())?;
        Ok(TensorView {
            buffer: self,
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
            buffer: self,
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
            buffer: self,
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
            buffer: self,
            layout,
        })
    }
}
