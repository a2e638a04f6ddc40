//! The logarithm of a sum of exponentials over the tiles of a loop, which are read once.
//!
//! A weight is a number from 0.7 to 1.42 times a power of two, whose exponent has no ends; so is a sum. What numbers are scaled by
//! changes none of their roundings, so the bits do not follow the tile in which the greatest one lies. `docs/numerics.md` has the
//! definition and its error.

use std::panic::Location;

use super::Extent;
use super::combine::{self, Accumulator, Nothing};
use crate::lang::branch::{Branches, If};
use crate::lang::carry::{Carried, Carry, Part};
use crate::lang::context;
use crate::lang::element::SingleFloat;
use crate::lang::math::{exp2, fma, log, maximum, maxnum, minnum, round, select};
use crate::lang::operators::{Compare, Comparison};
use crate::lang::reduce::reduce;
use crate::lang::tile::{DeviceValue, Scalar, Tile, zeros};

/// The exponent of a power of two, and a number of those.
type Tiles = (Tile<f32>, Tile<f32>);
type Scalars = (Scalar<f32>, Scalar<f32>);

/// Exponents of this magnitude at most need no care: sums of 2^31 such weights are normal numbers, too.
const MODERATE: f64 = 90.0;

/// The logarithm of the sum of exponentials over the tiles of a loop, in `f32`; floats of at most 32 bits are widened.
///
/// With tiles of a power of two along the axis the result has the same bits for every tile size, masked elements or not, as long
/// as no more than the stated number of tiles is added. A tile with a magnitude above 62 takes longer.
///
/// The error is about 2^-23 of the greatest magnitude, or of 1 where that is less, beside that of a sum in `f32` by a tree.
#[derive(Clone)]
pub struct LogSumExpAccumulator {
    sums: Accumulator<Tiles, fn(Scalars, Scalars) -> Scalars>,
    extent: Extent,
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
    let name = ("log_sum_exp_accumulator", Location::caller());
    LogSumExpAccumulator {
        sums: combine::named(name, shape.as_ref(), Nothing::Zero, merged_after),
        extent: Extent::default(),
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
        self.add_shown(tile.to(), axis, |x, _| x);
    }

    /// Adds the exponentials of the elements of the tile along `axis` where the mask holds.
    #[track_caller]
    pub fn add_masked<T: SingleFloat>(&mut self, tile: Tile<T>, mask: Tile<bool>, axis: usize) {
        self.add_shown(tile.to(), axis, |x, nothing| select(mask, x, nothing));
    }

    /// Adds what `shown` leaves of numbers, and puts another one in place of those that do not count.
    #[track_caller]
    fn add_shown(
        &mut self,
        tile: Tile<f32>,
        axis: usize,
        shown: impl Fn(Tile<f32>, f64) -> Tile<f32>,
    ) {
        let location = Location::caller();
        let admitted = context::with(location, |context| {
            let x = context.value(tile.handle());
            let axes = context.ty(x).shape.dims().len();
            let is_poison = context.ty(x).is_poison();
            (!is_poison && self.extent.admits(context, x, axis)).then_some(axis < axes)
        });
        match admitted.flatten() {
            None => return,
            Some(true) => {}
            // The reduction names the axis.
            Some(false) => {
                let _ = reduce(tile, axis, |a, b| a + b);
                return;
            }
        }
        let exponent = tile * std::f64::consts::LOG2_E;
        let whole = round(exponent);
        let weight = exp2(exponent - whole) * two_to(whole);
        let sum = reduce(shown(weight, 0.0), axis, |a, b| a + b);
        let greatest = shown(exponent.abs(), 0.0).max(axis);
        let is_moderate = greatest.compare(MODERATE, Comparison::LessEqual);
        let count = is_moderate.shape().iter().product();
        let mut branch = If::begin(is_moderate.reshape([count]).all(0));
        let mut sides = Branches::new();
        if branch.enter_then(&mut []) {
            sides.then = Some(normal((zeros(sum.shape()), sum)));
        }
        if branch.enter_otherwise(&mut []) {
            sides.otherwise = Some(far(shown(tile, f64::NEG_INFINITY), axis));
        }
        let subtrees = Carried.merge(branch, sides, &mut []);
        self.sums.add_subtrees(location, subtrees);
    }

