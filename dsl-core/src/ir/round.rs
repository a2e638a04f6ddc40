//! Rounds exact numbers to narrow float formats, once, to nearest even, and reads such numbers.

use super::FloatFormat;

/// The `f64` nearest to `value` toward zero, its last bit set if anything was cut off. Rounding
/// the result to a format of at most 51 significant bits gives what rounding `value` would.
pub fn f64_to_odd(value: i128) -> f64 {
    let magnitude = value.unsigned_abs();
    let excess = 128u32.saturating_sub(magnitude.leading_zeros() + 53);
    let kept = magnitude >> excess;
    let lost = u128::from(kept << excess != magnitude);
    let scale = f64::from_bits(u64::from(excess + 1023) << 52);
    let rounded = (kept | lost) as f64 * scale;
    if value < 0 { -rounded } else { rounded }
}

/// The bits of the number of `format`, of fewer bits than `f64`, nearest to `value`, ties to even; NaN
/// becomes the canonical NaN.
pub fn round(format: &FloatFormat, value: f64) -> u64 {
    let bits = value.to_bits();
    let sign = (bits >> 63) << (format.exponent + format.mantissa);
    if value.is_nan() {
        return format.canonical_nan();
    }
    if value.is_infinite() {
        return sign | format.overflow();
    }
    let biased = (bits >> 52) & 0x7ff;
    if biased == 0 {
        // Zero, or a subnormal f64: far below half of the least subnormal of a narrower format.
        return sign;
    }
    let significand = (bits & ((1 << 52) - 1)) | (1 << 52);
    let exponent = biased as i32 - 1023;
    let shown = exponent.max(format.least_exponent());
    let shift = (shown - exponent + 52 - format.mantissa as i32).min(60) as u32;
    let odd = (significand >> shift) & 1;
    let rounded = (significand + (1 << (shift - 1)) - 1 + odd) >> shift;
    // The leading bit of a normal number adds one to the exponent field; so does a carry.
    let field = (shown - format.least_exponent()) as u64;
    let magnitude = (field << format.mantissa) + rounded;
    sign | magnitude.min(format.overflow())
}

/// The value of a number of `format`, of fewer bits than `f64`; a NaN keeps its sign and its payload, and
/// is quiet.
pub fn exact(format: &FloatFormat, bits: u64) -> f64 {
    let magnitude = bits & ((1 << (format.exponent + format.mantissa)) - 1);
    let sign = (bits >> (format.exponent + format.mantissa)) << 63;
    let fraction = magnitude & ((1 << format.mantissa) - 1);
    let places = fraction << (52 - format.mantissa);
    let field = magnitude >> format.mantissa;
    let power = |exponent: i32| ((exponent + 1023) as u64) << 52;
    let value = if magnitude > format.overflow() {
        f64::NAN.to_bits() & !(1 << 63) | places
    } else if format.has_infinity && magnitude == format.overflow() {
        f64::INFINITY.to_bits()
    } else if field == 0 {
        let unit = f64::from_bits(power(format.least_exponent() - format.mantissa as i32));
        (fraction as f64 * unit).to_bits()
    } else {
        power(field as i32 - format.bias()) | places
    };
    f64::from_bits(sign | value)
}
