//! Conversions between numbers: of values, rounding once, and of bits.

use crate::ir::round::f64_to_odd;
use crate::ir::{Class, DType, Literal};

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
    match to.class() {
        Class::Bool => u64::from(value != 0),
        Class::Signed | Class::Unsigned => value as u64 & to.mask(),
        Class::Float if to == DType::F64 => (value as f64).to_bits(),
        Class::Float => Literal::from_f64(to, f64_to_odd(value)).bits,
    }
}
