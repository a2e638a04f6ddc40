//! sinh and cosh from half of `e^|x|` as a sum of two numbers, and their inverses by log1p in `f64`.

use super::Meaning;
use super::coefficients::SINH_SINGLE;
use super::exponential::quarter_exp;
use super::formula::Formula;
use super::logarithm::log1p;
use crate::ir::{CompareOp, Value};

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

pub(super) const SINH: Meaning = Meaning::single(
    sinh,
    f64::sinh,
    1.0,
    &[
        (0.0, 0.0),
        (-0.0, -0.0),
        (INF, INF),
        (-INF, -INF),
        (1e30, INF),
    ],
);

pub(super) const COSH: Meaning = Meaning {
    values: Some(|_| (1.0, INF)),
    ..Meaning::single(
        cosh,
        f64::cosh,
        1.0,
        &[(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, INF)],
    )
};

pub(super) const ASINH: Meaning = Meaning::single(
    |formula, x| formula.in_double(x, asinh),
    f64::asinh,
    0.5001,
    &[(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF)],
);

pub(super) const ACOSH: Meaning = Meaning::single(
    |formula, x| formula.in_double(x, acosh),
    f64::acosh,
    0.5001,
    &[(1.0, 0.0), (0.5, NAN), (-INF, NAN), (INF, INF)],
);

pub(super) const ATANH: Meaning = Meaning::single(
    |formula, x| formula.in_double(x, atanh),
    f64::atanh,
    0.5001,
    &[
        (0.0, 0.0),
        (-0.0, -0.0),
        (1.0, INF),
        (-1.0, -INF),
        (2.0, NAN),
        (INF, NAN),
    ],
);

/// `sinh(x)`: an odd polynomial up to 1, beyond it `e^|x| / 2` less its part of 1/2.
fn sinh(formula: &mut Formula<'_>, x: Value) -> Value {
    let square = formula.mul(x, x);
    let series = formula.horner(SINH_SINGLE.iter().map(|&c| f64::from(c)), square);
    let cube = formula.mul(x, square);
    let near = formula.fma(cube, series, x);
    let magnitude = formula.abs(x);
    let (power, inverse) = quarter_exp(formula, magnitude);
    let low = formula.sub(power.low, inverse);
    let far = formula.add(power.high, low);
    let far = formula.add(far, far);
    let negated = formula.neg(far);
    let negative = formula.compare(CompareOp::Lt, x, 0.0);
    let far = formula.select(negative, negated, far);
    let is_far = formula.compare(CompareOp::Ge, magnitude, 1.0);
    // -0 would lose its sign in the sum.
    let is_zero = formula.compare(CompareOp::Eq, x, 0.0);
    let near = formula.select(is_zero, x, near);
    formula.select(is_far, far, near)
}

/// `cosh(x)`.
fn cosh(formula: &mut Formula<'_>, x: Value) -> Value {
    let magnitude = formula.abs(x);
    let (power, inverse) = quarter_exp(formula, magnitude);
    let low = formula.add(power.low, inverse);
    let half = formula.add(power.high, low);
    formula.add(half, half)
}

/// `log1p(a + a^2 / (1 + sqrt(1 + a^2)))` with `a = |x|`, in the sign of `x`.
fn asinh(formula: &mut Formula<'_>, x: Value) -> Value {
    let magnitude = formula.abs(x);
    let one = formula.number(1.0);
    let square = formula.mul(x, x);
    let sum = formula.add(square, one);
    let root = formula.sqrt(sum);
    let divisor = formula.add(root, one);
    let curve = formula.div(square, divisor);
    let less_one = formula.add(magnitude, curve);
    let result = log1p(formula, less_one);
    // inf / inf is no number.
    let is_infinite = formula.compare(CompareOp::Eq, magnitude, INF);
    let result = formula.select(is_infinite, magnitude, result);
    signed(formula, x, result)
}

/// `log1p(t + sqrt(t (t + 2)))` with `t = x - 1`.
fn acosh(formula: &mut Formula<'_>, x: Value) -> Value {
    let one = formula.number(1.0);
    let two = formula.number(2.0);
    let beyond = formula.sub(x, one);
    let sum = formula.add(beyond, two);
    let product = formula.mul(beyond, sum);
    let root = formula.sqrt(product);
    let less_one = formula.add(beyond, root);
    let result = log1p(formula, less_one);
    let below = formula.compare(CompareOp::Lt, x, 1.0);
    let nan = formula.number(NAN);
    formula.select(below, nan, result)
}

/// `log1p(2 a / (1 - a)) / 2` with `a = |x|`, in the sign of `x`.
fn atanh(formula: &mut Formula<'_>, x: Value) -> Value {
    let magnitude = formula.abs(x);
    let one = formula.number(1.0);
    let half = formula.number(0.5);
    let twice = formula.add(magnitude, magnitude);
    let rest = formula.sub(one, magnitude);
    let less_one = formula.div(twice, rest);
    let result = log1p(formula, less_one);
    let result = formula.mul(result, half);
    signed(formula, x, result)
}

/// `magnitude` in the sign of `x`, which a zero keeps.
pub(super) fn signed(formula: &mut Formula<'_>, x: Value, magnitude: Value) -> Value {
    let negated = formula.neg(magnitude);
    let negative = formula.compare(CompareOp::Lt, x, 0.0);
    let result = formula.select(negative, negated, magnitude);
    let is_zero = formula.compare(CompareOp::Eq, x, 0.0);
    formula.select(is_zero, x, result)
}
