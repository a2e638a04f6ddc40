//! Bessel functions of orders 0 and 1, in `f64`, rounded once.
//!
//! Up to 8 by polynomials, which of J have the zeros as factors, so that nothing is lost beside them; beyond by the wave of
//! Hankel's expansion, whose angle is reduced as that of a sine is, and of I by the exponential function.

use super::Meaning;
use super::bessel_coefficients::{
    I0_FAR, I0_NEAR, I1_FAR, I1_NEAR, J0_NEAR, J1_NEAR, P0_FAR, P1_FAR, Q0_FAR, Q1_FAR, Y0_NEAR,
    Y1_NEAR,
};
use super::exponential::exp;
use super::formula::{Format, Formula};
use super::logarithm::log;
use super::trigonometric::sine_and_cosine_behind;
use crate::builder::Builder;
use crate::ir::{CompareOp, Value};
use crate::semantics::oracle::bessel;

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

pub(super) const J0: Meaning = Meaning::single(
    |formula, x| formula.in_double(x, j0),
    bessel::j0,
    0.51,
    &[(0.0, 1.0), (-0.0, 1.0), (INF, 0.0), (-INF, 0.0)],
);

pub(super) const J1: Meaning = Meaning::single(
    |formula, x| formula.in_double(x, j1),
    bessel::j1,
    0.51,
    &[(0.0, 0.0), (-0.0, -0.0), (INF, 0.0), (-INF, 0.0)],
);

pub(super) const Y0: Meaning = Meaning::single(
    |formula, x| formula.in_double(x, y0),
    bessel::y0,
    1.0,
    &[
        (0.0, -INF),
        (-0.0, -INF),
        (-1.0, NAN),
        (-INF, NAN),
        (INF, 0.0),
    ],
);

pub(super) const Y1: Meaning = Meaning::single(
    |formula, x| formula.in_double(x, y1),
    bessel::y1,
    1.0,
    &[
        (0.0, -INF),
        (-0.0, -INF),
        (-1.0, NAN),
        (-INF, NAN),
        (INF, 0.0),
    ],
);

pub(super) const I0: Meaning = Meaning::single(
    |formula, x| formula.in_double(x, i0),
    bessel::i0,
    0.51,
    &[(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, INF)],
);

pub(super) const I1: Meaning = Meaning::single(
    |formula, x| formula.in_double(x, i1),
    bessel::i1,
    0.51,
    &[(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF)],
);

/// J of orders 0 and 1 of an `f64`, nearly to all its digits.
pub fn first_kind(builder: &mut Builder, x: Value) -> [Value; 2] {
    let formula = &mut Formula::new(builder, x, Format::Double);
    [j0(formula, x), j1(formula, x)]
}

/// Y of orders 0 and 1 of an `f64`, nearly to all its digits.
pub fn second_kind(builder: &mut Builder, x: Value) -> [Value; 2] {
    let formula = &mut Formula::new(builder, x, Format::Double);
    [y0(formula, x), y1(formula, x)]
}

/// Up to here the polynomials are near.
const NEAR: f64 = 8.0;

/// From here on I is infinite in `f32`.
const GREATEST: f64 = 100.0;

/// A zero of a function, as a number and what that lacks.
type Zero = (f64, f64);

const J0_ZEROS: [Zero; 2] = [
    (2.404_825_557_695_773, -1.176_691_651_530_894e-16),
    (5.520_078_110_286_311, 8.088_597_146_146_722e-17),
];

const J1_ZEROS: [Zero; 2] = [
    (3.831_705_970_207_512_5, -1.526_918_409_008_806_7e-16),
    (7.015_586_669_815_619, -9.414_165_653_410_389e-17),
];

/// What a polynomial for magnitudes up to 8 takes.
fn place(formula: &mut Formula<'_>, x: Value) -> Value {
    let part = formula.number(1.0 / 32.0);
    let minus_one = formula.number(-1.0);
    let scaled = formula.mul(x, part);
    formula.fma(x, scaled, minus_one)
}

