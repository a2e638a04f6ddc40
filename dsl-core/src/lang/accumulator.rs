//! Sums, extremes and any other combine over the tiles of a loop, with the bits of one tile over all of
//! them.

mod combine;
mod extreme;
mod log_sum;

use std::marker::PhantomData;
use std::panic::Location;

pub use combine::{Accumulator, accumulator};
pub use extreme::{ExtremeAccumulator, max_accumulator, min_accumulator};
pub use log_sum::{LogSumExpAccumulator, log_sum_exp_accumulator};

use super::carry::{Carry, Part};
use super::context::{self, Context, Handle};
use super::element::Numeric;
use super::tile::{DeviceValue, Tile, axis_of};
use crate::builder::Builder;
use crate::ir::{
    BinaryOp, DType, Direction, Element, Literal, MAX_LEVELS, Op, Region, Shape, Type, Value, op,
};

/// Tiles that an accumulator takes unless `.at_most(n)` says otherwise.
const DEFAULT_TILES: usize = 1 << 16;

/// The levels that so many tiles reach.
fn levels(tiles: usize) -> u8 {
    let levels = tiles.max(1).ilog2() as u8 + 1;
    levels.min(MAX_LEVELS)
}

/// An accumulator of nothing.
fn empty(context: &mut Context, dtype: DType, shape: Shape, tiles: usize) -> Value {
    let element = Element::Accumulator(dtype, levels(tiles));
    let op = Op::Accumulator(op::Accumulator {});
    context.builder.declared(op, Type { element, shape })
}

/// The combine of sums.
fn adding(builder: &mut Builder, dtype: DType) -> Region {
    let elements = [Type::scalar(dtype)];
    builder.combiner_of(&elements, |builder, a, b| vec![builder.add(a[0], b[0])])
}

/// The extent that all tiles of an accumulator have along the axis.
#[derive(Clone, Copy, Default)]
struct Extent(Option<usize>);

impl Extent {
    /// Whether a tile has the extent of those before it; if not, that is an error.
    fn admits(&mut self, context: &mut Context, tile: Value, axis: usize) -> bool {
        let extents = context.ty(tile).shape.dims();
        let Some(&extent) = extents.get(axis) else {
            // The reduction names the axis.
            return true;
        };
        let first = *self.0.get_or_insert(extent);
        if extent != first {
            context.builder.error(format!(
                "`add`: the tile has extent `{extent}` along axis {axis}, expected `{first}` as before"
            ));
        }
        extent == first
    }
}

/// A tile where the mask holds, elsewhere what changes nothing.
fn shown(context: &mut Context, x: Value, mask: Value, nothing: Literal) -> Value {
    let shape = context.ty(x).shape;
    let mask = context.broadcast("add_masked", mask, shape);
    if context.ty(mask).is_poison() || context.ty(x).is_poison() {
        return context.builder.poison();
    }
    let nothing = context.builder.filled(nothing, shape);
    context.builder.select(mask, x, nothing)
}

/// A sum over the tiles of a loop. `f16` and `bf16` accumulate in `f32` and round once at the end.
///
/// With tiles of a power of two along the axis the result has the same bits for every tile size, as
/// long as masked elements are zero and no more than the stated number of tiles is added; beyond
/// that the result is still a sum, but its bits depend on the tile size.
#[derive(Clone)]
pub struct SumAccumulator<T: Numeric> {
    state: Handle,
    extent: Extent,
    element: PhantomData<T>,
}

impl<T: Numeric> Carry for SumAccumulator<T> {
    fn visit(&mut self, visitor: &mut dyn FnMut(Part<'_>)) {
        visitor(Part::Value(&mut self.state));
    }
}

/// An empty sum of tiles whose reduction has `shape`: `[]` for a scalar result.
#[cfg_attr(not(doctest), doc = include_str!("examples/sum_accumulator.md"))]
#[track_caller]
pub fn sum_accumulator<T: Numeric>(shape: impl AsRef<[usize]>) -> SumAccumulator<T> {
    let state = context::emit(Location::caller(), |context| {
        match context.shape("sum_accumulator", shape.as_ref()) {
            Some(shape) => empty(context, T::DTYPE.compute(), shape, DEFAULT_TILES),
            None => context.builder.poison(),
        }
    });
    SumAccumulator {
        state,
        extent: Extent::default(),
        element: PhantomData,
    }
}

impl<T: Numeric> SumAccumulator<T> {
    /// Says that at most `tiles` tiles are added, so that fewer levels are kept. Only before the
    /// first tile.
    #[must_use]
    #[track_caller]
    pub fn at_most(mut self, tiles: usize) -> Self {
        self.state = context::emit(Location::caller(), |context| {
            let state = context.value(self.state);
            let ty = context.ty(state);
            if ty.is_poison() {
                return state;
            }
            empty(context, T::DTYPE.compute(), ty.shape, tiles)
        });
        self
    }

