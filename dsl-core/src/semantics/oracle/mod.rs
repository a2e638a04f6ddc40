//! Independent values of the math functions, to judge results by. Never part of a kernel's meaning.
//!
//! [`reference()`] calls the host's `f64` library and is good enough to measure `f32` results in
//! units in the last place; [`reference_wide`] computes about 100 bits and measures `f64` results.

pub(super) mod angle;
pub(super) mod bessel;
pub(super) mod gamma;
pub mod pairs;
pub(super) mod wide;

pub use wide::Wide;

use super::derived::meaning;
use crate::ir::{DType, Function, Literal};

/// The function at `x` in `f64`, within a few units in the last place.
pub fn reference(op: Function, x: f64) -> f64 {
    (meaning(op).reference)(x)
}

/// The function at `x` to about 100 bits; `None` where the value is NaN, infinite, zero or subnormal
/// and [`reference()`] says all there is to say, and of a function that takes no `f64`.
pub fn reference_wide(op: Function, x: f64) -> Option<Wide> {
    let double = meaning(op).double.as_ref()?;
    let has_more = reference(op, x).is_normal() && x.is_finite();
    has_more.then(|| (double.reference)(x))
}

/// `2 x / sqrt(pi) e^(-x^2) (1 + 2 x^2 / 3 + (2 x^2)^2 / 15 + ...)`: all terms of one sign.
pub(super) fn erf(x: f64) -> f64 {
    if x.abs() > 6.0 {
        return x.signum();
    }
    let step = 2.0 * x * x;
    let (mut term, mut sum, mut odd) = (1.0, 1.0, 3.0);
    while term > sum * 1e-17 {
        term *= step / odd;
        sum += term;
        odd += 2.0;
    }
    std::f64::consts::FRAC_2_SQRT_PI * x * (-x * x).exp() * sum
}

/// `1 - erf(x)`, beyond 1/2 by the continued fraction of W. J. Lentz's kind from its end: `e^(-x^2) / sqrt(pi)` over
/// `x + (1/2) / (x + 1 / (x + (3/2) / (x + ...)))`.
pub(super) fn erfc(x: f64) -> f64 {
    if x < 0.5 {
        return 1.0 - erf(x);
    }
    if x > 30.0 {
        return 0.0;
    }
    let terms = 40 + (600.0 / (x * x)) as u32;
    let fraction = (1..=terms)
        .rev()
        .fold(x, |rest, n| x + f64::from(n) / 2.0 / rest);
    // The square in two numbers: its error would be multiplied by itself.
    let square = x * x;
    let low = x.mul_add(x, -square);
    let power = (-square).exp() * (1.0 - low);
    power * std::f64::consts::FRAC_2_SQRT_PI / 2.0 / fraction
}

/// One unit in the last place of `dtype` at `value`: the distance of neighbours in its binade, the
/// least subnormal at and near zero. `None` unless `dtype` is a float.
pub fn ulp(dtype: DType, value: f64) -> Option<f64> {
    let format = dtype.format()?;
    let exponent = ((value.abs().to_bits() >> 52) as i32 - 1023).max(format.least_exponent());
    Some(power_of_two(exponent - format.mantissa as i32))
}

/// `2^exponent` from the least subnormal to the greatest power.
fn power_of_two(exponent: i32) -> f64 {
    if exponent >= -1022 {
        f64::from_bits(((exponent + 1023) as u64) << 52)
    } else {
        f64::from_bits(1 << (exponent + 1074))
    }
}

/// How far the number `found` of `dtype` is from `expected + rest`, in units in the last place.
///
/// NaN for NaN, an equal infinity, and an infinity where the value is at most a unit below the
/// range are 0 apart; other disagreements about NaN or infinity are infinitely far. A type without
/// infinities is expected to give its greatest number in their place. `None` unless `dtype` is a float.
pub fn ulp_error(dtype: DType, found: u64, expected: f64, rest: f64) -> Option<f64> {
    let found = Literal::from_bits(dtype, found).float()?;
    let greatest = greatest(dtype)?;
    let expected = match dtype.format()?.has_infinity {
        true => expected,
        false => expected.clamp(-greatest, greatest),
    };
    let unit = ulp(dtype, expected)?;
    if found.is_nan() || expected.is_nan() {
        let same = found.is_nan() && expected.is_nan();
        return Some(if same { 0.0 } else { f64::INFINITY });
    }
    if found.is_infinite() || expected.is_infinite() {
        let limit = greatest - ulp(dtype, greatest)?;
        let same = found.is_sign_positive() == expected.is_sign_positive();
        let near = found.abs() >= limit && expected.abs() >= limit;
        return Some(if same && near { 0.0 } else { f64::INFINITY });
    }
    Some((((found - expected) - rest) / unit).abs())
}

/// The greatest finite number of a float type.
fn greatest(dtype: DType) -> Option<f64> {
    let bits = dtype.format()?.greatest();
    Literal::from_bits(dtype, bits).float()
}