fn near(formula: &mut Formula<'_>, coefficients: &[f64], x: Value) -> Value {
    let place = place(formula, x);
    formula.horner(coefficients.iter().copied(), place)
}

/// The product of `x^2 - r^2` over some zeros: the differences of a number from what is near it are exact.
fn factors(formula: &mut Formula<'_>, zeros: [Zero; 2], x: Value) -> Value {
    let y = formula.abs(x);
    let [first, second] = zeros.map(|(high, low)| {
        let [high, low] = [high, low].map(|part| formula.number(part));
        let below = formula.sub(y, high);
        let below = formula.sub(below, low);
        let above = formula.add(y, high);
        formula.mul(below, above)
    });
    formula.mul(first, second)
}

fn j0_near(formula: &mut Formula<'_>, x: Value) -> Value {
    let factors = factors(formula, J0_ZEROS, x);
    let series = near(formula, J0_NEAR, x);
    formula.mul(factors, series)
}

fn j1_near(formula: &mut Formula<'_>, x: Value) -> Value {
    let factors = factors(formula, J1_ZEROS, x);
    let series = near(formula, J1_NEAR, x);
    let product = formula.mul(factors, series);
    formula.mul(x, product)
}

/// What is beyond 8: `sqrt(2 / (pi x))`, sine and cosine of `x - pi / 4`, and P and Q of an order. Sums of those of `x` would
/// lose what is left near a zero.
struct Wave {
    size: Value,
    sine: Value,
    cosine: Value,
    p: Value,
    q: Value,
}

fn wave(formula: &mut Formula<'_>, y: Value, [p, q]: [&[f64]; 2]) -> Wave {
    let [sine, cosine] = sine_and_cosine_behind(formula, y);
    let [two, eight, pi, size] =
        [2.0, 8.0, std::f64::consts::PI, std::f64::consts::SQRT_2].map(|it| formula.number(it));
    let minus_one = formula.number(-1.0);
    let part = formula.div(eight, y);
    let square = formula.mul(part, part);
    let place = formula.fma(square, two, minus_one);
    let area = formula.mul(y, pi);
    let root = formula.sqrt(area);
    let q = formula.horner(q.iter().copied(), place);
    Wave {
        size: formula.div(size, root),
        sine,
        cosine,
        p: formula.horner(p.iter().copied(), place),
        q: formula.mul(q, part),
    }
}

/// `size (p a + q b)`; 0 where the argument is infinite.
fn beyond(formula: &mut Formula<'_>, y: Value, wave: &Wave, [a, b]: [Value; 2]) -> Value {
    let second = formula.mul(wave.q, b);
    let both = formula.fma(wave.p, a, second);
    let value = formula.mul(wave.size, both);
    let zero = formula.number(0.0);
    let is_infinite = formula.compare(CompareOp::Eq, y, INF);
    formula.select(is_infinite, zero, value)
}

/// J of order 0.
fn j0(formula: &mut Formula<'_>, x: Value) -> Value {
    let y = formula.abs(x);
    let near = j0_near(formula, x);
    let wave = wave(formula, y, [P0_FAR, Q0_FAR]);
    let negated = formula.neg(wave.sine);
    let far = beyond(formula, y, &wave, [wave.cosine, negated]);
    let is_near = formula.compare(CompareOp::Lt, y, NEAR);
    formula.select(is_near, near, far)
}

/// J of order 1, which is odd.
fn j1(formula: &mut Formula<'_>, x: Value) -> Value {
    let y = formula.abs(x);
    let near = j1_near(formula, x);
    let wave = wave(formula, y, [P1_FAR, Q1_FAR]);
    let far = beyond(formula, y, &wave, [wave.sine, wave.cosine]);
    let far = odd(formula, x, y, far);
    let is_near = formula.compare(CompareOp::Lt, y, NEAR);
    formula.select(is_near, near, far)
}

