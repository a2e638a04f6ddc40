//! exp, exp2, expm1, and what follows from exp: sigmoid and tanh.
//!
//! `x = n ln 2 + r` with `n` an integer (W. J. Cody and W. Waite, Software Manual for the
//! Elementary Functions, 1980), `e^r = 1 + r + r^2 EXP(r)`, then `2^n` by two exact factors, so
//! that a subnormal result rounds once.

use super::coefficients::{self, LN_2_HIGH, LN_2_LOW, LOG2_E_HIGH};
use super::formula::{Factors, Format, Formula, Rounded, Scaling};
use super::meaning::{Double, Tried};
use super::{Domain, Meaning, rounded};
use crate::ir::{Approximate, CompareOp, Value};
use crate::semantics::oracle::{Wide, wide};

const INF: f64 = f64::INFINITY;

pub(super) const EXP: Meaning = Meaning {
    define: exp,
    shorter: &[(Domain::NOT_POSITIVE, exp_not_positive)],
    approximate: Some(exp_approximate),
    native: None,
    rounded: None,
    reference: f64::exp,
    double: Some(Double {
        reference: wide::exp,
        max_ulp: 1.0,
    }),
    max_ulp: 0.8914,
    tried: Tried::All,
    values: Some(powers),
    special: &[
        (0.0, 1.0),
        (-0.0, 1.0),
        (INF, INF),
        (-INF, 0.0),
        (1e30, INF),
        (-1e30, 0.0),
    ],
};

pub(super) const EXP2: Meaning = Meaning {
    define: exp2,
    shorter: &[
        (Domain::HALF, exp2_near),
        (Domain::NOT_POSITIVE, exp2_not_positive),
    ],
    approximate: Some(|formula, x| formula.approximate(Approximate::Exp2, x)),
    native: None,
    rounded: None,
    reference: f64::exp2,
    double: Some(Double {
        reference: wide::exp2,
        max_ulp: 1.0,
    }),
    max_ulp: 0.8785,
    tried: Tried::All,
    values: Some(powers),
    special: &[
        (0.0, 1.0),
        (-0.0, 1.0),
        (INF, INF),
        (-INF, 0.0),
        (3.0, 8.0),
        (-2.0, 0.25),
    ],
};

pub(super) const SIGMOID: Meaning = Meaning {
    define: sigmoid,
    shorter: &[],
    approximate: Some(sigmoid_approximate),
    native: None,
    rounded: Some((Domain::ANYTHING, rounded::sigmoid)),
    reference: |x| {
        let t = (-x.abs()).exp();
        if x < 0.0 {
            t / (1.0 + t)
        } else {
            1.0 / (1.0 + t)
        }
    },
    double: Some(Double {
        reference: wide::sigmoid,
        max_ulp: 1.0,
    }),
    max_ulp: 0.863,
    tried: Tried::All,
    values: Some(|_| (0.0, 1.0)),
    special: &[
        (0.0, 0.5),
        (-0.0, 0.5),
        (INF, 1.0),
        (-INF, 0.0),
        (100.0, 1.0),
    ],
};

/// By the device's exp2 tanh would lose all digits near zero.
pub(super) const TANH: Meaning = Meaning {
    define: tanh,
    shorter: &[],
    approximate: None,
    native: None,
    rounded: Some((Domain::ANYTHING, rounded::tanh)),
    reference: f64::tanh,
    double: Some(Double {
        reference: wide::tanh,
        max_ulp: 0.9775,
    }),
    max_ulp: 0.8912,
    tried: Tried::All,
    values: Some(|_| (-1.0, 1.0)),
    special: &[
        (0.0, 0.0),
        (-0.0, -0.0),
        (INF, 1.0),
        (-INF, -1.0),
        (50.0, 1.0),
    ],
};

/// By the device's exp2 it would lose all digits near zero.
pub(super) const EXPM1: Meaning = Meaning {
    values: Some(|_| (-1.0, INF)),
    double: Some(Double {
        reference: |x| wide::expm1(Wide::new(x.max(-200.0))),
        max_ulp: 1.0,
    }),
    ..Meaning::single(
        expm1,
        f64::exp_m1,
        1.0,
        &[
            (0.0, 0.0),
            (-0.0, -0.0),
            (INF, INF),
            (-INF, -1.0),
            (-1e30, -1.0),
        ],
    )
};

