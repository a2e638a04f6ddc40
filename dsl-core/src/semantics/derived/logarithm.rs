//! log, log1p, log2 and log10.
//!
//! `x = 2^k (1 + f)`; `log(1 + f)` by a polynomial in `f32` and by `2 atanh(f / (2 + f))` in `f64`
//! (as in the C library of P. Tang and FreeBSD); the sum with `k ln 2` keeps what it rounds off.

use super::coefficients::{
    ATANH_DOUBLE, LN_2_HIGH, LN_2_LOW, LOG_SINGLE, LOG2_E_HIGH, LOG2_E_LOW, LOG2_SINGLE,
    LOG10_SINGLE,
};
use super::formula::{Format, Formula};
use super::meaning::{Double, Tried};
use super::{Domain, Meaning, rounded};
use crate::ir::{Approximate, CompareOp, Literal, Value};
use crate::semantics::oracle::{Wide, wide};

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

pub(super) const LOG: Meaning = Meaning {
    define: log,
    shorter: &[],
    approximate: Some(log_approximate),
    native: None,
    rounded: None,
    reference: f64::ln,
    double: Some(Double {
        reference: wide::log,
        max_ulp: 0.7915,
    }),
    max_ulp: 0.8823,
    tried: Tried::All,
    values: None,
    special: &[
        (1.0, 0.0),
        (0.0, -INF),
        (-0.0, -INF),
        (INF, INF),
        (-INF, NAN),
        (-1.0, NAN),
    ],
};

/// By the device's log2 it would lose all digits near zero.
pub(super) const LOG1P: Meaning = Meaning {
    define: log1p,
    shorter: &[(Domain::FRACTION, log1p_fraction)],
    approximate: None,
    native: None,
    rounded: Some((Domain::FRACTION, rounded::log1p)),
    reference: f64::ln_1p,
    double: Some(Double {
        reference: |x| {
            let sum = Wide::sum(1.0, x);
            // log(1 + r) = r - r^2 / 2 for what the rounded sum lacks.
            let lost = Wide::new(sum.low).div(Wide::new(sum.high));
            let curve = lost.mul(lost).mul(Wide::new(-0.5));
            wide::log(sum.high).add(lost).add(curve)
        },
        max_ulp: 0.8245,
    }),
    max_ulp: 0.8823,
    tried: Tried::All,
    values: None,
    special: &[
        (0.0, 0.0),
        (-0.0, -0.0),
        (-1.0, -INF),
        (-2.0, NAN),
        (INF, INF),
        (-INF, NAN),
    ],
};

pub(super) const LOG2: Meaning = Meaning {
    define: log2,
    shorter: &[],
    approximate: Some(|formula, x| formula.approximate(Approximate::Log2, x)),
    native: None,
    rounded: None,
    reference: f64::log2,
    double: Some(Double {
        reference: wide::log2,
        max_ulp: 0.8332,
    }),
    max_ulp: 0.75,
    tried: Tried::All,
    values: None,
    special: &[
        (1.0, 0.0),
        (0.0, -INF),
        (-0.0, -INF),
        (INF, INF),
        (-1.0, NAN),
        (8.0, 3.0),
    ],
};

pub(super) const LOG10: Meaning = Meaning {
    approximate: Some(log10_approximate),
    double: Some(Double {
        reference: wide::log10,
        max_ulp: 0.8252,
    }),
    ..Meaning::single(
        log10,
        f64::log10,
        0.8,
        &[
            (1.0, 0.0),
            (0.0, -INF),
            (-0.0, -INF),
            (INF, INF),
            (-1.0, NAN),
            (-INF, NAN),
        ],
    )
};

/// `x = 2^exponent (1 + fraction)`.
pub(super) struct Scaled {
    pub(super) exponent: Value,
    pub(super) fraction: Value,
}

/// Natural logarithm.
pub(super) fn log(formula: &mut Formula<'_>, x: Value) -> Value {
    logarithm(formula, x, None)
}

/// `log(1 + x)` as the logarithm of the rounded sum, corrected by what the sum lost.
pub(super) fn log1p(formula: &mut Formula<'_>, x: Value) -> Value {
    let one = formula.number(1.0);
    let sum = formula.add(one, x);
    let summand = formula.sub(sum, one);
    let rest = formula.sub(sum, summand);
    let of_one = formula.sub(one, rest);
    let of_x = formula.sub(x, summand);
    let lost = formula.add(of_one, of_x);
    let correction = formula.div(lost, sum);
    let result = logarithm(formula, sum, Some(correction));
    let is_zero = formula.compare(CompareOp::Eq, x, 0.0);
    formula.select(is_zero, x, result)
}

