//! Counts of numbers, and elements looked up along an axis.

use std::panic::Location;

use super::context;
use super::element::{Element, Int};
use super::tile::{DeviceValue, Tile, axis_of};
use crate::ir::{Op, op};

/// How many elements of `x` equal each of `0..bins`: a tile of `bins` counts. Elements outside are
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
pub fn histogram<T: Int>(x: Tile<T>, bins: usize) -> Tile<i32> {
    count(x, None, bins)
}

/// [`histogram`] of the elements where `mask`, repeated to the shape of `x`, holds.
#[track_caller]
pub fn histogram_masked<T: Int>(x: Tile<T>, mask: Tile<bool>, bins: usize) -> Tile<i32> {
    count(x, Some(mask), bins)
}

#[track_caller]
fn count<T: Int>(x: Tile<T>, mask: Option<Tile<bool>>, bins: usize) -> Tile<i32> {
    Tile::from_handle(context::emit(Location::caller(), |context| {
        let x = context.value(x.handle());
        let shape = context.ty(x).shape;
        let mask = mask.map(|mask| {
            let mask = context.value(mask.handle());
            context.broadcast("histogram_masked", mask, shape)
        });
        let bins = i64::try_from(bins).unwrap_or(i64::MAX);
        context
            .builder
            .value(Op::Histogram(op::Histogram { x, mask, bins }))
    }))
}

/// The elements of `x` with these indices along `axis`: `result[i, j] = x[i, indices[i, j]]` for
/// axis 1. The result has the shape of `indices`, which is that of `x` but for the extent of `axis`.
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
pub fn gather<T: Element, I: Int>(x: Tile<T>, indices: Tile<I>, axis: usize) -> Tile<T> {
    Tile::from_handle(context::emit(Location::caller(), |context| {
        let (x, indices) = (context.value(x.handle()), context.value(indices.handle()));
        let axis = axis_of(axis);
        context
            .builder
            .value(Op::Gather(op::Gather { x, indices, axis }))
    }))
}