/// Of no positive number the powers are at most 1, since their definitions round sums that are.
fn powers(greatest: f64) -> (f64, f64) {
    (0.0, if greatest <= 0.0 { 1.0 } else { INF })
}

/// `x = n ln 2 + (rest + tail)` with `rest` at most about ln 2 / 2, and `2^n`.
struct Reduced<P> {
    power: P,
    rest: Value,
    tail: Value,
}

/// At the first argument, and so below it, `e^x` is 0 by its factor and not by an underflow, which
/// takes a CPU some 150 cycles: masked elements of a softmax are all of that kind. Beyond the second
/// it is infinite.
const fn exp_limits(format: Format) -> (f64, f64) {
    match format {
        Format::Single => (-132.4, 89.5),
        Format::Double => (-1064.0, 710.0),
    }
}

/// As [`exp_limits`], for `2^x`.
pub(super) const fn exp2_limits(format: Format) -> (f64, f64) {
    let greatest = match format {
        Format::Single => 129.0,
        Format::Double => 1025.0,
    };
    (format.vanishing_exponent(), greatest)
}

/// An argument within limits. NaN stays NaN, and the power is NaN then, whatever became of its factors.
pub(super) fn limited(formula: &mut Formula<'_>, x: Value, (least, greatest): (f64, f64)) -> Value {
    let x = formula.at_least(x, least);
    formula.at_most(x, greatest)
}

/// `2^x`.
pub(super) fn exp2(formula: &mut Formula<'_>, x: Value) -> Value {
    let limits = exp2_limits(formula.format);
    let x = limited(formula, x, limits);
    let scaling = formula.scaling(x);
    let rounded = formula.rounded(scaling, x, None);
    let rest = formula.sub(x, rounded.whole);
    let power = exp2_near(formula, rest);
    formula.scale(power, rounded.power)
}

/// `2^x` for `x` of magnitude up to 1/2, in the same bits.
fn exp2_near(formula: &mut Formula<'_>, x: Value) -> Value {
    let slope = formula.polynomial(coefficients::EXP2, x);
    let one = formula.number(1.0);
    formula.fma(slope, x, one)
}

/// `2^x` for `x` that is not positive, in the same bits: the last factor is in the coefficients, whose
/// sums round alike since none of them is near the least number.
fn exp2_not_positive(formula: &mut Formula<'_>, x: Value) -> Value {
    let (least, _) = exp2_limits(formula.format);
    let x = formula.at_least(x, least);
    let scaling = formula.scaling_down();
    let rounded = formula.rounded(scaling, x, None);
    let rest = formula.sub(x, rounded.whole);
    let slope = formula.polynomial_scaled_down(coefficients::EXP2, rest);
    let one = formula.unit_down();
    let power = formula.fma(slope, rest, one);
    formula.mul(power, rounded.power[0])
}

/// `e^x` for `x` that is not positive, in the same bits; see [`exp2_not_positive`].
fn exp_not_positive(formula: &mut Formula<'_>, x: Value) -> Value {
    let (least, _) = exp_limits(formula.format);
    let x = formula.at_least(x, least);
    let reduced = reduce_down(formula, x);
    let one = formula.unit_down();
    let series = formula.polynomial_scaled_down(coefficients::EXP, reduced.rest);
    let slope = formula.fma(series, reduced.rest, one);
    let power = formula.fma(slope, reduced.rest, one);
    formula.mul(power, reduced.power[0])
}

/// `e^x`.
pub(super) fn exp(formula: &mut Formula<'_>, x: Value) -> Value {
    let limits = exp_limits(formula.format);
    let x = limited(formula, x, limits);
    let scaling = formula.scaling(x);
    let reduced = reduce(formula, x, scaling);
    let power = power(formula, reduced.rest);
    formula.scale(power, reduced.power)
}

/// `e^x` for `x` of magnitude up to 40.
pub(super) fn exp_near(formula: &mut Formula<'_>, x: Value) -> Value {
    let reduced = reduce_near(formula, x, 1.0);
    let power = power(formula, reduced.rest);
    formula.mul(power, reduced.power)
}

