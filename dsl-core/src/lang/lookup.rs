//! Counts of numbers, and elements looked up along an axis.

use super::element::{Element, Int};
use super::tile::{DeviceValue, IntoTile, Tile, axis_of, map, reshaped};
use crate::ir::{Op, op};

/// How many elements of `x`, a tile or a scalar, equal each of `0..bins`: a tile of `bins` counts. Elements outside are
/// not counted. `bins` is a power of two.
///
/// `counts += histogram(..)` in a loop keeps its counters in the shared memory of a GPU until the
/// loop ends, if nothing else in the loop uses `counts`.
///
/// # Errors
/// A GPU has the counters in shared memory, 4 bytes for each bin and for one more: 99 KiB, which the
/// smallest GPUs have, hold 16384 bins, and 227 KiB hold 32768. Compiling more for it is an error that tells the bytes they take and advises to
/// count parts of the bins, one after the other.
#[cfg_attr(not(doctest), doc = include_str!("examples/histogram.md"))]
#[track_caller]
pub fn histogram<V: DeviceValue<Element: Int>>(x: V, bins: usize) -> Tile<i32> {
    count(x.as_tile(), None::<bool>, bins)
}

/// [`histogram`] of the elements where `mask`, repeated to the shape of `x`, holds.
#[track_caller]
pub fn histogram_masked<V: DeviceValue<Element: Int>>(
    x: V,
    mask: impl IntoTile<bool>,
    bins: usize,
) -> Tile<i32> {
    count(x.as_tile(), Some(mask), bins)
}

#[track_caller]
fn count<T: Int>(x: Tile<T>, mask: Option<impl IntoTile<bool>>, bins: usize) -> Tile<i32> {
    map(x, |context, mut x| {
        if context.ty(x).is_scalar() {
            x = reshaped(context, "histogram", x, &[1]);
        }
        let shape = context.ty(x).shape;
        let mask = mask.map(|mask| {
            let mask = mask.into_value(context);
            context.broadcast("histogram_masked", mask, shape)
        });
        let bins = i64::try_from(bins).unwrap_or(i64::MAX);
        context
            .builder
            .value(Op::Histogram(op::Histogram { x, mask, bins }))
    })
}

/// The elements of `x` with these indices along `axis`: `result[i, j] = x[i, indices[i, j]]` for
/// axis 1. The result has the shape of `indices`, which is that of `x` but for the extent of `axis`.
/// One index, a scalar or a tile of rank 0, takes all elements at that position, and the result has no such
/// axis: `gather(x, i, 0)` is row `i` of a matrix, and of one axis a tile of rank 0.
///
/// An index outside `0..extent` is an error of a checked launch, which names the line, the axis and
/// the index. Without checks it means the nearest in range: 0 for negative ones, else the last.
/// Indices count as `i64`, so those of `u64` from 2^63 are negative.
///
/// # Errors
/// On a GPU, a tile `x` that needs more shared memory on the way to other lanes than a thread block
/// has: 99 to 227 KiB.
#[cfg_attr(not(doctest), doc = include_str!("examples/gather.md"))]
#[track_caller]
pub fn gather<T, I>(x: Tile<T>, indices: I, axis: usize) -> Tile<T>
where
    T: Element,
    I: DeviceValue<Element: Int>,
{
    map(x, |context, x| {
        let mut indices = context.value(indices.handle());
        let mut dims = context.ty(x).shape.dims();
        let is_one = context.ty(indices).is_scalar() && axis < dims.len();
        if is_one {
            dims[axis] = 1;
            if let Some(shape) = context.shape("gather", &dims) {
                indices = context.broadcast("gather", indices, shape);
            }
        }
        let at = axis_of(axis);
        let gather = op::Gather {
            x,
            indices,
            axis: at,
        };
        let found = context.builder.value(Op::Gather(gather));
        if !is_one || context.ty(found).is_poison() {
            return found;
        }
        dims.remove(axis);
        reshaped(context, "gather", found, &dims)
    })
}
