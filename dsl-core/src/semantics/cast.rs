//! Conversions between numbers: of values, rounding once, and of bits.

use crate::ir::round::{bf16_from_f64, f16_from_f64, f64_to_odd, float_bits};
use crate::ir::{DType, Literal};

/// Converts the value. Float to float and integer to float round once to nearest even; float to
/// integer truncates, saturates, and maps NaN to 0; integer to integer keeps the low bits; to
/// `bool` means nonzero (NaN is nonzero).
pub fn cast(from: DType, to: DType, x: u64) -> u64 {
    let literal = Literal::from_bits(from, x);
    match (literal.float(), literal.integer()) {
        (Some(value), _) => from_float(to, value),
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
        Some(value) if value.is_nan() => canonical_nan(dtype),
        Some(_) | None => x,
    }
}

/// The bits of the positive canonical NaN; 0 for types that have none.
pub const fn canonical_nan(dtype: DType) -> u64 {
    match dtype {
        DType::F16 => 0x7e00,
        DType::BF16 => 0x7fc0,
        DType::F32 => 0x7fc0_0000,
        DType::F64 => 0x7ff8_0000_0000_0000,
        DType::Bool
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U8
        | DType::U16
        | DType::U32
        | DType::U64 => 0,
    }
}

fn from_float(to: DType, value: f64) -> u64 {
    let bits = match to {
        DType::Bool => u64::from(value != 0.0),
        DType::I8 => value as i8 as u64,
        DType::I16 => value as i16 as u64,
        DType::I32 => value as i32 as u64,
        DType::I64 => value as i64 as u64,
        DType::U8 => u64::from(value as u8),
        DType::U16 => u64::from(value as u16),
        DType::U32 => u64::from(value as u32),
        DType::U64 => value as u64,
        DType::F16 | DType::BF16 | DType::F32 | DType::F64 => {
            float_bits(to, value).expect("broken invariant: a float type")
        }
    };
    bits & to.mask()
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
