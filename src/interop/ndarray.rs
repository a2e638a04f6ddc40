//! Views of `ndarray` as arguments of launches on the host, and arrays as views of `ndarray`, without copies.
//!
//! ```
//! use exactile::interop::ndarray::{tensor, tensor_mut};
//! use exactile::prelude::*;
//! use ndarray::array;
//!
//! #[kernel]
//! fn double(x: Tensor<f32, 2>, out: TensorMut<f32, 2>) {
//!     let place = (0, 0);
//!     store(out.tile([2, 4]).at(place), load(x.tile([2, 4]).at(place)) * 2.0);
//! }
//!
//! let x = array![[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]];
//! let mut out = ndarray::Array2::zeros((2, 3));
//! let (x, doubled) = (x.t(), out.view_mut());
//! double().run(&Device::cpu(), 1, (tensor(&x)?, tensor_mut(doubled)?))?;
//! assert_eq!(out, array![[2.0, 6.0, 10.0], [4.0, 8.0, 12.0]]);
//! # Ok::<(), exactile::Error>(())
//! ```

use exactile_core::ir::Number;
use ndarray::{ArrayView, ArrayViewMut, Axis, Dim, Dimension, ShapeBuilder, StrideShape};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::bound::Bound;
use crate::error::{Error, Result};
use crate::part::{Part, PartMut};
use crate::pinned::PLACED;
use crate::slices::{BufferSlice, BufferSliceMut};
use crate::tensor::{Layout, TensorView, TensorViewMut};

/// A view as an argument of a launch on the host. Axes may have any order and run backwards.
///
/// # Errors
/// Other numbers lie between those of the view, or it repeats some.
pub fn tensor<'a, T, const RANK: usize>(
    view: &ArrayView<'a, T, Dim<[usize; RANK]>>,
) -> Result<TensorView<'a, T, RANK>>
where
    T: Number + IntoBytes + Immutable,
    Dim<[usize; RANK]>: Dimension,
{
    let layout = layout_of(view.shape(), view.strides())?;
    let numbers = view.to_slice_memory_order().ok_or_else(has_gaps)?;
    let memory = BufferSlice::of(Part::Slice(numbers.as_bytes()));
    Ok(TensorView::of_layout(memory, layout))
}

/// A view as an argument that a launch on the host may write.
///
/// # Errors
/// As for [`tensor`].
pub fn tensor_mut<'a, T, const RANK: usize>(
    view: ArrayViewMut<'a, T, Dim<[usize; RANK]>>,
) -> Result<TensorViewMut<'a, T, RANK>>
where
    T: Number + IntoBytes + FromBytes,
    Dim<[usize; RANK]>: Dimension,
{
    let layout = layout_of(view.shape(), view.strides())?;
    let numbers = view.into_slice_memory_order().ok_or_else(has_gaps)?;
    let memory = BufferSliceMut::of(PartMut::Slice(numbers.as_mut_bytes()));
    Ok(TensorViewMut::of_layout(memory, layout))
}

/// What lies between the numbers of a view may be another view's to write.
fn has_gaps() -> Error {
    let message = "other numbers lie between those of the view, or some repeat: pass a view of the whole array, and take the part \
                   of it by `slice` and `step` of the tensor";
    Error::Invalid(message.to_string())
}

/// In the numbers of a view without gaps.
fn layout_of<const RANK: usize>(extents: &[usize], strides: &[isize]) -> Result<Layout<RANK>> {
    let extents = <[usize; RANK]>::try_from(extents).ok();
    let strides = <[isize; RANK]>::try_from(strides).ok();
    let (extents, strides) = extents.zip(strides).ok_or_else(has_gaps)?;
    let axes = extents.into_iter().zip(strides);
    let backwards = axes.filter(|&(extent, stride)| extent > 1 && stride < 0);
    let start = backwards.map(|(extent, stride)| (extent - 1) * stride.unsigned_abs());
    let start = if extents.contains(&0) { 0 } else { start.sum() };
    Ok(Layout {
        extents,
        strides,
        start,
    })
}

/// A view of an array on the host as one of `ndarray`.
///
/// # Errors
/// The array is on a GPU. The first error of a launch that wrote it that nobody was told.
pub fn view<T, const RANK: usize>(
    tensor: TensorView<'_, T, RANK>,
) -> Result<ArrayView<'_, T, Dim<[usize; RANK]>>>
where
    T: Number + FromBytes + Immutable,
    Dim<[usize; RANK]>: Dimension,
{
    let (bound, layout) = tensor.bound();
    let bytes = match bound {
        Bound::Read(Part::Host(_, bytes, writers)) => {
            writers.tell()?;
            bytes
        }
        Bound::Read(Part::Slice(bytes)) => bytes,
        Bound::Read(Part::Gpu(..)) | Bound::ReadWrite(_) | Bound::Scalar(_) => {
            return Err(on_gpu());
        }
    };
    let numbers = <[T]>::ref_from_bytes(bytes).expect(PLACED);
    let view = ArrayView::from_shape(shape_of(&layout), numbers);
    let mut view = view.map_err(|error| Error::Invalid(error.to_string()))?;
    for axis in backwards(&layout) {
        view.invert_axis(axis);
    }
    Ok(view)
}

/// A view of an array on the host as one of `ndarray`, to write.
///
/// # Errors
/// The array is on a GPU, or elements of it repeat. The first error of a launch that wrote it that nobody was told.
pub fn view_mut<T, const RANK: usize>(
    tensor: TensorViewMut<'_, T, RANK>,
) -> Result<ArrayViewMut<'_, T, Dim<[usize; RANK]>>>
where
    T: Number + FromBytes + IntoBytes,
    Dim<[usize; RANK]>: Dimension,
{
    let (bound, layout) = tensor.bound();
    let bytes = match bound {
        Bound::ReadWrite(PartMut::Host(_, bytes, writers)) => {
            writers.tell()?;
            bytes
        }
        Bound::ReadWrite(PartMut::Slice(bytes)) => bytes,
        Bound::ReadWrite(PartMut::Gpu(..)) | Bound::Read(_) | Bound::Scalar(_) => {
            return Err(on_gpu());
        }
    };
    let numbers = <[T]>::mut_from_bytes(bytes).expect(PLACED);
    let view = ArrayViewMut::from_shape(shape_of(&layout), numbers);
    let mut view = view.map_err(|error| Error::Invalid(error.to_string()))?;
    for axis in backwards(&layout) {
        view.invert_axis(axis);
    }
    Ok(view)
}

fn on_gpu() -> Error {
    Error::Invalid("a view of `ndarray` is of memory of the host: copy the array there".to_string())
}

/// With all axes forwards.
fn shape_of<const RANK: usize>(layout: &Layout<RANK>) -> StrideShape<Dim<[usize; RANK]>>
where
    Dim<[usize; RANK]>: Dimension,
{
    let dimension = |numbers: [usize; RANK]| {
        let mut dimension = <Dim<[usize; RANK]>>::zeros(RANK);
        dimension.slice_mut().copy_from_slice(&numbers);
        dimension
    };
    // Of an array of nothing `ndarray` wants even rows without elements inside its memory.
    let strides = match layout.extents.contains(&0) {
        true => [0; RANK],
        false => layout.strides.map(isize::unsigned_abs),
    };
    dimension(layout.extents).strides(dimension(strides))
}

fn backwards<const RANK: usize>(layout: &Layout<RANK>) -> impl Iterator<Item = Axis> {
    let strides = layout.strides.into_iter().enumerate();
    strides.filter_map(|(axis, stride)| (stride < 0).then_some(Axis(axis)))
}
