//! Short forms for results that are rounded to 8 significant bits: by a device's approximate functions where an argument
//! is great, by few powers near zero.

use super::coefficients::{ERF_SHORT, LOG_ERFC, LOG1P_SHORT, SIGMOID_SHORT, TANH_SHORT};
use super::formula::Formula;
use crate::ir::{Approximate, CompareOp, Value};
use std::f64::consts::LOG2_E;

/// Sums of a [`sigmoid`] count in these units, so that their reciprocals are normal numbers where the function is not.
const UNIT_EXPONENT: i32 = -16;

/// From a magnitude of 1 on `r = 1 / (1 + e^|x|)` or `1 - r`.
pub(super) fn sigmoid(formula: &mut Formula<'_>, x: Value) -> Value {
    let one = formula.number(1.0);
    let half = formula.number(0.5);
    let square = formula.mul(x, x);
    let slope = series(formula, SIGMOID_SHORT, square);
    let near = formula.fma(slope, x, half);

    let magnitude = formula.abs(x);
    let unit = formula.number(f64::from(UNIT_EXPONENT).exp2());
    let offset = formula.number(f64::from(UNIT_EXPONENT));
    let log2_e = formula.number(LOG2_E);
    let exponent = formula.fma(magnitude, log2_e, offset);
    let power = formula.approximate(Approximate::NormalExp2, exponent);
    let inverse = inverse_of_sum(formula, power, unit);
    let below = formula.mul(inverse, unit);
    let above = formula.sub(one, below);
    let negative = formula.compare(CompareOp::Lt, x, 0.0);
    let far = formula.select(negative, below, above);
    let is_near = formula.compare(CompareOp::Lt, magnitude, 1.0);
    formula.select(is_near, near, far)
}

/// From a magnitude of 1/2 on `1 - 2 / (1 + e^(2|x|))` in the sign of `x`.
pub(super) fn tanh(formula: &mut Formula<'_>, x: Value) -> Value {
    let one = formula.number(1.0);
    let square = formula.mul(x, x);
    let curve = series(formula, TANH_SHORT, square);
    let slope = formula.fma(curve, square, one);
    // Keeps the sign of a zero.
    let near = formula.mul(slope, x);

    let minus_two = formula.number(-2.0);
    let magnitude = formula.abs(x);
    let twice_log2_e = formula.number(2.0 * LOG2_E);
    let exponent = formula.mul(magnitude, twice_log2_e);
    let power = formula.approximate(Approximate::NormalExp2, exponent);
    let inverse = inverse_of_sum(formula, power, one);
    let far = formula.fma(inverse, minus_two, one);
    let far = signed(formula, far, x);
    let is_near = formula.compare(CompareOp::Lt, magnitude, 0.5);
    formula.select(is_near, near, far)
}

/// Of an argument from 0 to 1.
pub(super) fn log1p(formula: &mut Formula<'_>, x: Value) -> Value {
    let series = series(formula, LOG1P_SHORT, x);
    let slope = formula.mul(series, x);
    formula.fma(slope, x, x)
}

/// From a magnitude of 1 on `1 - e^P(|x|)` in the sign of `x`.
pub(super) fn erf(formula: &mut Formula<'_>, x: Value) -> Value {
    let square = formula.mul(x, x);
    let slope = series(formula, ERF_SHORT, square);
    let near = formula.fma(slope, x, x);
    let one = formula.number(1.0);
    let magnitude = formula.abs(x);
    let limited = formula.number_at_most(magnitude, 4.0);
    let center = formula.number(1.25);
    let from_center = formula.sub(limited, center);
    // As in the definition: sums of the function with 1 show the last bit of numbers near -1.
    let log_erfc = formula.polynomial(LOG_ERFC, from_center);
    let log2_e = formula.number(LOG2_E);
    let log2_erfc = formula.mul(log_erfc, log2_e);
    let erfc = formula.approximate(Approximate::NormalExp2, log2_erfc);
    let far = formula.sub(one, erfc);
    let far = signed(formula, far, x);
    // NaN is in `near`.
    let is_far = formula.compare(CompareOp::Ge, magnitude, 1.0);
    formula.select(is_far, far, near)
}

fn series(formula: &mut Formula<'_>, coefficients: &[f32], x: Value) -> Value {
    formula.horner(coefficients.iter().map(|&c| f64::from(c)), x)
}

fn inverse_of_sum(formula: &mut Formula<'_>, lhs: Value, rhs: Value) -> Value {
    let sum = formula.add(lhs, rhs);
    formula.approximate(Approximate::NormalReciprocal, sum)
}

/// `magnitude` in the sign of `x`.
fn signed(formula: &mut Formula<'_>, magnitude: Value, x: Value) -> Value {
    let negated = formula.neg(magnitude);
    let negative = formula.compare(CompareOp::Lt, x, 0.0);
    formula.select(negative, negated, magnitude)
}