/// A value of a magnitude as that of an odd function; infinities, of which it is zero, keep +0.
fn odd(formula: &mut Formula<'_>, x: Value, y: Value, value: Value) -> Value {
    let negated = formula.neg(value);
    let is_negative = formula.compare(CompareOp::Lt, x, 0.0);
    let is_finite = formula.compare(CompareOp::Lt, y, INF);
    let is_negated = formula.and(is_negative, is_finite);
    formula.select(is_negated, negated, value)
}

/// Y of order 0.
fn y0(formula: &mut Formula<'_>, x: Value) -> Value {
    let share = formula.number(std::f64::consts::FRAC_2_PI);
    let series = near(formula, Y0_NEAR, x);
    let j = j0_near(formula, x);
    let j = formula.mul(share, j);
    let logarithm = log(formula, x);
    let near = formula.fma(logarithm, j, series);
    let wave = wave(formula, x, [P0_FAR, Q0_FAR]);
    let far = beyond(formula, x, &wave, [wave.sine, wave.cosine]);
    // A negative number is near, and has no logarithm.
    let is_near = formula.compare(CompareOp::Lt, x, NEAR);
    formula.select(is_near, near, far)
}

/// Y of order 1.
fn y1(formula: &mut Formula<'_>, x: Value) -> Value {
    let [one, share] = [1.0, std::f64::consts::FRAC_2_PI].map(|it| formula.number(it));
    let series = near(formula, Y1_NEAR, x);
    let series = formula.mul(x, series);
    let j = j1_near(formula, x);
    let logarithm = log(formula, x);
    let inverse = formula.div(one, x);
    let inverse = formula.neg(inverse);
    let pole = formula.fma(logarithm, j, inverse);
    let near = formula.fma(share, pole, series);
    let minus_infinity = formula.number(-INF);
    let is_zero = formula.compare(CompareOp::Eq, x, 0.0);
    let near = formula.select(is_zero, minus_infinity, near);
    let wave = wave(formula, x, [P1_FAR, Q1_FAR]);
    let negated = formula.neg(wave.cosine);
    let far = beyond(formula, x, &wave, [negated, wave.sine]);
    let is_near = formula.compare(CompareOp::Lt, x, NEAR);
    formula.select(is_near, near, far)
}

/// `e^y / sqrt(y)` times a polynomial, from 8 on.
fn growth(formula: &mut Formula<'_>, y: Value, coefficients: &[f64]) -> Value {
    let y = formula.at_most(y, GREATEST);
    let [sixteen, minus_one] = [16.0, -1.0].map(|it| formula.number(it));
    let part = formula.div(sixteen, y);
    let place = formula.add(part, minus_one);
    let series = formula.horner(coefficients.iter().copied(), place);
    let power = exp(formula, y);
    let root = formula.sqrt(y);
    let share = formula.div(series, root);
    formula.mul(power, share)
}

/// I of order 0.
fn i0(formula: &mut Formula<'_>, x: Value) -> Value {
    let y = formula.abs(x);
    let near = near(formula, I0_NEAR, x);
    let far = growth(formula, y, I0_FAR);
    let is_near = formula.compare(CompareOp::Lt, y, NEAR);
    formula.select(is_near, near, far)
}

/// I of order 1, which is odd.
fn i1(formula: &mut Formula<'_>, x: Value) -> Value {
    let y = formula.abs(x);
    let series = near(formula, I1_NEAR, x);
    let near = formula.mul(x, series);
    let far = growth(formula, y, I1_FAR);
    let negated = formula.neg(far);
    let is_negative = formula.compare(CompareOp::Lt, x, 0.0);
    let far = formula.select(is_negative, negated, far);
    let is_near = formula.compare(CompareOp::Lt, y, NEAR);
    formula.select(is_near, near, far)
}