/// `e^rest`.
fn power(formula: &mut Formula<'_>, rest: Value) -> Value {
    let one = formula.number(1.0);
    let series = formula.polynomial(coefficients::EXP, rest);
    let slope = formula.fma(series, rest, one);
    formula.fma(slope, rest, one)
}

fn reduce(formula: &mut Formula<'_>, x: Value, scaling: Scaling) -> Reduced<Factors> {
    let log2_e = formula.constant(LOG2_E_HIGH);
    let rounded = formula.rounded(scaling, x, Some(log2_e));
    rest(formula, x, rounded, 1.0)
}

/// Reduces an argument of at most 40 that is not below the lower limit.
fn reduce_down(formula: &mut Formula<'_>, x: Value) -> Reduced<Factors> {
    let scaling = formula.scaling_down();
    reduce(formula, x, scaling)
}

/// Reduces `x * step` of magnitude up to 40, `step` being a power of two or its negative: the rest and the
/// tail are `1 / step` of what they are, which changes no rounding.
fn reduce_near(formula: &mut Formula<'_>, x: Value, step: f64) -> Reduced<Value> {
    let log2_e = formula.scaled(LOG2_E_HIGH, step);
    let rounded = formula.rounded_near(x, log2_e);
    rest(formula, x, rounded, step)
}

/// What `n ln 2` leaves of `x * step`, times `1 / step`.
fn rest<P>(formula: &mut Formula<'_>, x: Value, rounded: Rounded<P>, step: f64) -> Reduced<P> {
    // Exact: x and n ln 2 agree in their leading bits, and both are multiples of a unit that the
    // difference has room for.
    let high = formula.scaled(LN_2_HIGH, -1.0 / step);
    let high = formula.fma(rounded.whole, high, x);
    let low = formula.scaled(LN_2_LOW, -1.0 / step);
    let rest = formula.fma(rounded.whole, low, high);
    let lost = formula.sub(high, rest);
    let tail = formula.fma(rounded.whole, low, lost);
    Reduced {
        power: rounded.power,
        rest,
        tail,
    }
}

/// An unevaluated sum.
pub(super) struct Pair {
    pub(super) high: Value,
    pub(super) low: Value,
}

/// What `e^rest - 1` of a reduced argument is beyond `rest`, all times `1 / step`.
fn curve<P>(formula: &mut Formula<'_>, reduced: &Reduced<P>, step: f64) -> Value {
    let series = formula.polynomial_scaled(coefficients::EXP, reduced.rest, (step, step));
    let square = formula.mul(reduced.rest, reduced.rest);
    formula.fma(series, square, reduced.tail)
}

/// As [`curve`], with what its square, its series and the product of the two would lose.
fn curve_of_pair<P>(formula: &mut Formula<'_>, reduced: &Reduced<P>) -> Value {
    let rest = reduced.rest;
    let square = formula.mul(rest, rest);
    let negated = formula.neg(square);
    let square_lost = formula.fma(rest, rest, negated);
    let (series, series_lost) = formula.horner_pair(coefficients::EXP.double, rest);
    let lost = formula.fma(square_lost, series, reduced.tail);
    let lost = formula.fma(square, series_lost, lost);
    formula.fma(square, series, lost)
}

/// `a + b` where the exponent of `a` is at least that of `b`, or `a` is zero.
fn fast_sum(formula: &mut Formula<'_>, a: Value, b: Value) -> Pair {
    let high = formula.add(a, b);
    let lost = formula.sub(a, high);
    let low = formula.add(lost, b);
    Pair { high, low }
}

