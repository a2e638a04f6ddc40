//! The greatest and the least element of the tiles of a loop: no order changes them.

use std::panic::Location;

use super::shown;
use crate::ir::Literal;
use crate::lang::carry::{Carry, Part};
use crate::lang::context;
use crate::lang::element::Numeric;
use crate::lang::math::ordered;
use crate::lang::tile::{DeviceValue, Tile};
use crate::semantics::reduction::identity;

/// The greatest or least element over the tiles of a loop, as [`Tile::max`] or [`Tile::min`] of all tiles as
/// one. NaN is ignored; -0 < +0.
#[derive(Clone)]
pub struct ExtremeAccumulator<T: Numeric> {
    value: Tile<T>,
    greater: bool,
}

impl<T: Numeric> Carry for ExtremeAccumulator<T> {
    fn visit(&mut self, visitor: &mut dyn FnMut(Part<'_>)) {
        self.value.visit(visitor);
    }
}

/// The greatest element of no tile, whose reduction has `shape`: NaN for floats, else the least number.
#[cfg_attr(not(doctest), doc = include_str!("../examples/max_accumulator.md"))]
#[track_caller]
pub fn max_accumulator<T: Numeric>(shape: impl AsRef<[usize]>) -> ExtremeAccumulator<T> {
    extreme("max_accumulator", shape.as_ref(), true)
}

/// The least element of no tile, whose reduction has `shape`: NaN for floats, else the greatest number.
#[track_caller]
pub fn min_accumulator<T: Numeric>(shape: impl AsRef<[usize]>) -> ExtremeAccumulator<T> {
    extreme("min_accumulator", shape.as_ref(), false)
}

/// What leaves every element as it is.
fn nothing<T: Numeric>(greater: bool) -> Literal {
    let nothing = identity(ordered::<T>(greater), T::DTYPE);
    nothing.expect("broken invariant: extremes have an identity")
}

#[track_caller]
fn extreme<T: Numeric>(what: &str, shape: &[usize], greater: bool) -> ExtremeAccumulator<T> {
    let value = context::emit(Location::caller(), |context| {
        match context.shape(what, shape) {
            Some(shape) => context.builder.filled(nothing::<T>(greater), shape),
            None => context.builder.poison(),
        }
    });
    ExtremeAccumulator {
        value: Tile::from_handle(value),
        greater,
    }
}

impl<T: Numeric> ExtremeAccumulator<T> {
    /// Adds the elements of `tile` along `axis`.
    #[track_caller]
    pub fn add(&mut self, tile: Tile<T>, axis: usize) {
        let op = ordered::<T>(self.greater);
        self.value = Tile::from_handle(context::emit(Location::caller(), |context| {
            let [value, x] = [self.value, tile].map(|tile| context.value(tile.handle()));
            let extreme = context.reduce_by(op, x, axis);
            context.builder.binary(op, value, extreme)
        }));
    }

    /// Adds the elements of `tile` along `axis` where the mask holds.
    #[track_caller]
    pub fn add_masked(&mut self, tile: Tile<T>, mask: Tile<bool>, axis: usize) {
        let nothing = nothing::<T>(self.greater);
        let shown = context::emit(Location::caller(), |context| {
            let [x, mask] = [tile.handle(), mask.handle()].map(|handle| context.value(handle));
            shown(context, x, mask, nothing)
        });
        self.add(Tile::from_handle(shown), axis);
    }

    /// The greatest or least element of all tiles.
    pub fn finish(&self) -> Tile<T> {
        self.value
    }
}
