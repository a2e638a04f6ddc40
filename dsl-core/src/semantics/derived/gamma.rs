//! The gamma function and its logarithm, in `f64`, rounded once.
//!
//! From 8 on by Stirling's formula. Below, the recurrence leads to a magnitude from 1 to 3, where a polynomial
//! gives the logarithm over its two zeros; of negative numbers the reflection does.

use super::Meaning;
use super::coefficients::{HALF_TURNS_DOUBLE, LOG_GAMMA_DOUBLE, STIRLING_DOUBLE};
use super::exponential::exp;
use super::formula::Formula;
use super::logarithm::log;
use crate::ir::{CompareOp, Value};
use crate::semantics::oracle;

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

pub(super) const LGAMMA: Meaning = Meaning::single(
    |formula, x| formula.in_double(x, lgamma),
    oracle::gamma::lgamma,
    1.0,
    &[
        (1.0, 0.0),
        (2.0, 0.0),
        (0.0, INF),
        (-0.0, INF),
        (-1.0, INF),
        (-3.0, INF),
        (INF, INF),
        (-INF, INF),
    ],
);

pub(super) const TGAMMA: Meaning = Meaning::single(
    |formula, x| formula.in_double(x, tgamma),
    oracle::gamma::tgamma,
    0.5001,
    &[
        (1.0, 1.0),
        (2.0, 1.0),
        (3.0, 2.0),
        (4.0, 6.0),
        (0.0, INF),
        (-0.0, -INF),
        (-1.0, NAN),
        (-2.0, NAN),
        (INF, INF),
        (-INF, NAN),
    ],
);

/// log(2 pi) / 2.
const HALF_LOG_TWO_PI: f64 = 0.918_938_533_204_672_8;

/// log pi.
const LOG_PI: f64 = 1.144_729_885_849_400_2;

/// The least magnitude of Stirling's formula.
const GREAT: f64 = 8.0;

/// Greater magnitudes have the results of this one: no `f32` is as large, nor so small but zero.
const GREATEST: f64 = 100.0;

/// What gives the gamma function of a magnitude.
struct Parts {
    is_great: Value,
    /// Whether the magnitude is below 1.
    is_small: Value,
    /// The magnitude if it is small, else the product of what the recurrence divided by.
    factor: Value,
    /// The logarithm after the recurrence, of a magnitude that is not great.
    near: Value,
}

fn parts(formula: &mut Formula<'_>, y: Value) -> Parts {
    let one = formula.number(1.0);
    let two = formula.number(2.0);
    let mut product = one;
    for step in 1..=5 {
        let step = f64::from(step);
        let reaches = formula.compare(CompareOp::Ge, y, step + 2.0);
        let step = formula.number(step);
        let factor = formula.sub(y, step);
        let factor = formula.select(reaches, factor, one);
        product = formula.mul(product, factor);
    }
    let is_small = formula.compare(CompareOp::Lt, y, 1.0);
    let is_moderate = formula.compare(CompareOp::Lt, y, 3.0);
    let whole = formula.trunc(y);
    let whole = formula.select(is_moderate, two, whole);
    let whole = formula.select(is_small, one, whole);
    // From -1 to 1, exactly but for the least magnitudes.
    let u = formula.sub(y, whole);
    let series = formula.horner(LOG_GAMMA_DOUBLE.iter().copied(), u);
    let next = formula.add(u, one);
    let zeros = formula.mul(u, next);
    Parts {
        is_great: formula.compare(CompareOp::Ge, y, GREAT),
        is_small,
        factor: formula.select(is_small, y, product),
        near: formula.mul(zeros, series),
    }
}

/// `(y - 1/2) log(y) - y + log(2 pi) / 2` and the rest, by the logarithm of `y`.
fn stirling(formula: &mut Formula<'_>, y: Value, logarithm: Value) -> Value {
    let half = formula.number(0.5);
    let one = formula.number(1.0);
    let offset = formula.number(HALF_LOG_TWO_PI);
    let less = formula.sub(y, half);
    let inverse = formula.div(one, y);
    let square = formula.mul(inverse, inverse);
    let series = formula.horner(STIRLING_DOUBLE.iter().copied(), square);
    let rest = formula.fma(series, inverse, offset);
    let rest = formula.sub(rest, y);
    formula.fma(less, logarithm, rest)
}

/// The distance of a magnitude to the nearest integer, and `sin(pi y)` up to its sign.
fn turns(formula: &mut Formula<'_>, y: Value) -> (Value, Value) {
    let half = formula.number(0.5);
    let sum = formula.add(y, half);
    let whole = formula.trunc(sum);
    let distance = formula.sub(y, whole);
    let square = formula.mul(distance, distance);
    let series = formula.horner(HALF_TURNS_DOUBLE.iter().copied(), square);
    (whole, formula.mul(distance, series))
}

/// `log |gamma(x)|`.
fn lgamma(formula: &mut Formula<'_>, x: Value) -> Value {
    let y = formula.abs(x);
    let parts = parts(formula, y);
    let argument = formula.select(parts.is_great, y, parts.factor);
    let logarithm = log(formula, argument);
    let far = stirling(formula, y, logarithm);
    let negated = formula.neg(logarithm);
    let near = formula.select(parts.is_small, negated, logarithm);
    let near = formula.add(parts.near, near);
    let positive = formula.select(parts.is_great, far, near);

    let (_, sine) = turns(formula, y);
    let sine = formula.abs(sine);
    let product = formula.mul(y, sine);
    let reflected = log(formula, product);
    let offset = formula.number(LOG_PI);
    let reflected = formula.sub(offset, reflected);
    let reflected = formula.sub(reflected, positive);
    let negative = formula.compare(CompareOp::Lt, x, 0.0);
    let result = formula.select(negative, reflected, positive);
    // inf - inf is no number.
    let is_infinite = formula.compare(CompareOp::Eq, y, INF);
    formula.select(is_infinite, y, result)
}

/// `gamma(x)`.
fn tgamma(formula: &mut Formula<'_>, x: Value) -> Value {
    let magnitude = formula.abs(x);
    let y = formula.at_most(magnitude, GREATEST);
    let parts = parts(formula, y);
    let logarithm = log(formula, y);
    let far = stirling(formula, y, logarithm);
    let exponent = formula.select(parts.is_great, far, parts.near);
    let power = exp(formula, exponent);
    let one = formula.number(1.0);
    let quotient = formula.div(power, parts.factor);
    let product = formula.mul(power, parts.factor);
    let near = formula.select(parts.is_small, quotient, product);
    let positive = formula.select(parts.is_great, power, near);

    let (whole, sine) = turns(formula, magnitude);
    let divisor = formula.mul(y, sine);
    let divisor = formula.mul(divisor, positive);
    let minus_pi = formula.number(-std::f64::consts::PI);
    let reflected = formula.div(minus_pi, divisor);
    let half = formula.number(0.5);
    let halved = formula.mul(whole, half);
    let even = formula.trunc(halved);
    let is_odd = formula.compare_values(CompareOp::Ne, even, halved);
    let negated = formula.neg(reflected);
    let reflected = formula.select(is_odd, negated, reflected);
    let nan = formula.number(NAN);
    let is_pole = formula.compare(CompareOp::Eq, sine, 0.0);
    let reflected = formula.select(is_pole, nan, reflected);
    let negative = formula.compare(CompareOp::Lt, x, 0.0);
    let result = formula.select(negative, reflected, positive);
    let inverse = formula.div(one, x);
    let is_zero = formula.compare(CompareOp::Eq, x, 0.0);
    formula.select(is_zero, inverse, result)
}
