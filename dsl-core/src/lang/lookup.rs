//! Counts of numbers, and elements looked up along an axis.

use std::panic::Location;

use super::context;
use super::element::{Element, Int};
use super::tile::{DeviceValue, Tile, axis_of};
use crate::ir::Op;

/// How many elements of `x` equal each of `0..bins`: a tile of `bins` counts. Elements outside are
/// not counted. `bins` is a power of two.
///
/// `counts += histogram(..)` in a loop keeps its counters in the shared memory of a GPU until the
/// loop ends, if nothing else in the loop uses `counts`.
#[track_caller]
pub fn histogram<T: Int>(x: Tile<T>, bins: usize) -> Tile<i32> {
    count(x, None, bins)
}

/// [`histogram`] of the elements where `mask` holds.
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
        context.builder.value(Op::Histogram { x, mask, bins })
    }))
}

/// The elements of `x` with these indices along `axis`: `result[i, j] = x[i, indices[i, j]]` for
/// axis 1. The other extents of `indices` are those of `x`.
///
/// An index out of range is an error of checked launches; otherwise it means the nearest in range.
#[track_caller]
pub fn gather<T: Element, I: Int>(x: Tile<T>, indices: Tile<I>, axis: usize) -> Tile<T> {
    Tile::from_handle(context::emit(Location::caller(), |context| {
        let (x, indices) = (context.value(x.handle()), context.value(indices.handle()));
        let axis = axis_of(axis);
        context.builder.value(Op::Gather { x, indices, axis })
    }))
}
