//! The Rust types that correspond to data types.

use super::{DType, Literal};

/// Only types of this crate are numbers: memory and code rely on their data types.
mod sealed {
    pub trait Sealed {}
}

/// A Rust type whose values are numbers of a [`DType`].
pub trait Number:
    sealed::Sealed + Copy + Default + PartialEq + std::fmt::Debug + Send + Sync + 'static
{
    /// The data type.
    const DTYPE: DType;
    /// The value bits, zero above the width.
    fn to_bits(self) -> u64;
    /// The number with these value bits; what lies above the width is ignored. For `bool`,
    /// nonzero is true.
    fn from_bits(bits: u64) -> Self;
    /// Writes the number into the first bytes of `bytes` as memory holds it.
    fn write_to(self, bytes: &mut [u8]);
    /// Reads the number from the first bytes of `bytes`.
    fn read_from(bytes: &[u8]) -> Self;
    /// The number as a literal.
    fn literal(self) -> Literal {
        Literal::from_bits(Self::DTYPE, self.to_bits())
    }
}

macro_rules! numbers {
    ($($rust:ty, $dtype:ident, $size:literal, $raw:ty, |$x:ident| $to:expr, |$bits:ident| $from:expr;)*) => {$(
        impl sealed::Sealed for $rust {}
        impl Number for $rust {
            const DTYPE: DType = DType::$dtype;
            fn to_bits(self) -> u64 {
                let $x = self;
                let raw: $raw = $to;
                u64::from(raw)
            }
            fn from_bits(bits: u64) -> Self {
                let $bits = bits as $raw;
                $from
            }
            fn write_to(self, bytes: &mut [u8]) {
                let $x = self;
                let raw: $raw = $to;
                bytes[..$size].copy_from_slice(&raw.to_ne_bytes());
            }
            fn read_from(bytes: &[u8]) -> Self {
                let mut raw = [0; $size];
                raw.copy_from_slice(&bytes[..$size]);
                let $bits = <$raw>::from_ne_bytes(raw);
                $from
            }
        }
    )*};
}

/// Calls `$m!` with the Rust type of every data type.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_number {
    ($m:ident) => {
        $m!(bool i8 i16 i32 i64 u8 u16 u32 u64 $crate::ir::floats::F8E4M3 $crate::ir::floats::F8E5M2 half::f16 half::bf16 f32 f64);
    };
}
pub use for_each_number;

numbers! {
    bool, Bool, 1, u8, |x| u8::from(x), |bits| bits != 0;
    i8, I8, 1, u8, |x| x.cast_unsigned(), |bits| bits.cast_signed();
    i16, I16, 2, u16, |x| x.cast_unsigned(), |bits| bits.cast_signed();
    i32, I32, 4, u32, |x| x.cast_unsigned(), |bits| bits.cast_signed();
    i64, I64, 8, u64, |x| x.cast_unsigned(), |bits| bits.cast_signed();
    u8, U8, 1, u8, |x| x, |bits| bits;
    u16, U16, 2, u16, |x| x, |bits| bits;
    u32, U32, 4, u32, |x| x, |bits| bits;
    u64, U64, 8, u64, |x| x, |bits| bits;
    super::floats::F8E4M3, F8E4M3, 1, u8, |x| x.to_bits(), |bits| Self::from_bits(bits);
    super::floats::F8E5M2, F8E5M2, 1, u8, |x| x.to_bits(), |bits| Self::from_bits(bits);
    half::f16, F16, 2, u16, |x| x.to_bits(), |bits| Self::from_bits(bits);
    half::bf16, BF16, 2, u16, |x| x.to_bits(), |bits| Self::from_bits(bits);
    f32, F32, 4, u32, |x| x.to_bits(), |bits| Self::from_bits(bits);
    f64, F64, 8, u64, |x| x.to_bits(), |bits| Self::from_bits(bits);
}