/// `1 / (1 + e^-x)`, that is `t / (1 + t)` with `t = e^-|x|` for negative `x` and else `1 / (1 + t)`.
///
/// The quotient is corrected by what `t`, `1 + t` and the division lost.
fn sigmoid(formula: &mut Formula<'_>, x: Value) -> Value {
    let magnitude = formula.abs(x);
    let argument = formula.neg(magnitude);
    let (least, _) = exp_limits(formula.format);
    let argument = formula.at_least(argument, least);
    let reduced = reduce_down(formula, argument);
    let curve = curve(formula, &reduced, 1.0);
    let one = formula.number(1.0);
    let zero = formula.number(0.0);
    let less_one = formula.add(reduced.rest, curve);
    let power = formula.add(one, less_one);
    // Exact: what the power has beyond 1 is a multiple of its unit, and near to the rest.
    let beyond = formula.sub(power, one);
    let lost = formula.sub(reduced.rest, beyond);
    let power_low = formula.add(lost, curve);
    let t = formula.scale(power, reduced.power);
    let t_low = formula.scale(power_low, reduced.power);
    let sum = fast_sum(formula, one, t);
    let sum_low = formula.add(sum.low, t_low);

    let positive = formula.compare(CompareOp::Ge, x, 0.0);
    let numerator = formula.select(positive, one, t);
    // Far away 1 + t is 1, and what rounding to subnormals leaves of `t_low` is nothing to go by.
    let far = sigmoid_limits(formula.format);
    let is_far = formula.compare(CompareOp::Lt, argument, far);
    let is_whole = formula.or(positive, is_far);
    let numerator_low = formula.select(is_whole, zero, t_low);
    let quotient = formula.div(numerator, sum.high);
    let negated = formula.neg(quotient);
    let remainder = formula.fma(negated, sum.high, numerator);
    let low = formula.fma(negated, sum_low, numerator_low);
    let remainder = formula.add(remainder, low);
    // 1 / (1 + t) is the quotient itself, or what it lacks to 1.
    let complement = formula.sub(one, quotient);
    let reciprocal = formula.select(positive, quotient, complement);
    formula.fma(remainder, reciprocal, quotient)
}

/// `sinh(x) / cosh(x)` as `m / (1 - m)` with `m = (1 - e^(-2|x|)) / 2`, in the sign of `x`.
///
/// The quotient is corrected by what `m`, `1 - m` and the division lost.
fn tanh(formula: &mut Formula<'_>, x: Value) -> Value {
    let magnitude = formula.abs(x);
    let (saturation, tiny) = tanh_limits(formula.format);
    let limited = formula.number_at_most(magnitude, saturation);
    let reduced = reduce_near(formula, limited, -2.0);
    let curve = curve(formula, &reduced, -2.0);
    // Half of 1 - e^rest.
    let part = fast_sum(formula, reduced.rest, curve);
    let one = formula.number(1.0);
    let half = formula.number(0.5);
    let minus_half = formula.number(-0.5);
    let factor = reduced.power;
    let offset = formula.fma(factor, minus_half, half);
    let lost = formula.sub(half, offset);
    let offset_low = formula.fma(factor, minus_half, lost);
    let m = formula.fma(part.high, factor, offset);
    let lost = formula.sub(offset, m);
    let lost = formula.fma(part.high, factor, lost);
    let lost = formula.add(lost, offset_low);
    let m_low = formula.fma(part.low, factor, lost);

    let sum = formula.sub(one, m);
    let lost = formula.sub(one, sum);
    let sum_low = formula.sub(lost, m);
    let sum_low = formula.sub(sum_low, m_low);
    // No less where tanh is not its argument.
    let numerator = formula.at_least(m, tiny / 2.0);
    let quotient = formula.div(numerator, sum);
    // Minus what numerator - quotient * sum leaves.
    let negated = formula.neg(m);
    let remainder = formula.fma(quotient, sum, negated);
    let negated = formula.neg(m_low);
    let low = formula.fma(quotient, sum_low, negated);
    let remainder = formula.add(remainder, low);
    // 1 / (1 - m) is 1 + quotient.
    let minus_one = formula.number(-1.0);
    let slope = formula.fma(quotient, minus_one, minus_one);
    let corrected = formula.fma(remainder, slope, quotient);

    let negated = formula.neg(corrected);
    let negative = formula.compare(CompareOp::Lt, x, 0.0);
    let signed = formula.select(negative, negated, corrected);
    // Below tanh(x) is x to the last bit; this also keeps -0 and NaN.
    let is_curved = formula.compare(CompareOp::Ge, magnitude, tiny);
    formula.select(is_curved, signed, x)
}

