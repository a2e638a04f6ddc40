//! Functions of two numbers: pow, atan2 and hypot, of `f32` computed in `f64` and rounded, and two on bits.
//!
//! They are no ops: the language appends what they are made of.

use super::exponential::exp2;
use super::formula::{Format, Formula};
use super::inverse::atan_near;
use super::logarithm::log2;
use super::long_pairs;
use crate::builder::Builder;
use crate::ir::{CompareOp, DType, Value};

const INF: f64 = f64::INFINITY;

type Compute = fn(&mut Formula<'_>, Value, Value) -> Value;

/// Appends `compute` of two numbers of one float type in `f64`, and the roundings to `f32` and to that type.
fn pair_in_double(builder: &mut Builder, x: Value, y: Value, compute: Compute) -> Value {
    let Some(dtype) = builder.ty(x).dtype() else {
        return x;
    };
    let [x, y] = [x, y].map(|it| builder.cast(it, DType::F64));
    let result = compute(&mut Formula::new(builder, x, Format::Double), x, y);
    let single = builder.cast(result, DType::F32);
    builder.cast(single, dtype)
}

/// Appends `double` of two `f64`, else `single` of two floats of at most 32 bits in `f64`.
pub(super) fn by_width(
    builder: &mut Builder,
    [x, y]: [Value; 2],
    single: Compute,
    double: Compute,
) -> Value {
    match builder.ty(x).dtype() == Some(DType::F64) {
        true => double(&mut Formula::new(builder, x, Format::Double), x, y),
        false => pair_in_double(builder, x, y, single),
    }
}

/// `x^y` as C's `pow` has it, of two floats of one type and one shape.
pub fn pow(builder: &mut Builder, x: Value, y: Value) -> Value {
    by_width(builder, [x, y], power, long_pairs::power)
}

/// The angle from the axis of `x` to the point, from -pi to pi, of two floats of one type and one shape.
pub fn atan2(builder: &mut Builder, y: Value, x: Value) -> Value {
    by_width(builder, [y, x], angle, long_pairs::angle)
}

/// `sqrt(x^2 + y^2)` without overflow on the way, of two floats of one type and one shape.
pub fn hypot(builder: &mut Builder, x: Value, y: Value) -> Value {
    by_width(builder, [x, y], length, long_pairs::length)
}

/// `x` with the sign of `y`, of two floats of one type and one shape; the sign of NaN is positive.
pub fn copysign(builder: &mut Builder, x: Value, y: Value) -> Value {
    let Some(dtype) = builder.ty(x).dtype() else {
        return x;
    };
    let integer = dtype.unsigned();
    let sign = 1 << (dtype.bits() - 1);
    let [x, y] = [x, y].map(|it| builder.bitcast(it, integer));
    let rest = builder.bits_like(x, integer, sign - 1);
    let sign = builder.bits_like(y, integer, sign);
    let (rest, sign) = (builder.and(x, rest), builder.and(y, sign));
    let both = builder.or(rest, sign);
    builder.bitcast(both, dtype)
}

/// The number next to `x` toward `y`, of two floats of one type and one shape; `y` where they are equal.
pub fn nextafter(builder: &mut Builder, x: Value, y: Value) -> Value {
    let Some(dtype) = builder.ty(x).dtype() else {
        return x;
    };
    let integer = dtype.unsigned();
    let zero = builder.constant_like(x, 0.0);
    let bits = builder.bitcast(x, integer);
    let one = builder.bits_like(bits, integer, 1);
    let sign = builder.bits_like(bits, integer, 1 << (dtype.bits() - 1));
    let least_negative = builder.or(one, sign);
    let up = builder.compare(CompareOp::Lt, x, y);
    let positive = builder.compare(CompareOp::Gt, x, zero);
    // Bits of magnitudes are ordered as the magnitudes.
    let outward = builder.compare(CompareOp::Eq, up, positive);
    let (greater, less) = (builder.add(bits, one), builder.sub(bits, one));
    let moved = builder.select(outward, greater, less);
    let least = builder.select(up, one, least_negative);
    let from_zero = builder.compare(CompareOp::Eq, x, zero);
    let moved = builder.select(from_zero, least, moved);
    let moved = builder.bitcast(moved, dtype);
    let equal = builder.compare(CompareOp::Eq, x, y);
    let result = builder.select(equal, y, moved);
    let sum = builder.add(x, y);
    let [x_is, y_is] = [x, y].map(|it| builder.compare(CompareOp::Eq, it, it));
    let are_numbers = builder.and(x_is, y_is);
    builder.select(are_numbers, result, sum)
}

/// `2^(y log2 |x|)`, negative for an odd `y` where `x` is.
fn power(formula: &mut Formula<'_>, x: Value, y: Value) -> Value {
    let magnitude = formula.abs(x);
    let logarithm = log2(formula, magnitude);
    // An infinite exponent of 1 would be NaN.
    let limited = formula.at_most(y, 1e300);
    let limited = formula.at_least(limited, -1e300);
    let exponent = formula.mul(logarithm, limited);
    let result = exp2(formula, exponent);
    finished(formula, x, y, result)
}

/// `x^y` of which `result` is the magnitude.
pub(super) fn finished(formula: &mut Formula<'_>, x: Value, y: Value, result: Value) -> Value {
    let half = formula.number(0.5);
    let one = formula.number(1.0);
    let nan = formula.number(f64::NAN);
    let whole = formula.trunc(y);
    let is_whole = formula.compare_values(CompareOp::Eq, whole, y);
    let halved = formula.mul(y, half);
    let whole = formula.trunc(halved);
    let is_half = formula.compare_values(CompareOp::Ne, whole, halved);
    let is_odd = formula.and(is_whole, is_half);
    let is_below = is_negative(formula, x);
    let is_negated = formula.and(is_below, is_odd);
    let negated = formula.neg(result);
    let result = formula.select(is_negated, negated, result);
    // A root of a negative number.
    let below = formula.compare(CompareOp::Lt, x, 0.0);
    let finite = formula.compare(CompareOp::Gt, x, -INF);
    let below = formula.and(below, finite);
    let result_or_nan = formula.select(is_whole, result, nan);
    let result = formula.select(below, result_or_nan, result);
    let is_one = formula.compare(CompareOp::Eq, x, 1.0);
    let is_zero = formula.compare(CompareOp::Eq, y, 0.0);
    let is_one = formula.or(is_one, is_zero);
    formula.select(is_one, one, result)
}

/// The lesser coordinate over the greater.
pub(super) struct Slope {
    pub(super) value: Value,
    pub(super) lesser: Value,
    pub(super) greater: Value,
    pub(super) is_steep: Value,
}

pub(super) fn slope(formula: &mut Formula<'_>, y: Value, x: Value) -> Slope {
    let (width, height) = (formula.abs(x), formula.abs(y));
    let zero = formula.number(0.0);
    let one = formula.number(1.0);
    let is_steep = formula.compare_values(CompareOp::Gt, height, width);
    let lesser = formula.select(is_steep, width, height);
    let greater = formula.select(is_steep, height, width);
    let slope = formula.div(lesser, greater);
    let sum = formula.add(width, height);
    let at_origin = formula.compare(CompareOp::Eq, sum, 0.0);
    let slope = formula.select(at_origin, zero, slope);
    let is_far = formula.compare(CompareOp::Eq, greater, INF);
    let both_far = formula.compare(CompareOp::Eq, lesser, INF);
    let both_far = formula.and(is_far, both_far);
    Slope {
        value: formula.select(both_far, one, slope),
        lesser,
        greater,
        is_steep,
    }
}

/// The inverse of the tangent of the lesser coordinate over the greater, placed in its eighth of the plane.
fn angle(formula: &mut Formula<'_>, y: Value, x: Value) -> Value {
    let Slope {
        value, is_steep, ..
    } = slope(formula, y, x);
    let angle = atan_near(formula, value);
    let quarter = formula.number(std::f64::consts::FRAC_PI_2);
    let complement = formula.sub(quarter, angle);
    let angle = formula.select(is_steep, complement, angle);
    let half_turn = formula.number(std::f64::consts::PI);
    let complement = formula.sub(half_turn, angle);
    let is_left = is_negative(formula, x);
    let angle = formula.select(is_left, complement, angle);
    let negated = formula.neg(angle);
    let is_below = is_negative(formula, y);
    formula.select(is_below, negated, angle)
}

fn length(formula: &mut Formula<'_>, x: Value, y: Value) -> Value {
    let square = formula.mul(x, x);
    let sum = formula.fma(y, y, square);
    let root = formula.sqrt(sum);
    let infinity = formula.number(INF);
    let (width, height) = (formula.abs(x), formula.abs(y));
    let is_wide = formula.compare(CompareOp::Eq, width, INF);
    let is_high = formula.compare(CompareOp::Eq, height, INF);
    let is_far = formula.or(is_wide, is_high);
    formula.select(is_far, infinity, root)
}

/// Whether the sign of a number, zeros included, is negative.
pub(super) fn is_negative(formula: &mut Formula<'_>, x: Value) -> Value {
    let bits = formula.bits_of(x);
    let least = formula.integer(1 << 63);
    formula.compare_values(CompareOp::Ge, bits, least)
}
