//! The logarithm of a sum of exponentials over the tiles of a loop, which are read once.
//!
//! A weight is a number from 0.7 to 1.42 times a power of two, and so is a sum, whose exponent is that of its greatest
//! weight. What numbers are scaled by changes none of their roundings, so the bits do not follow the tile in which the greatest one
//! lies. `docs/numerics.md` has the definition, what it leaves out, and its error.

use std::panic::Location;

use super::combine::{self, Accumulator};
use super::{Extent, shown};
use crate::ir::{DType, Literal};
use crate::lang::carry::{Carry, Part};
use crate::lang::context;
use crate::lang::element::SingleFloat;
use crate::lang::math::{exp2, fma, log, maximum, maxnum, minnum, round, select};
use crate::lang::operators::{Compare, Comparison};
use crate::lang::reduce::reduce;
use crate::lang::tile::{DeviceValue, Scalar, Tile};

type Tiles = (Tile<f32>, Tile<f32>);
type Scalars = (Scalar<f32>, Scalar<f32>);

/// The logarithm of the sum of exponentials over the tiles of a loop, in `f32`; floats of at most 32 bits are widened.
///
/// With tiles of a power of two along the axis the result has the same bits for every tile size, masked elements or not, as long
/// as no more than the stated number of tiles is added.
#[derive(Clone)]
pub struct LogSumExpAccumulator {
    /// The exponents of the greatest weights, and the sums over two to these powers.
    sums: Accumulator<Tiles, fn(Scalars, Scalars) -> Scalars>,
    extent: Extent,
    /// Neighbours that share an exponent before they are combined.
    together: Option<usize>,
}

impl Carry for LogSumExpAccumulator {
    fn visit(&mut self, visitor: &mut dyn FnMut(Part<'_>)) {
        self.sums.visit(visitor);
    }
}

/// The logarithm of an empty sum of exponentials, whose reduction has `shape`: `[]` for a scalar result.
#[cfg_attr(not(doctest), doc = include_str!("../examples/log_sum_exp_accumulator.md"))]
#[track_caller]
pub fn log_sum_exp_accumulator(shape: impl AsRef<[usize]>) -> LogSumExpAccumulator {
    let location = Location::caller();
    LogSumExpAccumulator {
        sums: combine::named("log_sum_exp_accumulator", location, shape.as_ref(), merged),
        extent: Extent::default(),
        together: None,
    }
}

impl LogSumExpAccumulator {
    /// Says that at most `tiles` tiles are added, so that fewer levels are kept. Only before the
    /// first tile.
    #[must_use]
    #[track_caller]
    pub fn at_most(mut self, tiles: usize) -> Self {
        self.sums = self.sums.at_most(tiles);
        self
    }

    /// Adds the exponentials of all elements of the tile along `axis`; that of -inf is zero. All tiles have one extent along it.
    #[track_caller]
    pub fn add<T: SingleFloat>(&mut self, tile: Tile<T>, axis: usize) {
        self.add_wide(tile.to(), T::DTYPE, axis);
    }

    /// Adds the exponentials of the elements of the tile along `axis` where the mask holds.
    #[track_caller]
    pub fn add_masked<T: SingleFloat>(&mut self, tile: Tile<T>, mask: Tile<bool>, axis: usize) {
        let wide = tile.to::<f32>();
        let shown = context::emit(Location::caller(), |context| {
            let [x, mask] = [wide.handle(), mask.handle()].map(|handle| context.value(handle));
            shown(
                context,
                x,
                mask,
                Literal::from_f64(DType::F32, f64::NEG_INFINITY),
            )
        });
        self.add_wide(Tile::from_handle(shown), T::DTYPE, axis);
    }

    /// `dtype` is what the elements were loaded as.
    #[track_caller]
    fn add_wide(&mut self, tile: Tile<f32>, dtype: DType, axis: usize) {
        let admitted = context::with(Location::caller(), |context| {
            let x = context.value(tile.handle());
            !context.ty(x).is_poison() && self.extent.admits(context, x, axis)
        });
        let shape = tile.shape();
        let Some(&extent) = shape.get(axis).filter(|_| admitted == Some(true)) else {
            // The reduction names an axis that there is none of.
            if admitted == Some(true) {
                self.sums.add((tile, tile), axis);
            }
            return;
        };
        let together = *self.together.get_or_insert(neighbours(dtype).min(extent));
        let parts = [extent / together, together];
        let grouped = [&shape[..axis], &parts, &shape[axis + 1..]].concat();
        self.sums.add(scaled(tile.reshape(grouped), axis + 1), axis);
    }

    /// The logarithm of the sum over all tiles; -inf where nothing was added but -inf, inf where there was an inf, NaN where
    /// there was a NaN.
    #[track_caller]
    pub fn finish(&self) -> Tile<f32> {
        let (power, sum) = self.sums.finish();
        let low = std::f64::consts::LN_2 - f64::from(std::f32::consts::LN_2);
        let low = fma(power, low, log(sum));
        fma(power, f64::from(std::f32::consts::LN_2), low)
    }
}

/// What one instruction loads: these a lane combines by itself. Beyond 8, what is far below the greatest of them would
/// have to be told apart, too.
fn neighbours(dtype: DType) -> usize {
    (16 * 8 / dtype.bits() as usize).min(8)
}

/// The exponent of the greatest weight along `axis`, and the sum of the weights over two to this power.
#[track_caller]
fn scaled(x: Tile<f32>, axis: usize) -> Tiles {
    let log2_e = std::f64::consts::LOG2_E;
    let greatest = reduce(x, axis, |a, b| maximum(a, b)) * log2_e;
    let (least, most) = (f64::from(f32::MIN), f64::from(f32::MAX));
    let power = minnum(maxnum(round(greatest), least), most);
    let exponent = maxnum(x * log2_e, least);
    let whole = round(exponent);
    // Less than this does not show beside the greatest weight, however many follow.
    let beyond = maxnum(whole - power.expand(axis), -125.0);
    let weight = exp2(exponent - whole) * power_of_two(beyond);
    let sum = reduce(weight, axis, |a, b| a + b);
    let is_finite = greatest.abs().compare(f64::INFINITY, Comparison::Less);
    (power, select(is_finite, sum, maximum(greatest, 0.0)))
}

/// Two to the power of integers from -126 to 0: of a sum between 2^23 and 2^24 the low bits are an integer.
#[track_caller]
fn power_of_two(n: Tile<f32>) -> Tile<f32> {
    let biased = n + f64::from((3 << 22) + 127);
    (biased.bitcast::<u32>() << 23).bitcast::<f32>()
}

/// Two sums in the greater of their scales.
#[track_caller]
fn merged(lower: Scalars, higher: Scalars) -> Scalars {
    let (m, s) = (lower.0.tile(), lower.1.tile());
    let (n, t) = (higher.0.tile(), higher.1.tile());
    // Less than 2^-64 of 0.7 does not show, though it may be a sum of 2^32 weights.
    let distance = minnum((m - n).abs(), 64.0);
    let is_below = m.compare(n, Comparison::Less);
    let (great, small) = (select(is_below, t, s), select(is_below, s, t));
    let sum = fma(small, power_of_two(-distance), great);
    (maximum(m, n).scalar(), sum.scalar())
}
