//! sin, cos and tan.
//!
//! `|x| = n pi/2 + r`: `r` by three constants whose first product is exact (W. J. Cody and W. Waite,
//! Software Manual for the Elementary Functions, 1980) and, for great arguments, by those 96 bits of 2/pi that
//! decide the fraction of a quarter turn (M. Payne and R. Hanek, Radian Reduction for Trigonometric Functions,
//! 1983). `r` is a sum of two numbers.

use std::f64::consts::FRAC_PI_4;

use super::angle::{reduce, reduce_moderate};
use super::coefficients::{COS_DOUBLE, COS_SINGLE, SIN_DOUBLE, SIN_SINGLE};
use super::formula::{Format, Formula};
use super::meaning::Double;
use super::{Domain, Meaning};
use crate::ir::{CompareOp, Value};
use crate::semantics::oracle::angle;

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

pub(super) const SIN: Meaning = Meaning {
    shorter: &[(MODERATE, |formula, x| sin(formula, x, reduce_moderate))],
    double: Some(Double {
        reference: angle::sin,
        max_ulp: 1.0,
    }),
    ..Meaning::single(
        |formula, x| sin(formula, x, reduce),
        f64::sin,
        1.0,
        &[(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    )
};

pub(super) const COS: Meaning = Meaning {
    shorter: &[(MODERATE, |formula, x| cos(formula, x, reduce_moderate))],
    double: Some(Double {
        reference: angle::cos,
        max_ulp: 1.0,
    }),
    ..Meaning::single(
        |formula, x| cos(formula, x, reduce),
        f64::cos,
        1.0,
        &[(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN)],
    )
};

pub(super) const TAN: Meaning = Meaning {
    shorter: &[(MODERATE, |formula, x| tan(formula, x, reduce_moderate))],
    double: Some(Double {
        reference: angle::tan,
        max_ulp: 1.0,
    }),
    ..Meaning::single(
        |formula, x| tan(formula, x, reduce),
        f64::tan,
        1.0,
        &[(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    )
};

/// Up to this magnitude the products of `n` and three constants suffice.
pub(super) const MODERATE: Domain = Domain {
    least: -524_288.0,
    greatest: 524_288.0,
};

/// Below this magnitude sin and tan are their argument.
const fn tiny(format: Format) -> f64 {
    match format {
        Format::Single => 0.000_244_140_625,
        Format::Double => 0.000_000_007_450_580_596_923_828,
    }
}

/// A magnitude as `quarter * pi/2 + high + low`.
pub(super) struct Reduced {
    /// An integer, of which the lowest two bits count.
    pub(super) quarter: Value,
    pub(super) high: Value,
    pub(super) low: Value,
}

/// What `f64` leaves of pi/4.
const FRAC_PI_4_LOW: f64 = 3.061_616_997_868_383e-17;

type Reduce = fn(&mut Formula<'_>, Value) -> Reduced;

/// An unevaluated sum.
struct Pair {
    high: Value,
    low: Value,
}

/// Sine.
fn sin(formula: &mut Formula<'_>, x: Value, reduce: Reduce) -> Value {
    let magnitude = formula.abs(x);
    let reduced = reduce(formula, magnitude);
    let (sine, cosine) = both(formula, &reduced);
    let is_odd = bit(formula, reduced.quarter, 1);
    let high = formula.select(is_odd, cosine.high, sine.high);
    let low = formula.select(is_odd, cosine.low, sine.low);
    let value = formula.add(high, low);
    let is_lower = bit(formula, reduced.quarter, 2);
    let is_negative = formula.compare(CompareOp::Lt, x, 0.0);
    let is_negated = formula.xor(is_lower, is_negative);
    let negated = formula.neg(value);
    let value = formula.select(is_negated, negated, value);
    or_itself(formula, x, magnitude, value)
}

/// Cosine.
fn cos(formula: &mut Formula<'_>, x: Value, reduce: Reduce) -> Value {
    let magnitude = formula.abs(x);
    let reduced = reduce(formula, magnitude);
    let (sine, cosine) = both(formula, &reduced);
    let is_odd = bit(formula, reduced.quarter, 1);
    let high = formula.select(is_odd, sine.high, cosine.high);
    let low = formula.select(is_odd, sine.low, cosine.low);
    let value = formula.add(high, low);
    let one = formula.integer(1);
    let next = formula.add(reduced.quarter, one);
    let is_negated = bit(formula, next, 2);
    let negated = formula.neg(value);
    formula.select(is_negated, negated, value)
}

/// Sine over cosine. The quotient is corrected by what both and the division lost.
fn tan(formula: &mut Formula<'_>, x: Value, reduce: Reduce) -> Value {
    let magnitude = formula.abs(x);
    let reduced = reduce(formula, magnitude);
    let (sine, cosine) = both(formula, &reduced);
    let (sine, cosine) = (sum(formula, &sine), sum(formula, &cosine));
    let is_odd = bit(formula, reduced.quarter, 1);
    let above = formula.select(is_odd, cosine.high, sine.high);
    let above_low = formula.select(is_odd, cosine.low, sine.low);
    let below = formula.select(is_odd, sine.high, cosine.high);
    let below_low = formula.select(is_odd, sine.low, cosine.low);
    let one = formula.number(1.0);
    let reciprocal = formula.div(one, below);
    let quotient = formula.mul(above, reciprocal);
    let negated = formula.neg(quotient);
    let rest = formula.fma(negated, below, above);
    let low = formula.fma(negated, below_low, above_low);
    let rest = formula.add(rest, low);
    let value = formula.fma(rest, reciprocal, quotient);
    let is_negative = formula.compare(CompareOp::Lt, x, 0.0);
    let is_negated = formula.xor(is_odd, is_negative);
    let negated = formula.neg(value);
    let value = formula.select(is_negated, negated, value);
    or_itself(formula, x, magnitude, value)
}

/// `x` where that is tiny, which keeps -0; else `value`.
fn or_itself(formula: &mut Formula<'_>, x: Value, magnitude: Value, value: Value) -> Value {
    let is_tiny = formula.compare(CompareOp::Lt, magnitude, tiny(formula.format));
    formula.select(is_tiny, x, value)
}

/// Sine and cosine of a magnitude less pi/4, near their zeros as exact as elsewhere.
pub(super) fn sine_and_cosine_behind(formula: &mut Formula<'_>, magnitude: Value) -> [Value; 2] {
    let Reduced { quarter, high, low } = reduce(formula, magnitude);
    let is_lower = formula.compare(CompareOp::Lt, high, 0.0);
    // The eighth of a turn to the nearest multiple of pi/2.
    let [ahead, ahead_low] = [FRAC_PI_4, FRAC_PI_4_LOW].map(|part| {
        let [up, down] = [part, -part].map(|it| formula.number(it));
        formula.select(is_lower, up, down)
    });
    let one = formula.integer(1);
    let before = formula.sub(quarter, one);
    let quarter = formula.select(is_lower, before, quarter);
    // The sum and what rounding it lost.
    let sum = formula.add(high, ahead);
    let added = formula.sub(sum, high);
    let kept = formula.sub(sum, added);
    let [lost, lost_too] = [(high, kept), (ahead, added)].map(|(a, b)| formula.sub(a, b));
    let lost = formula.add(lost, lost_too);
    let rest = formula.add(low, ahead_low);
    let reduced = Reduced {
        quarter,
        high: sum,
        low: formula.add(lost, rest),
    };
    let (sine, cosine) = both(formula, &reduced);
    let [sine, cosine] = [sine, cosine].map(|pair| formula.add(pair.high, pair.low));
    let is_odd = bit(formula, quarter, 1);
    let next = formula.add(quarter, one);
    [(cosine, sine, quarter), (sine, cosine, next)].map(|(odd, even, quarter)| {
        let value = formula.select(is_odd, odd, even);
        let negated = formula.neg(value);
        let is_negated = bit(formula, quarter, 2);
        formula.select(is_negated, negated, value)
    })
}

/// Whether an integer has this bit.
pub(super) fn bit(formula: &mut Formula<'_>, x: Value, bit: u64) -> Value {
    let mask = formula.integer(bit);
    let zero = formula.integer(0);
    let masked = formula.and(x, mask);
    formula.compare_values(CompareOp::Ne, masked, zero)
}

fn sum(formula: &mut Formula<'_>, pair: &Pair) -> Pair {
    let high = formula.add(pair.high, pair.low);
    let lost = formula.sub(pair.high, high);
    let low = formula.add(lost, pair.low);
    Pair { high, low }
}

/// Sine and cosine of a reduced argument.
fn both(formula: &mut Formula<'_>, reduced: &Reduced) -> (Pair, Pair) {
    let Reduced { high: r, low, .. } = *reduced;
    let square = formula.mul(r, r);
    let one = formula.number(1.0);
    let minus_half = formula.number(-0.5);
    let flat = formula.fma(square, minus_half, one);

    let series = coefficients_at(formula, (SIN_SINGLE, SIN_DOUBLE), square);
    let cube = formula.mul(r, square);
    let tail = formula.mul(low, flat);
    let sine = Pair {
        high: r,
        low: formula.fma(cube, series, tail),
    };

    let series = coefficients_at(formula, (COS_SINGLE, COS_DOUBLE), square);
    let fourth = formula.mul(square, square);
    // Exact: what rounding `flat` lost, and what rounding the square did.
    let lost = formula.sub(one, flat);
    let lost = formula.fma(square, minus_half, lost);
    let negated = formula.neg(square);
    let square_low = formula.fma(r, r, negated);
    let lost = formula.fma(square_low, minus_half, lost);
    let curve = formula.fma(fourth, series, lost);
    let negated = formula.neg(low);
    let cosine = Pair {
        high: flat,
        low: formula.fma(negated, r, curve),
    };
    (sine, cosine)
}

/// The polynomial of the format at `x`.
fn coefficients_at(
    formula: &mut Formula<'_>,
    (single, double): (&[f32], &[f64]),
    x: Value,
) -> Value {
    match formula.format {
        Format::Single => formula.horner(single.iter().map(|&c| f64::from(c)), x),
        Format::Double => formula.horner(double.iter().copied(), x),
    }
}
