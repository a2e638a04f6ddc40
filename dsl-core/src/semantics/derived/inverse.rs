//! asin, acos and atan.

use super::Meaning;
use super::coefficients::{ASIN_DOUBLE, ATAN_DOUBLE};
use super::formula::Formula;
use super::hyperbolic::signed;
use crate::ir::{CompareOp, Value};

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;
const HALF_PI: f64 = std::f64::consts::FRAC_PI_2;

pub(super) const ASIN: Meaning = Meaning::single(
    |formula, x| formula.in_double(x, asin),
    f64::asin,
    0.51,
    &[
        (0.0, 0.0),
        (-0.0, -0.0),
        (1.0, HALF_PI),
        (-1.0, -HALF_PI),
        (2.0, NAN),
        (-INF, NAN),
    ],
);

pub(super) const ACOS: Meaning = Meaning::single(
    |formula, x| formula.in_double(x, acos),
    f64::acos,
    0.51,
    &[
        (0.0, HALF_PI),
        (1.0, 0.0),
        (-1.0, std::f64::consts::PI),
        (2.0, NAN),
        (-INF, NAN),
    ],
);

pub(super) const ATAN: Meaning = Meaning {
    values: Some(|_| (-1.6, 1.6)),
    ..Meaning::single(
        |formula, x| formula.in_double(x, atan),
        f64::atan,
        0.51,
        &[(0.0, 0.0), (-0.0, -0.0), (INF, HALF_PI), (-INF, -HALF_PI)],
    )
};

/// `asin(|x|)`, or where that is above 1/2 `2 asin(sqrt((1 - |x|) / 2))`, which `pi/2` exceeds it by.
struct Arc {
    angle: Value,
    /// Whether the magnitude is above 1/2.
    is_steep: Value,
}

fn arc(formula: &mut Formula<'_>, magnitude: Value) -> Arc {
    let half = formula.number(0.5);
    let minus_half = formula.number(-0.5);
    let is_steep = formula.compare(CompareOp::Gt, magnitude, 0.5);
    let complement = formula.fma(magnitude, minus_half, half);
    let square = formula.mul(magnitude, magnitude);
    let square = formula.select(is_steep, complement, square);
    let root = formula.sqrt(complement);
    let base = formula.select(is_steep, root, magnitude);
    let series = formula.horner(ASIN_DOUBLE.iter().copied(), square);
    let cube = formula.mul(base, square);
    let angle = formula.fma(cube, series, base);
    let twice = formula.add(angle, angle);
    let angle = formula.select(is_steep, twice, angle);
    Arc { angle, is_steep }
}

/// Inverse of the sine.
fn asin(formula: &mut Formula<'_>, x: Value) -> Value {
    let magnitude = formula.abs(x);
    let arc = arc(formula, magnitude);
    let quarter = formula.number(HALF_PI);
    let complement = formula.sub(quarter, arc.angle);
    let angle = formula.select(arc.is_steep, complement, arc.angle);
    signed(formula, x, angle)
}

/// Inverse of the cosine.
fn acos(formula: &mut Formula<'_>, x: Value) -> Value {
    let magnitude = formula.abs(x);
    let arc = arc(formula, magnitude);
    let negative = formula.compare(CompareOp::Lt, x, 0.0);
    let negated = formula.neg(arc.angle);
    // Of a steep one the distance from 0 or pi, else from pi/2.
    let down = formula.xor(negative, arc.is_steep);
    let offset = formula.select(down, arc.angle, negated);
    let zero = formula.number(0.0);
    let quarter = formula.number(HALF_PI);
    let half_turn = formula.number(std::f64::consts::PI);
    let end = formula.select(negative, half_turn, zero);
    let start = formula.select(arc.is_steep, end, quarter);
    formula.add(start, offset)
}

/// Inverse of the tangent: an odd polynomial up to 1, beyond it what that of `1 / |x|` leaves to pi/2.
fn atan(formula: &mut Formula<'_>, x: Value) -> Value {
    let magnitude = formula.abs(x);
    let one = formula.number(1.0);
    let inverse = formula.div(one, magnitude);
    let is_far = formula.compare(CompareOp::Gt, magnitude, 1.0);
    let base = formula.select(is_far, inverse, magnitude);
    let near = atan_near(formula, base);
    let quarter = formula.number(HALF_PI);
    let far = formula.sub(quarter, near);
    let angle = formula.select(is_far, far, near);
    signed(formula, x, angle)
}

/// Inverse of the tangent of a magnitude up to 1, in `f64` with more digits than an `f32` has.
pub(super) fn atan_near(formula: &mut Formula<'_>, x: Value) -> Value {
    let square = formula.mul(x, x);
    let series = formula.horner(ATAN_DOUBLE.iter().copied(), square);
    let cube = formula.mul(x, square);
    formula.fma(cube, series, x)
}
