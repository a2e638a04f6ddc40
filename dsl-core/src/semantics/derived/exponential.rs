//! exp, exp2, and what follows from exp: sigmoid and tanh.
//!
//! `x = n ln 2 + r` with `n` an integer (W. J. Cody and W. Waite, Software Manual for the
//! Elementary Functions, 1980), `e^r = 1 + r + r^2 EXP(r)`, then `2^n` by two exact factors, so
//! that a subnormal result rounds once.

use super::coefficients::{EXP, EXP2, LN_2_HIGH, LN_2_LOW, LOG2_E_HIGH};
use super::formula::{Format, Formula};
use crate::ir::{CompareOp, Value};

/// `x = n ln 2 + (rest + tail)`; `n` as [`Formula::two_powers`] takes it, `rest` at most about ln 2 / 2.
struct Reduced {
    exponent_bits: Value,
    rest: Value,
    tail: Value,
}

/// Beyond these arguments `e^x` is 0 or infinite, and `n` still has its factors.
const fn exp_limits(format: Format) -> (f64, f64) {
    match format {
        Format::Single => (-104.5, 89.5),
        Format::Double => (-746.0, 710.0),
    }
}

/// Beyond these arguments `2^x` is 0 or infinite, and the exponent still has its factors.
const fn exp2_limits(format: Format) -> (f64, f64) {
    match format {
        Format::Single => (-151.0, 129.0),
        Format::Double => (-1076.0, 1025.0),
    }
}

/// `2^x`.
pub(super) fn exp2(formula: &mut Formula<'_>, x: Value) -> Value {
    let (least, greatest) = exp2_limits(formula.format);
    let x = formula.at_least(x, least);
    let limited = formula.at_most(x, greatest);
    let magic = formula.number(formula.format.magic());
    let sum = formula.add(limited, magic);
    let rounded = formula.rounded(sum);
    let rest = formula.sub(x, rounded.whole);
    let slope = formula.polynomial(EXP2, rest);
    let one = formula.number(1.0);
    let power = formula.fma(slope, rest, one);
    let factors = formula.two_powers(rounded.bits);
    let zero_below = match formula.format {
        Format::Single => -150.0,
        Format::Double => -1075.0,
    };
    scale_or_zero(formula, power, factors, (x, zero_below))
}

/// `power * factors[0] * factors[1]`, which is known to round to 0 where the argument is below the
/// limit. There the last factor is 0: a product that underflows takes a CPU some 150 cycles, and
/// masked elements of a softmax are all of that kind.
fn scale_or_zero(
    formula: &mut Formula<'_>,
    power: Value,
    [first, last]: [Value; 2],
    (argument, limit): (Value, f64),
) -> Value {
    let vanishes = formula.compare(CompareOp::Lt, argument, limit);
    let zero = formula.number(0.0);
    let last = formula.select(vanishes, zero, last);
    formula.scale(power, [first, last])
}

/// `e^x`.
pub(super) fn exp(formula: &mut Formula<'_>, x: Value) -> Value {
    let (least, greatest) = exp_limits(formula.format);
    let x = formula.at_least(x, least);
    let limited = formula.at_most(x, greatest);
    let reduced = reduce(formula, x, limited);
    let power = power(formula, &reduced);
    let factors = formula.two_powers(reduced.exponent_bits);
    let zero_below = match formula.format {
        Format::Single => -104.0,
        Format::Double => -745.5,
    };
    scale_or_zero(formula, power, factors, (x, zero_below))
}

/// `e^x` where it is a normal number.
pub(super) fn exp_normal(formula: &mut Formula<'_>, x: Value) -> Value {
    let reduced = reduce(formula, x, x);
    let power = power(formula, &reduced);
    let factor = formula.power_of_two(reduced.exponent_bits);
    formula.mul(power, factor)
}

/// `e^rest`.
fn power(formula: &mut Formula<'_>, reduced: &Reduced) -> Value {
    let one = formula.number(1.0);
    let series = formula.polynomial(EXP, reduced.rest);
    let slope = formula.fma(series, reduced.rest, one);
    formula.fma(slope, reduced.rest, one)
}

/// `n` comes from `limited`, which is `x` wherever `e^x` is finite, and never NaN so that no lowering
/// must canonicalise it. `rest` comes from `x`: NaN goes into the polynomial, and an `x` above the
/// limit makes it huge and positive.
fn reduce(formula: &mut Formula<'_>, x: Value, limited: Value) -> Reduced {
    let log2_e = formula.constant(LOG2_E_HIGH);
    let magic = formula.number(formula.format.magic());
    let sum = formula.fma(limited, log2_e, magic);
    let rounded = formula.rounded(sum);
    // Exact: x and n ln 2 agree in their leading bits, and both are multiples of a unit that the
    // difference has room for.
    let high = formula.negated(LN_2_HIGH);
    let high = formula.fma(rounded.whole, high, x);
    let low = formula.negated(LN_2_LOW);
    let rest = formula.fma(rounded.whole, low, high);
    let lost = formula.sub(high, rest);
    let tail = formula.fma(rounded.whole, low, lost);
    Reduced {
        exponent_bits: rounded.bits,
        rest,
        tail,
    }
}