/// Below this argument the sigmoid is `e^x`.
const fn sigmoid_limits(format: Format) -> f64 {
    match format {
        Format::Single => -80.0,
        Format::Double => -700.0,
    }
}

/// `e^x - 1` as `2 ((2^(n-1) - 1/2) + 2^(n-1) (e^rest - 1))`.
fn expm1(formula: &mut Formula<'_>, x: Value) -> Value {
    let (limits, tiny) = expm1_limits(formula.format);
    let limited = limited(formula, x, limits);
    let log2_e = formula.constant(LOG2_E_HIGH);
    let rounded = formula.rounded_less(limited, log2_e, 1);
    let reduced = rest(formula, limited, rounded, 1.0);
    let curve = match formula.format {
        Format::Single => curve(formula, &reduced, 1.0),
        Format::Double => curve_of_pair(formula, &reduced),
    };
    let part = fast_sum(formula, reduced.rest, curve);
    let factor = reduced.power;
    let half = formula.number(0.5);
    let offset = formula.sub(factor, half);
    // Exact: below 1/2 the difference is, and its rest is nothing.
    let offset_low = formula.sub(factor, offset);
    let offset_low = formula.sub(offset_low, half);
    let high = formula.fma(part.high, factor, offset);
    let lost = formula.sub(offset, high);
    let lost = formula.fma(part.high, factor, lost);
    let lost = formula.add(lost, offset_low);
    let low = formula.fma(part.low, factor, lost);
    let sum = formula.add(high, low);
    let result = formula.add(sum, sum);
    // Below expm1(x) is x to the last bit; this also keeps -0.
    let magnitude = formula.abs(x);
    let is_tiny = formula.compare(CompareOp::Lt, magnitude, tiny);
    formula.select(is_tiny, x, result)
}

/// Below the first argument `e^x - 1` is -1, beyond the second it is infinite; below a magnitude it is its argument.
const fn expm1_limits(format: Format) -> ((f64, f64), f64) {
    match format {
        Format::Single => ((-20.0, 88.8), 0.000_000_014_901_161_193_847_656),
        Format::Double => (
            (-40.0, 709.9),
            0.000_000_000_000_000_027_755_575_615_628_914,
        ),
    }
}

/// `e^x / 4` as a sum of two numbers, and `e^-x / 4`, for `x` that is not negative.
pub(super) fn quarter_exp(formula: &mut Formula<'_>, x: Value) -> (Pair, Value) {
    let limited = formula.at_most(x, 89.5);
    let log2_e = formula.constant(LOG2_E_HIGH);
    let rounded = formula.rounded_less(limited, log2_e, 2);
    let reduced = rest(formula, limited, rounded, 1.0);
    let curve = curve(formula, &reduced, 1.0);
    let part = fast_sum(formula, reduced.rest, curve);
    let factor = reduced.power;
    let high = formula.fma(part.high, factor, factor);
    let lost = formula.sub(factor, high);
    let lost = formula.fma(part.high, factor, lost);
    let low = formula.fma(part.low, factor, lost);
    let sixteenth = formula.number(0.0625);
    let inverse = formula.div(sixteenth, high);
    (Pair { high, low }, inverse)
}

/// From the first magnitude on tanh is 1; below the second it is its argument.
const fn tanh_limits(format: Format) -> (f64, f64) {
    match format {
        Format::Single => (10.0, 0.000_122_070_312_5),
        Format::Double => (20.0, 0.000_000_003_725_290_298_461_914),
    }
}

/// `2^(x log2 e)`.
fn exp_approximate(formula: &mut Formula<'_>, x: Value) -> Value {
    let log2_e = formula.number(std::f64::consts::LOG2_E);
    let scaled = formula.mul(x, log2_e);
    formula.approximate(Approximate::Exp2, scaled)
}

/// `1 / (1 + e^-x)` as it stands.
fn sigmoid_approximate(formula: &mut Formula<'_>, x: Value) -> Value {
    let negated = formula.neg(x);
    let power = exp_approximate(formula, negated);
    let one = formula.number(1.0);
    let sum = formula.add(power, one);
    formula.approximate(Approximate::Reciprocal, sum)
}
