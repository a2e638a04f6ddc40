//! Integer literals that no `i32` holds: made by the macros, with the type of what is beside them.

use super::element::{Element, HostNumber, Int, LiteralOf, fitting};
use super::tile::{Scalar, Tile};
use crate::ir::Literal;

/// A literal beside a value of the device, whose type it takes.
#[derive(Clone, Copy, Debug)]
pub struct Wide(pub i128);

impl HostNumber for Wide {
    fn integer(self) -> Option<i128> {
        Some(self.0)
    }
}

impl<T: Int> LiteralOf<T> for Wide {
    fn literal(self) -> Result<Literal, String> {
        fitting(T::DTYPE, self.0)
    }
}

/// What a literal that no `i32` holds may stand beside.
#[diagnostic::on_unimplemented(
    message = "an integer literal beyond `i32` has no type next to `{Self}`",
    note = "say its type, such as `0xFFFF_FFFF_u32`; next to floats write `4294967295.0`"
)]
pub trait Beside {
    /// The literal: of the same type beside numbers of the host.
    type Typed;
    /// The literal `N`.
    #[doc(hidden)]
    fn typed<const N: i128>() -> Self::Typed;
}

/// The literal `N` beside `value`.
pub fn beside<const N: i128, V: Beside>(_: &V) -> V::Typed {
    V::typed::<N>()
}

/// The literal `N` beside what a place holds, which is not read.
pub fn beside_place<const N: i128, V: Beside>(_: impl FnOnce() -> V) -> V::Typed {
    V::typed::<N>()
}

impl<T: Element> Beside for Scalar<T> {
    type Typed = Wide;
    fn typed<const N: i128>() -> Wide {
        Wide(N)
    }
}

impl<T: Element> Beside for Tile<T> {
    type Typed = Wide;
    fn typed<const N: i128>() -> Wide {
        Wide(N)
    }
}

impl<V: Beside> Beside for &V {
    type Typed = V::Typed;
    fn typed<const N: i128>() -> V::Typed {
        V::typed::<N>()
    }
}

// A literal that does not fit the number of the host beside it does not compile.
macro_rules! beside_the_host {
    ($($Host:ty)*) => { $(
        impl Beside for $Host {
            type Typed = Self;
            fn typed<const N: i128>() -> Self {
                const { assert!(N as Self as i128 == N) }
                N as Self
            }
        }
    )* };
}
beside_the_host!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 usize);
