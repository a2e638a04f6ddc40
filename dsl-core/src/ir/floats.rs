//! The floats that Rust has not.

use std::fmt;

pub use half::{bf16, f16};

use super::{DType, Literal};

/// An 8-bit float of 4 bits of exponent and 3 of fraction, up to 448, without infinities: E4M3 of the OCP
/// 8-bit floating point specification.
///
/// ```
/// use exactile_core::ir::floats::F8E4M3;
/// assert_eq!(F8E4M3::from_f32(3.3).to_f32(), 3.25);
/// assert_eq!(F8E4M3::from_f32(-1e9).to_f32(), -448.0);
/// assert!(F8E4M3::from_bits(0x7f).to_f32().is_nan());
/// ```
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub struct F8E4M3(u8);

impl F8E4M3 {
    /// The number with these bits.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// The bits.
    pub const fn to_bits(self) -> u8 {
        self.0
    }

    /// The nearest number, ties to even; 448 for what is above, infinity too; NaN stays NaN.
    pub fn from_f32(value: f32) -> Self {
        Self(Literal::from_f64(DType::F8E4M3, f64::from(value)).bits as u8)
    }

    /// The value, exactly.
    pub fn to_f32(self) -> f32 {
        let literal = Literal::from_bits(DType::F8E4M3, u64::from(self.0));
        literal.float().map_or(f32::NAN, |value| value as f32)
    }
}

impl PartialEq for F8E4M3 {
    fn eq(&self, other: &Self) -> bool {
        self.to_f32() == other.to_f32()
    }
}

impl PartialOrd for F8E4M3 {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        self.to_f32().partial_cmp(&other.to_f32())
    }
}

impl fmt::Debug for F8E4M3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_f32(), f)
    }
}

impl fmt::Display for F8E4M3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.to_f32(), f)
    }
}
