//! Sums and prefix sums over the tiles of a loop with the bits of one tile over all of them.

use std::marker::PhantomData;
use std::panic::Location;

use super::carry::{Carry, Part};
use super::context::{self, Handle};
use super::element::Numeric;
use super::tile::{DeviceValue, Tile, axis_of};
use crate::ir::{DType, Element, MAX_LEVELS, Op, Type, op};

/// Tiles that an accumulator takes unless `.at_most(n)` says otherwise.
const DEFAULT_TILES: usize = 1 << 16;

/// A sum over the tiles of a loop. `f16` and `bf16` accumulate in `f32` and round once at the end.
///
/// With tiles of a power of two along the axis the result has the same bits for every tile size, as
/// long as masked elements are zero and no more than the stated number of tiles is added; beyond
/// that the result is still a sum, but its bits depend on the tile size.
#[derive(Clone)]
pub struct SumAccumulator<T: Numeric> {
    state: Handle,
    extent: Option<usize>,
    element: PhantomData<T>,
}

impl<T: Numeric> Carry for SumAccumulator<T> {
    fn visit(&mut self, visitor: &mut dyn FnMut(Part<'_>)) {
        visitor(Part::Value(&mut self.state));
    }
}

/// An empty sum of tiles whose reduction has `shape`: `[]` for a scalar result.
#[track_caller]
pub fn sum_accumulator<T: Numeric>(shape: impl AsRef<[usize]>) -> SumAccumulator<T> {
    let state = context::emit(Location::caller(), |context| {
        match context.shape("sum_accumulator", shape.as_ref()) {
            Some(shape) => {
                let element = Element::Sum(compute::<T>(), levels(DEFAULT_TILES));
                let op = Op::Accumulator(op::Accumulator {});
                context.builder.declared(op, Type { element, shape })
            }
            None => context.builder.poison(),
        }
    });
    SumAccumulator {
        state,
        extent: None,
        element: PhantomData,
    }
}

fn compute<T: Numeric>() -> DType {
    T::DTYPE.compute()
}

/// The levels that the sum of so many tiles reaches.
fn levels(tiles: usize) -> u8 {
    let levels = tiles.max(1).ilog2() as u8 + 1;
    levels.min(MAX_LEVELS)
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
            let element = Element::Sum(compute::<T>(), levels(tiles));
            let op = Op::Accumulator(op::Accumulator {});
            let shape = ty.shape;
            context.builder.declared(op, Type { element, shape })
        });
        self
    }

    /// Adds the sum of `tile` along `axis`. All tiles have one extent along it; elements that do
    /// not belong to the sum are zero.
    #[track_caller]
    pub fn add<U: Numeric>(&mut self, tile: Tile<U>, axis: usize) {
        self.state = context::emit(Location::caller(), |context| {
            let (state, x) = (context.value(self.state), context.value(tile.handle()));
            let ty = context.ty(x);
            if ty.is_poison() {
                return state;
            }
            let extent = ty.shape.dims().get(axis).copied();
            let first = *self.extent.get_or_insert(extent.unwrap_or(0));
            if extent.is_some_and(|extent| extent != first) {
                context.builder.error(format!(
                    "`add`: the tile has extent `{}` along axis {axis}, expected `{first}` as before",
                    extent.unwrap_or(0)
                ));
                return state;
            }
            let axis = axis_of(axis);
            let added = op::Accumulate { state, x, axis };
            context.builder.value(Op::Accumulate(added))
        });
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
            let axis = axis_of(axis);
            let sums = Op::PrefixSums(op::PrefixSums { state, x, axis });
            let sums = context.builder.value(sums);
            context.cast(sums, T::DTYPE)
        }))
    }

    /// The sum of all tiles: what is left is merged, lower index on the left. +0 when there were
    /// none, and for a zero float result.
    #[track_caller]
    pub fn finish(self) -> Tile<T> {
        Tile::from_handle(context::emit(Location::caller(), |context| {
            let state = context.value(self.state);
            let total = context.builder.value(Op::Total(op::Total { state }));
            context.cast(total, T::DTYPE)
        }))
    }
}
