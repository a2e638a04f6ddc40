//! The Rust types of numbers, and which host numbers may stand for them.

use crate::ir::floats::{F8E4M3, F8E5M2};
use crate::ir::{Class, DType, Literal, Number};

/// A type of number that a tile can hold.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no element type of a kernel",
    note = "element types are `bool`, the integers, `F8E4M3`, `F8E5M2`, `f16`, `bf16`, `f32` and `f64`"
)]
pub trait Element: Number {}

/// Integers and floats.
pub trait Numeric: Element {}

/// Floating-point types.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no float",
    note = "floats are `F8E4M3`, `F8E5M2`, `f16`, `bf16`, `f32` and `f64`"
)]
pub trait Float: Numeric {}

/// Floating-point types of at most 32 bits, whose functions are computed in `f32`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no float of at most 32 bits",
    note = "this function takes `F8E4M3`, `F8E5M2`, `f16`, `bf16` and `f32`; convert with `.to::<f32>()`"
)]
pub trait SingleFloat: Float {}

/// Signed and unsigned integers.
#[diagnostic::on_unimplemented(message = "`{Self}` is no integer")]
pub trait Int: Numeric + Bits {}

/// Types with bitwise operators: integers and `bool`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no bitwise operators",
    note = "integers and `bool` have; reinterpret a float with `.bitcast::<T>()`"
)]
pub trait Bits: Element {}

macro_rules! elements {
    ($($Rust:ty: $($Class:ident)*;)*) => { $(
        impl Element for $Rust {}
        $(impl $Class for $Rust {})*
    )* };
}

elements! {
    bool: Bits;
    i8: Numeric Int Bits;
    i16: Numeric Int Bits;
    i32: Numeric Int Bits;
    i64: Numeric Int Bits;
    u8: Numeric Int Bits;
    u16: Numeric Int Bits;
    u32: Numeric Int Bits;
    u64: Numeric Int Bits;
    F8E4M3: Numeric Float SingleFloat;
    F8E5M2: Numeric Float SingleFloat;
    half::f16: Numeric Float SingleFloat;
    half::bf16: Numeric Float SingleFloat;
    f32: Numeric Float SingleFloat;
    f64: Numeric Float;
}

/// A number or `bool` of the host.
pub trait HostNumber: Copy {
    /// The number, if it is an integer.
    #[doc(hidden)]
    fn integer(self) -> Option<i128> {
        None
    }
}

/// A host number that can stand for a `T` next to device values.
///
/// An integer must fit `T`, or the trace has an error; a float rounds to the nearest `T`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot stand for `{T}` in a kernel",
    note = "next to floats write `2.0` instead of `2`, and `N as f64` for a `usize`",
    note = "convert tiles and scalars with `.to::<T>()`"
)]
pub trait LiteralOf<T: Element>: HostNumber {
    /// The number as a `T`, or what is wrong with it.
    fn literal(self) -> Result<Literal, String>;
}

/// The integer as a number of this type, or the numbers that there are.
pub(super) fn fitting(dtype: DType, integer: i128) -> Result<Literal, String> {
    Literal::from_integer(dtype, integer).ok_or_else(|| {
        let least = match dtype.class() {
            Class::Signed => -(1i128 << (dtype.bits() - 1)),
            Class::Unsigned | Class::Bool | Class::Float => 0,
        };
        let greatest = least + (1i128 << dtype.bits()) - 1;
        format!("`{integer}` does not fit `{dtype}`, whose numbers are {least}..={greatest}")
    })
}

macro_rules! integer_literals {
    ($($Host:ty)*) => { $(
        impl HostNumber for $Host {
            fn integer(self) -> Option<i128> {
                Some(self as i128)
            }
        }
        impl<T: Int> LiteralOf<T> for $Host {
            fn literal(self) -> Result<Literal, String> {
                fitting(T::DTYPE, self as i128)
            }
        }
    )* };
}
integer_literals!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize);

macro_rules! float_literals {
    ($($Host:ty)*) => { $(
        impl HostNumber for $Host {}
        impl<T: Float> LiteralOf<T> for $Host {
            fn literal(self) -> Result<Literal, String> {
                Ok(Literal::from_f64(T::DTYPE, f64::from(self)))
            }
        }
    )* };
}
float_literals!(f32 f64 half::f16 half::bf16);

impl HostNumber for bool {}

impl LiteralOf<bool> for bool {
    fn literal(self) -> Result<Literal, String> {
        Ok(Literal::from_bits(DType::Bool, u64::from(self)))
    }
}
