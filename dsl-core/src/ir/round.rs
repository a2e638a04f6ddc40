//! Rounds exact numbers to the 16-bit float formats, once, to nearest even.

use super::DType;

/// A binary format: explicit significand bits and the exponent of its least normal number.
struct Format {
    significand: u32,
    least_exponent: i64,
    infinity: u64,
    nan: u64,
    sign: u64,
}

const F16: Format = Format {
    significand: 10,
    least_exponent: -14,
    infinity: 0x7c00,
    nan: DType::F16.canonical_nan(),
    sign: 0x8000,
};

const BF16: Format = Format {
    significand: 7,
    least_exponent: -126,
    infinity: 0x7f80,
    nan: DType::BF16.canonical_nan(),
    sign: 0x8000,
};

/// The bits of the `f16` nearest to `value`, ties to even; NaN becomes the canonical NaN.
pub fn f16_from_f64(value: f64) -> u64 {
    round(&F16, value)
}

/// The bits of the `bf16` nearest to `value`, ties to even; NaN becomes the canonical NaN.
pub fn bf16_from_f64(value: f64) -> u64 {
    round(&BF16, value)
}

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

fn round(format: &Format, value: f64) -> u64 {
    let bits = value.to_bits();
    let sign = (bits >> 63) * format.sign;
    if value.is_nan() {
        return format.nan;
    }
    if value.is_infinite() {
        return sign | format.infinity;
    }
    let biased = (bits >> 52) & 0x7ff;
    if biased == 0 {
        // Zero, or a subnormal f64: far below half of the least subnormal of both formats.
        return sign;
    }
    let significand = (bits & ((1 << 52) - 1)) | (1 << 52);
    let exponent = biased as i64 - 1023;
    let shown = exponent.max(format.least_exponent);
    let shift = (shown - exponent + 52 - i64::from(format.significand)).min(60) as u32;
    let odd = (significand >> shift) & 1;
    let rounded = (significand + (1 << (shift - 1)) - 1 + odd) >> shift;
    // The leading bit of a normal number adds one to the exponent field; so does a carry.
    let magnitude = (((shown - format.least_exponent) as u64) << format.significand) + rounded;
    sign | magnitude.min(format.infinity)
}
