//! The floats that Rust has not.

use std::fmt;

pub use half::{bf16, f16};

use super::{DType, Literal};

macro_rules! small_floats {
    ($($(#[$doc:meta])* $Name:ident, $nearest:literal;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Default)]
        #[repr(transparent)]
        pub struct $Name(u8);

        impl $Name {
            /// The number with these bits.
            pub const fn from_bits(bits: u8) -> Self {
                Self(bits)
            }

            /// The bits.
            pub const fn to_bits(self) -> u8 {
                self.0
            }

            #[doc = $nearest]
            pub fn from_f32(value: f32) -> Self {
                Self(Literal::from_f64(DType::$Name, f64::from(value)).bits as u8)
            }

            /// The value, exactly.
            pub fn to_f32(self) -> f32 {
                let literal = Literal::from_bits(DType::$Name, u64::from(self.0));
                literal.float().map_or(f32::NAN, |value| value as f32)
            }
        }

        impl PartialEq for $Name {
            fn eq(&self, other: &Self) -> bool {
                self.to_f32() == other.to_f32()
            }
        }

        impl PartialOrd for $Name {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                self.to_f32().partial_cmp(&other.to_f32())
            }
        }

        impl fmt::Debug for $Name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.to_f32(), f)
            }
        }

        impl fmt::Display for $Name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.to_f32(), f)
            }
        }
    )* };
}

small_floats! {
    /// An 8-bit float of 4 bits of exponent and 3 of fraction, up to 448, without infinities: E4M3 of the OCP
    /// 8-bit floating point specification.
    ///
    /// ```
    /// use exactile_core::ir::floats::F8E4M3;
    /// assert_eq!(F8E4M3::from_f32(3.3).to_f32(), 3.25);
    /// assert_eq!(F8E4M3::from_f32(-1e9).to_f32(), -448.0);
    /// assert!(F8E4M3::from_bits(0x7f).to_f32().is_nan());
    /// ```
    F8E4M3, "The nearest number, ties to even; 448 for what is above, infinity too; NaN stays NaN.";
    /// An 8-bit float of 5 bits of exponent and 2 of fraction, up to 57344, with infinities: E5M2 of the OCP
    /// 8-bit floating point specification.
    ///
    /// ```
    /// use exactile_core::ir::floats::F8E5M2;
    /// assert_eq!(F8E5M2::from_f32(3.3).to_f32(), 3.5);
    /// assert_eq!(F8E5M2::from_f32(61439.0).to_f32(), 57344.0);
    /// assert_eq!(F8E5M2::from_f32(-61440.0).to_f32(), f32::NEG_INFINITY);
    /// assert!(F8E5M2::from_bits(0x7d).to_f32().is_nan());
    /// ```
    F8E5M2, "The nearest number, ties to even; infinity for what rounds to more than 57344; NaN stays NaN.";
}