/// An unevaluated sum.
struct Pair {
    high: Value,
    low: Value,
}

/// `e^rest - 1` of a reduced argument, as a sum exact to about half as many bits again.
fn expm1_rest(formula: &mut Formula<'_>, reduced: &Reduced) -> Pair {
    let series = formula.polynomial(EXP, reduced.rest);
    let square = formula.mul(reduced.rest, reduced.rest);
    let curve = formula.fma(series, square, reduced.tail);
    fast_sum(formula, reduced.rest, curve)
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
pub(super) fn sigmoid(formula: &mut Formula<'_>, x: Value) -> Value {
    let magnitude = formula.abs(x);
    let argument = formula.neg(magnitude);
    let (least, _) = exp_limits(formula.format);
    let argument = formula.at_least(argument, least);
    let limited = formula.at_most(argument, 0.0);
    let reduced = reduce(formula, argument, limited);
    let less_one = expm1_rest(formula, &reduced);
    let one = formula.number(1.0);
    let zero = formula.number(0.0);
    let power = fast_sum(formula, one, less_one.high);
    let power_low = formula.add(power.low, less_one.low);
    let factors = formula.two_powers(reduced.exponent_bits);
    let t = formula.scale(power.high, factors);
    let t_low = formula.scale(power_low, factors);
    let sum = fast_sum(formula, one, t);
    let sum_low = formula.add(sum.low, t_low);

    let positive = formula.compare(CompareOp::Ge, x, 0.0);
    let numerator = formula.select(positive, one, t);
    let numerator_low = formula.select(positive, zero, t_low);
    let quotient = formula.div(numerator, sum.high);
    let negated = formula.neg(quotient);
    let remainder = formula.fma(negated, sum.high, numerator);
    let low = formula.fma(negated, sum_low, numerator_low);
    let remainder = formula.add(remainder, low);
    // 1 / (1 + t) is the quotient itself, or what it lacks to 1.
    let complement = formula.sub(one, quotient);
    let reciprocal = formula.select(positive, quotient, complement);
    let corrected = formula.fma(remainder, reciprocal, quotient);
    // Where 1 + t rounds to 1 the quotient is t; its remainder would be lost among subnormals.
    let far = sigmoid_limits(formula.format);
    let is_far = formula.compare(CompareOp::Lt, argument, far);
    formula.select(is_far, numerator, corrected)
}

/// `sinh(x) / cosh(x)` as `-m / (m + 2)` with `m = e^(-2|x|) - 1`, in the sign of `x`.
///
/// The quotient is corrected by what `m`, `m + 2` and the division lost.
pub(super) fn tanh(formula: &mut Formula<'_>, x: Value) -> Value {
    let magnitude = formula.abs(x);
    let (saturation, tiny) = tanh_limits(formula.format);
    let limited = formula.at_most(magnitude, saturation);
    let minus_two = formula.number(-2.0);
    let argument = formula.mul(limited, minus_two);
    let reduced = reduce(formula, argument, argument);
    let less_one = expm1_rest(formula, &reduced);
    let two = formula.number(2.0);
    let factor = formula.power_of_two(reduced.exponent_bits);
    let minus_one = formula.number(-1.0);
    let offset = fast_sum(formula, minus_one, factor);
    let m = formula.fma(less_one.high, factor, offset.high);
    let lost = formula.sub(offset.high, m);
    let lost = formula.fma(less_one.high, factor, lost);
    let lost = formula.add(lost, offset.low);
    let m_low = formula.fma(less_one.low, factor, lost);

    let sum = fast_sum(formula, two, m);
    let sum_low = formula.add(sum.low, m_low);
    let numerator = formula.neg(m);
    let quotient = formula.div(numerator, sum.high);
    // Minus what numerator - quotient * sum leaves.
    let remainder = formula.fma(quotient, sum.high, m);
    let low = formula.fma(quotient, sum_low, m_low);
    let remainder = formula.add(remainder, low);
    // 1 / sum is (1 + quotient) / 2.
    let half = formula.number(-0.5);
    let slope = formula.fma(quotient, half, half);
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

/// From the first magnitude on tanh is 1; below the second it is its argument.
const fn tanh_limits(format: Format) -> (f64, f64) {
    match format {
        Format::Single => (10.0, 0.000_122_070_312_5),
        Format::Double => (20.0, 0.000_000_003_725_290_298_461_914),
    }
}