/// `log(1 + x)` for `x` from 0 to 1, in the same bits: the exponent is 0 or 1, and the only special number is
/// NaN, which the quotient hands on.
fn log1p_fraction(formula: &mut Formula<'_>, x: Value) -> Value {
    let one = formula.number(1.0);
    let zero = formula.number(0.0);
    let half = formula.number(0.5);
    let minus_one = formula.number(-1.0);
    let sum = formula.add(one, x);
    let summand = formula.sub(sum, one);
    let lost = formula.sub(x, summand);
    let correction = formula.div(lost, sum);
    let is_greater = formula.compare(CompareOp::Ge, sum, least_power(formula.format));
    let exponent = formula.select(is_greater, one, zero);
    let down = formula.select(is_greater, half, one);
    let fraction = formula.fma(sum, down, minus_one);
    let scaled = Scaled { exponent, fraction };
    let result = logarithm_of(formula, &scaled, Some(correction));
    let is_zero = formula.compare(CompareOp::Eq, x, 0.0);
    formula.select(is_zero, x, result)
}

/// Natural logarithm of a number, plus a correction that is small beside the number.
fn logarithm(formula: &mut Formula<'_>, x: Value, correction: Option<Value>) -> Value {
    let scaled = scale(formula, x);
    let result = logarithm_of(formula, &scaled, correction);
    special(formula, x, result)
}

fn logarithm_of(formula: &mut Formula<'_>, scaled: &Scaled, correction: Option<Value>) -> Value {
    let curve = curve(formula, scaled.fraction, LOG_SINGLE);
    let ln_2 = formula.constant(LN_2_HIGH);
    let ln_2_low = formula.constant(LN_2_LOW);
    let high = formula.fma(scaled.exponent, ln_2, scaled.fraction);
    let negated = formula.neg(high);
    // Exact: the product and `high` agree in their leading bits.
    let lost = formula.fma(scaled.exponent, ln_2, negated);
    let lost = formula.add(lost, scaled.fraction);
    let low = formula.fma(scaled.exponent, ln_2_low, lost);
    let low = match correction {
        Some(correction) => formula.add(low, correction),
        None => low,
    };
    let low = match curve {
        Curve::Product(series, square) => formula.fma(series, square, low),
        Curve::Whole(curve) => formula.add(curve, low),
    };
    formula.add(high, low)
}

/// Logarithm to base 2.
pub(super) fn log2(formula: &mut Formula<'_>, x: Value) -> Value {
    let scaled = scale(formula, x);
    let curve = curve(formula, scaled.fraction, LOG2_SINGLE);
    let log2_e = formula.constant(LOG2_E_HIGH);
    let log2_e_low = formula.constant(LOG2_E_LOW);
    let linear = formula.mul(scaled.fraction, log2_e);
    let negated = formula.neg(linear);
    let low = formula.fma(scaled.fraction, log2_e, negated);
    let low = formula.fma(scaled.fraction, log2_e_low, low);
    let low = match curve {
        Curve::Product(series, square) => formula.fma(series, square, low),
        Curve::Whole(curve) => formula.fma(curve, log2_e, low),
    };
    let high = formula.add(scaled.exponent, linear);
    // Exact: the exponent is zero or the greater one.
    let lost = formula.sub(scaled.exponent, high);
    let lost = formula.add(lost, linear);
    let low = formula.add(lost, low);
    let sum = formula.add(high, low);
    special(formula, x, sum)
}

/// Logarithm to base 10.
fn log10(formula: &mut Formula<'_>, x: Value) -> Value {
    let scaled = scale(formula, x);
    let unit = formula.number(std::f64::consts::LOG10_E);
    let unit_low = formula.number(log10_e_low(formula.format));
    let log10_2 = formula.number(LOG10_2_SHORT);
    let log10_2_low = formula.number(LOG10_2_LOW);
    let linear = formula.mul(scaled.fraction, unit);
    let negated = formula.neg(linear);
    let linear_low = formula.fma(scaled.fraction, unit, negated);
    let linear_low = formula.fma(scaled.fraction, unit_low, linear_low);
    let curve = curve(formula, scaled.fraction, LOG10_SINGLE);
    // Exact: the constant has 15 bits.
    let whole = formula.mul(scaled.exponent, log10_2);
    let high = formula.add(whole, linear);
    let lost = formula.sub(whole, high);
    let lost = formula.add(lost, linear);
    let low = formula.fma(scaled.exponent, log10_2_low, linear_low);
    let low = formula.add(low, lost);
    let low = match curve {
        Curve::Product(series, square) => formula.fma(series, square, low),
        Curve::Whole(curve) => formula.fma(curve, unit, low),
    };
    let result = formula.add(high, low);
    special(formula, x, result)
}

/// log10 2 in 15 bits.
const LOG10_2_SHORT: f64 = 0.301_025_390_625;

/// What that lacks.
const LOG10_2_LOW: f64 = 4.605_038_981_195_214e-6;

/// What log10 e rounded to the format lacks.
fn log10_e_low(format: Format) -> f64 {
    let log10_e = std::f64::consts::LOG10_E;
    match format {
        Format::Single => log10_e - f64::from(log10_e as f32),
        Format::Double => 1.098_319_650_216_765e-17,
    }
}