    /// The logarithm of the sum over all tiles; -inf where nothing was added but -inf, inf where there was an inf, NaN where
    /// there was a NaN. A magnitude beyond 2.35e38 is taken for an infinity.
    #[track_caller]
    pub fn finish(&self) -> Tile<f32> {
        let total = self.sums.finish_by(Location::caller(), merged_between);
        let (power, sum) = normal(total);
        let low = std::f64::consts::LN_2 - f64::from(std::f32::consts::LN_2);
        let low = fma(power, low, log(sum));
        fma(power, f64::from(std::f32::consts::LN_2), low)
    }
}

/// The sum of weights along `axis`, each with an exponent of its own.
#[track_caller]
fn far(x: Tile<f32>, axis: usize) -> Tiles {
    let exponent = x * std::f64::consts::LOG2_E;
    let whole = round(exponent);
    let is_finite = exponent.abs().compare(f64::INFINITY, Comparison::Less);
    let weight = exp2(exponent - whole);
    let weight = select(is_finite, weight, maximum(exponent, 0.0));
    let power = minnum(maxnum(whole, f64::from(f32::MIN)), f64::from(f32::MAX));
    reduce((power, weight), axis, merged)
}

/// Two to the power of integers from -126 to 127: of a sum between 2^23 and 2^24 the low bits are an integer.
#[track_caller]
fn two_to(n: Tile<f32>) -> Tile<f32> {
    let biased = n + f64::from((3 << 22) + 127);
    (biased.bitcast::<u32>() << 23).bitcast::<f32>()
}

/// Two sums in the greater of their scales; a sum of zero has the least one.
#[track_caller]
fn merged(lower: Scalars, higher: Scalars) -> Scalars {
    let [(m, s), (n, t)] = [lower, higher].map(|(power, sum)| (power.tile(), sum.tile()));
    // Less than 2^-64 of 0.7 does not show, though it may be a sum of 2^32 weights.
    let distance = minnum((m - n).abs(), 64.0);
    let is_below = m.compare(n, Comparison::Less);
    let (great, small) = (select(is_below, t, s), select(is_below, s, t));
    let sum = fma(small, two_to(-distance), great);
    (maximum(m, n).scalar(), sum.scalar())
}

/// [`merged`] where the lower one may be zero bits, as the last level of an accumulator is at first.
#[track_caller]
fn merged_after(lower: Scalars, higher: Scalars) -> Scalars {
    merged(below_all(lower), higher)
}

/// [`merged`] where either may be zero bits.
#[track_caller]
fn merged_between(lower: Scalars, higher: Scalars) -> Scalars {
    merged(below_all(lower), below_all(higher))
}

/// The same, a sum of zero with the least scale.
#[track_caller]
fn below_all((power, sum): Scalars) -> Scalars {
    let is_zero = sum.tile().compare(0.0, Comparison::Equal);
    let power = select(is_zero, f64::from(f32::MIN), power.tile());
    (power.scalar(), sum)
}

/// The same number with a sum from 1 to 2. Zero is below all, and an infinity or NaN stays as it is.
#[track_caller]
fn normal((power, sum): Tiles) -> Tiles {
    let bits = sum.bitcast::<u32>();
    let exponent = (bits >> 23).bitcast::<i32>().to::<f32>() - 127.0;
    let significand = ((bits & 0x7f_ffff) | 0x3f80_0000).bitcast::<f32>();
    let is_normal =
        sum.compare(0.0, Comparison::Greater) & sum.compare(f64::INFINITY, Comparison::Less);
    let is_zero = sum.compare(0.0, Comparison::Equal);
    let otherwise = select(is_zero, f64::from(f32::MIN), power);
    (
        select(is_normal, power + exponent, otherwise),
        select(is_normal, significand, sum),
    )
}
