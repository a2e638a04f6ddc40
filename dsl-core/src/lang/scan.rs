//! Scans: all prefixes along an axis.
//!
//! Element `i` has the bits of the reduction of the elements up to and including `i`, in the order of
//! the same balanced tree: the complete aligned subtrees of the prefix, right-nested, the largest on
//! the left. A reverse scan is the scan of the reversed axis.

use std::panic::Location;

use super::context::{Context, Handle};
use super::element::Numeric;
use super::math::ordered;
use super::reduce::{Reducible, combine_valid, traced};
use super::tile::{Tile, axis_of, map};
use crate::ir::{BinaryOp, Direction, Op, Order, Region, Value, op};

/// The prefixes along `axis` under a closure over scalars, lower index on the left.
///
/// A tuple of tiles is combined together: `scan((x, i), 0, |a, b| ..)`. Element `i` of the result
/// is what [`reduce`](super::reduce::reduce) gives for the elements `0..=i`.
#[cfg_attr(not(doctest), doc = include_str!("examples/scan.md"))]
#[track_caller]
pub fn scan<S: Reducible>(
    source: S,
    axis: usize,
    combine: impl FnMut(S::Element, S::Element) -> S::Element,
) -> S {
    let way = ("scan", Direction::Forward);
    directed(Location::caller(), way, source, axis, combine)
}

/// The suffixes along `axis` under a closure over scalars: the scan of the reversed axis, so the
/// higher index is on the left.
#[track_caller]
pub fn reverse_scan<S: Reducible>(
    source: S,
    axis: usize,
    combine: impl FnMut(S::Element, S::Element) -> S::Element,
) -> S {
    let way = ("reverse_scan", Direction::Reverse);
    directed(Location::caller(), way, source, axis, combine)
}

fn directed<S: Reducible>(
    location: &'static Location<'static>,
    (what, direction): (&str, Direction),
    source: S,
    axis: usize,
    combine: impl FnMut(S::Element, S::Element) -> S::Element,
) -> S {
    let Some((open, combined)) = traced(what, location, source, combine) else {
        return source;
    };
    let results = open.close(location, &combined, scanning(axis, direction));
    S::from_handles(&results)
}

/// What the elements where `mask` holds combine to up to each position along `axis`, and whether it holds for one.
pub(super) fn scan_valid<S: Reducible>(
    location: &'static Location<'static>,
    source: S,
    mask: Tile<bool>,
    axis: usize,
    combine: impl FnMut(S::Element, S::Element) -> S::Element,
) -> Option<Vec<Handle>> {
    let make = scanning(axis, Direction::Forward);
    combine_valid("scan_masked", location, (source, mask), combine, make)
}

fn scanning(
    axis: usize,
    direction: Direction,
) -> impl FnOnce(&mut Context, Vec<Value>, Region) -> Op {
    move |_, sources, combine| {
        Op::Scan(op::Scan {
            sources,
            axis: axis_of(axis),
            order: Order::Tree,
            direction,
            combine,
        })
    }
}

impl Context {
    /// A scan by one operation.
    pub(crate) fn scan_by(
        &mut self,
        op: BinaryOp,
        x: Value,
        axis: usize,
        direction: Direction,
    ) -> Value {
        if self.ty(x).is_poison() {
            return x;
        }
        let way = (Order::Tree, direction);
        let results = self.builder.scan(&[x], axis, way, |builder, a, b| {
            vec![builder.binary(op, a[0], b[0])]
        });
        results[0]
    }
}

#[track_caller]
fn sums<T: Numeric>(tile: Tile<T>, axis: usize, direction: Direction) -> Tile<T> {
    map(tile, |context, x| {
        let wide = context.cast(x, T::DTYPE.compute());
        let sums = context.scan_by(BinaryOp::Add, wide, axis, direction);
        let sums = context.builder.positive_zero(sums);
        context.cast(sums, T::DTYPE)
    })
}

#[track_caller]
fn products<T: Numeric>(tile: Tile<T>, axis: usize, direction: Direction) -> Tile<T> {
    map(tile, |context, x| {
        let wide = context.cast(x, T::DTYPE.compute());
        let products = context.scan_by(BinaryOp::Mul, wide, axis, direction);
        context.cast(products, T::DTYPE)
    })
}

#[track_caller]
fn extremes<T: Numeric>(
    tile: Tile<T>,
    axis: usize,
    greater: bool,
    direction: Direction,
) -> Tile<T> {
    map(tile, |context, x| {
        context.scan_by(ordered::<T>(greater), x, axis, direction)
    })
}

macro_rules! scans_of_flags {
    ($($(#[doc = $doc:literal])* $name:ident: $Op:ident $Direction:ident;)*) => {
        impl Tile<bool> {
            $(
                $(#[doc = $doc])*
                #[track_caller]
                pub fn $name(self, axis: usize) -> Self {
                    map(self, |context, x| {
                        context.scan_by(BinaryOp::$Op, x, axis, Direction::$Direction)
                    })
                }
            )*
        }
    };
}
scans_of_flags! {
    /// Whether any element of each prefix along `axis` holds.
    cummax: Or Forward;
    /// Whether any element of each suffix along `axis` holds.
    reverse_cummax: Or Reverse;
    /// Whether all elements of each prefix along `axis` hold.
    cummin: And Forward;
    /// Whether all elements of each suffix along `axis` hold.
    reverse_cummin: And Reverse;
}

impl<T: Numeric> Tile<T> {
    /// The sums of all prefixes along `axis`: element `i` has the bits of [`Tile::sum`] of the
    /// elements `0..=i`. `f16` and `bf16` add in `f32` and round once at the end; a zero float
    /// result is +0.
    #[cfg_attr(not(doctest), doc = include_str!("examples/cumsum.md"))]
    #[track_caller]
    pub fn cumsum(self, axis: usize) -> Self {
        sums(self, axis, Direction::Forward)
    }

    /// The sums of all suffixes along `axis`: [`Tile::cumsum`] of the reversed axis.
    #[track_caller]
    pub fn reverse_cumsum(self, axis: usize) -> Self {
        sums(self, axis, Direction::Reverse)
    }

    /// The products of all prefixes along `axis`: element `i` has the bits of [`Tile::product`] of
    /// the elements `0..=i`. `f16` and `bf16` multiply in `f32` and round once at the end.
    #[track_caller]
    pub fn cumprod(self, axis: usize) -> Self {
        products(self, axis, Direction::Forward)
    }

    /// The products of all suffixes along `axis`: [`Tile::cumprod`] of the reversed axis.
    #[track_caller]
    pub fn reverse_cumprod(self, axis: usize) -> Self {
        products(self, axis, Direction::Reverse)
    }

    /// The largest element of each prefix along `axis`. NaN is ignored; -0 < +0.
    #[track_caller]
    pub fn cummax(self, axis: usize) -> Self {
        extremes(self, axis, true, Direction::Forward)
    }

    /// The largest element of each suffix along `axis`. NaN is ignored; -0 < +0.
    #[track_caller]
    pub fn reverse_cummax(self, axis: usize) -> Self {
        extremes(self, axis, true, Direction::Reverse)
    }

    /// The smallest element of each prefix along `axis`. NaN is ignored; -0 < +0.
    #[track_caller]
    pub fn cummin(self, axis: usize) -> Self {
        extremes(self, axis, false, Direction::Forward)
    }

    /// The smallest element of each suffix along `axis`. NaN is ignored; -0 < +0.
    #[track_caller]
    pub fn reverse_cummin(self, axis: usize) -> Self {
        extremes(self, axis, false, Direction::Reverse)
    }
}