    /// Adds the sum of `tile` along `axis`. All tiles have one extent along it; elements that do
    /// not belong to the sum are zero.
    #[track_caller]
    pub fn add<U: Numeric>(&mut self, tile: Tile<U>, axis: usize) {
        self.state = context::emit(Location::caller(), |context| {
            let (state, x) = (context.value(self.state), context.value(tile.handle()));
            if context.ty(x).is_poison() || !self.extent.admits(context, x, axis) {
                return state;
            }
            let sums = T::DTYPE.compute();
            if U::DTYPE.compute() != sums {
                let ty = context.ty(x);
                let message = format!("a sum of `{sums}` does not take `{ty}`");
                context.builder.error(message);
                return state;
            }
            let x = context.cast(x, sums);
            let sum = context.reduce_by(BinaryOp::Add, x, axis);
            let builder = &mut context.builder;
            let combine = adding(builder, T::DTYPE.compute());
            let inst = builder.emit(
                Op::Accumulate(op::Accumulate {
                    accumulators: vec![state],
                    subtrees: vec![sum],
                    combine,
                }),
                &[],
            );
            builder.results(inst)[0]
        });
    }

    /// Adds the sum of the elements of `tile` along `axis` where the mask holds.
    #[track_caller]
    pub fn add_masked<U: Numeric>(&mut self, tile: Tile<U>, mask: Tile<bool>, axis: usize) {
        let shown = context::emit(Location::caller(), |context| {
            let [x, mask] = [tile.handle(), mask.handle()].map(|handle| context.value(handle));
            shown(context, x, mask, Literal::from_bits(U::DTYPE, 0))
        });
        self.add(Tile::<U>::from_handle(shown), axis);
    }

    /// The sums of all prefixes that end in `tile`, along `axis`: of every tile added before and of
    /// the elements of this one up to each. Then adds the tile as [`add`](SumAccumulator::add) does.
    ///
    /// The bits are those of [`Tile::cumsum`] of all tiles as one, for every tile size. Each level
    /// that is kept takes an addition for each element: say how many tiles come with `.at_most(n)`.
    #[track_caller]
    pub fn cumsum<U: Numeric>(&mut self, tile: Tile<U>, axis: usize) -> Tile<T> {
        let before = self.state;
        self.add(tile, axis);
        Tile::from_handle(context::emit(Location::caller(), |context| {
            let [state, x, after] =
                [before, tile.handle(), self.state].map(|handle| context.value(handle));
            // `add` has named what does not fit.
            if context.ty(after).is_poison() || state == after {
                return context.builder.poison();
            }
            let x = context.cast(x, T::DTYPE.compute());
            let sums = context.scan_by(BinaryOp::Add, x, axis, Direction::Forward);
            let builder = &mut context.builder;
            let combine = adding(builder, T::DTYPE.compute());
            let inst = builder.emit(
                Op::Prefixes(op::Prefixes {
                    accumulators: vec![state],
                    sources: vec![sums],
                    axis: axis_of(axis),
                    combine,
                }),
                &[],
            );
            let sums = builder.results(inst)[0];
            let sums = builder.positive_zero(sums);
            context.cast(sums, T::DTYPE)
        }))
    }

    /// The sum of all tiles: what is left is merged, lower index on the left. +0 when there were
    /// none, and for a zero float result.
    #[track_caller]
    pub fn finish(&self) -> Tile<T> {
        Tile::from_handle(context::emit(Location::caller(), |context| {
            let state = context.value(self.state);
            let ty = context.ty(state);
            if ty.is_poison() {
                return state;
            }
            let builder = &mut context.builder;
            let combine = adding(builder, T::DTYPE.compute());
            let inst = builder.emit(
                Op::Total(op::Total {
                    accumulators: vec![state],
                    combine,
                }),
                &[],
            );
            let total = builder.results(inst)[0];
            context.cast(total, T::DTYPE)
        }))
    }
}