/// Bits of the least significand `1 + f`: 2/3, and sqrt(1/2) where `f / (2 + f)` must be small.
const fn least_bits(format: Format) -> u64 {
    match format {
        Format::Single => 0x3f2a_aaab,
        Format::Double => 0x3fe6_a09e_667f_3bcd,
    }
}

/// The least number of exponent 1: twice the least significand.
fn least_power(format: Format) -> f64 {
    let bits = least_bits(format) + (1 << format.significand());
    let literal = Literal::from_bits(format.float(), bits);
    literal.float().expect("broken invariant: a float")
}

/// The exponent and the fraction of a positive number.
pub(super) fn scale(formula: &mut Formula<'_>, x: Value) -> Scaled {
    let format = formula.format;
    let places = format.significand();
    let (least_normal, up) = match format {
        Format::Single => (f64::from(f32::MIN_POSITIVE), 8_388_608.0),
        Format::Double => (f64::MIN_POSITIVE, 4_503_599_627_370_496.0),
    };
    let subnormal = formula.compare(CompareOp::Lt, x, least_normal);
    let up = formula.number(up);
    let raised = formula.mul(x, up);
    let normal = formula.select(subnormal, raised, x);
    let bits = formula.bits_of(normal);
    // `(exponent + start) << places` plus what the significand's bits exceed the least ones by.
    let start = 2 * format.bias();
    let offset = (start << places) - least_bits(format);
    let offset = formula.integer(offset);
    let above = formula.add(bits, offset);
    let fraction_mask = formula.integer((1 << places) - 1);
    let excess = formula.and(above, fraction_mask);
    let least = formula.integer(least_bits(format));
    let significand_bits = formula.add(excess, least);
    let significand = formula.float_from(significand_bits);
    let one = formula.number(1.0);
    let fraction = formula.sub(significand, one);
    // The exponent as a float: the reverse of the rounding by a magic number.
    let exponent = formula.shr(above, places);
    let from_start = formula.integer(format.magic_bits() - start);
    let from_lower_start = formula.integer(format.magic_bits() - start - places);
    let offset = formula.select(subnormal, from_lower_start, from_start);
    let exponent = formula.add(exponent, offset);
    let exponent = formula.float_from(exponent);
    let magic = formula.number(format.magic(0));
    let exponent = formula.sub(exponent, magic);
    Scaled { exponent, fraction }
}

/// What the logarithm of `1 + f` has beyond its linear term.
enum Curve {
    /// A product that the caller fuses into a sum.
    Product(Value, Value),
    /// The number itself, to base e.
    Whole(Value),
}

fn curve(formula: &mut Formula<'_>, fraction: Value, single: &[f32]) -> Curve {
    let square = formula.mul(fraction, fraction);
    match formula.format {
        Format::Single => {
            let series = formula.horner(single.iter().map(|&c| f64::from(c)), fraction);
            Curve::Product(series, square)
        }
        Format::Double => {
            // log(1 + f) = f - (h - s (h + R)), h = f^2 / 2, s = f / (2 + f), 2 atanh(s) = 2 s + s R.
            let two = formula.number(2.0);
            let half = formula.number(0.5);
            let sum = formula.add(fraction, two);
            let s = formula.div(fraction, sum);
            let z = formula.mul(s, s);
            let series = formula.horner(ATANH_DOUBLE.iter().copied(), z);
            let h = formula.mul(square, half);
            let inner = formula.fma(series, z, h);
            let negated = formula.neg(h);
            Curve::Whole(formula.fma(s, inner, negated))
        }
    }
}

/// The logarithm of special numbers: -inf for zero, NaN for negative numbers and NaN, inf for inf, else `result`.
pub(super) fn special(formula: &mut Formula<'_>, x: Value, result: Value) -> Value {
    let infinity = formula.number(f64::INFINITY);
    let negative_infinity = formula.number(f64::NEG_INFINITY);
    let nan = formula.number(f64::NAN);
    let finite = formula.compare(CompareOp::Lt, x, f64::INFINITY);
    let result = formula.select(finite, result, infinity);
    let positive = formula.compare(CompareOp::Gt, x, 0.0);
    let result = formula.select(positive, result, nan);
    let zero = formula.compare(CompareOp::Eq, x, 0.0);
    formula.select(zero, negative_infinity, result)
}

/// `log2 x ln 2`.
fn log_approximate(formula: &mut Formula<'_>, x: Value) -> Value {
    let ln_2 = formula.number(std::f64::consts::LN_2);
    let log2 = formula.approximate(Approximate::Log2, x);
    formula.mul(log2, ln_2)
}

/// `log2 x log10 2`.
fn log10_approximate(formula: &mut Formula<'_>, x: Value) -> Value {
    let log10_2 = formula.number(std::f64::consts::LOG10_2);
    let log2 = formula.approximate(Approximate::Log2, x);
    formula.mul(log2, log10_2)
}
