//! Conversions between numbers: of values, rounding once, and of bits.

use crate::ir::round::{bf16_from_f64, f16_from_f64, f64_to_odd};
use crate::ir::{DType, Literal};

/// Converts the value. Float to float and integer to float round once to nearest even; float to
/// integer truncates, saturates, and maps NaN to 0; integer to integer keeps the low bits; to
/// `bool` means nonzero (NaN is nonzero).
pub fn cast(from: DType, to: DType, x: u64) -> u64 {
    let literal = Literal::from_bits(from, x);
    match (literal.float(), literal.integer()) {
        (Some(value), _) => Literal::from_f64(to, value).bits,
        (None, Some(value)) => from_integer(to, value),
        (None, None) => unreachable!("broken invariant: a number is a float or an integer"),
    }
}

/// Reinterprets the bits as a type of the same width; a float NaN reads as the canonical NaN.
pub fn bitcast(from: DType, to: DType, x: u64) -> u64 {
    canonical(from, x) & to.mask()
}

/// The number itself, or the positive canonical NaN in place of any NaN.
pub fn canonical(dtype: DType, x: u64) -> u64 {
    match Literal::from_bits(dtype, x).float() {
        Some(value) if value.is_nan() => dtype.canonical_nan(),
        Some(_) | None => x,
    }
}

fn from_integer(to: DType, value: i128) -> u64 {
    let bits = match to {
        DType::Bool => u64::from(value != 0),
        DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U8
        | DType::U16
        | DType::U32
        | DType::U64 => value as u64,
        DType::F16 => f16_from_f64(f64_to_odd(value)),
        DType::BF16 => bf16_from_f64(f64_to_odd(value)),
        DType::F32 => u64::from((value as f32).to_bits()),
        DType::F64 => (value as f64).to_bits(),
    };
    bits & to.mask()
}
