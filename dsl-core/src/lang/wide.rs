//! Integer literals that no `i32` holds: made by the macros, with the type of what is beside them.

use std::marker::PhantomData;

use super::element::{Element, HostNumber, Int, LiteralOf, fitting};
use super::tile::{Scalar, Tile};
use crate::ir::{Class, Literal};

/// A literal beside a value of the device, whose type it takes.
#[derive(Clone, Copy, Debug)]
pub struct Wide {
    number: i128,
    /// Types of so many bits hold the lowest bits of the number: it is made by shifts.
    width: u32,
}

impl Wide {
    /// The number; types of `width` bits and more hold the lowest bits of it.
    pub const fn new(number: i128, width: u32) -> Self {
        Self { number, width }
    }
}

impl HostNumber for Wide {
    fn integer(self) -> Option<i128> {
        Some(self.number)
    }
}

impl<T: Int> LiteralOf<T> for Wide {
    fn literal(self) -> Result<Literal, String> {
        let bits = T::DTYPE.bits();
        let unused = i128::BITS - bits;
        let shifted = self.number << unused;
        let low = match T::DTYPE.class() {
            Class::Signed => shifted >> unused,
            Class::Unsigned | Class::Bool | Class::Float => {
                (shifted.cast_unsigned() >> unused).cast_signed()
            }
        };
        let number = if self.width <= bits { low } else { self.number };
        fitting(T::DTYPE, number)
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
    /// The literal `N`; types of `WIDTH` bits and more hold the lowest bits of it.
    #[doc(hidden)]
    fn typed<const N: i128, const WIDTH: u32>() -> Self::Typed;
}

/// The literal `N` beside a value; types of `WIDTH` bits and more hold the lowest bits of it.
pub fn beside<const N: i128, const WIDTH: u32, V: Beside>(_: &V) -> V::Typed {
    V::typed::<N, WIDTH>()
}

/// [`beside`] of what a place holds, which is not read.
pub fn beside_place<const N: i128, const WIDTH: u32, V: Beside>(_: impl FnOnce() -> V) -> V::Typed {
    V::typed::<N, WIDTH>()
}

impl<T: Element> Beside for Scalar<T> {
    type Typed = Wide;
    fn typed<const N: i128, const WIDTH: u32>() -> Wide {
        Wide::new(N, WIDTH)
    }
}

impl<T: Element> Beside for Tile<T> {
    type Typed = Wide;
    fn typed<const N: i128, const WIDTH: u32>() -> Wide {
        Wide::new(N, WIDTH)
    }
}

impl<V: Beside> Beside for &V {
    type Typed = V::Typed;
    fn typed<const N: i128, const WIDTH: u32>() -> V::Typed {
        V::typed::<N, WIDTH>()
    }
}

// A literal that does not fit the number of the host beside it does not compile.
macro_rules! beside_the_host {
    ($($Host:ty)*) => { $(
        impl Beside for $Host {
            type Typed = Self;
            fn typed<const N: i128, const WIDTH: u32>() -> Self {
                const {
                    let fits = N as Self as i128 == N && N >= Self::MIN as i128;
                    assert!(fits || WIDTH <= Self::BITS, "an integer literal does not fit the number beside it");
                }
                N as Self
            }
        }
    )* };
}
beside_the_host!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize);

/// The literal `N` as an argument; types of `WIDTH` bits and more hold the lowest bits of it.
pub struct Number<const N: i128, const WIDTH: u32>;

/// A function of one argument.
pub struct OfOne<F>(PhantomData<F>);

impl<F> OfOne<F> {
    /// That of a value.
    pub fn new(_: &F) -> Self {
        Self(PhantomData)
    }
}

/// A function of a shape and another argument.
pub struct OfTwo<F, S>(PhantomData<(F, S)>);

impl<F, S> OfTwo<F, S> {
    /// Those of values.
    pub fn new(_: &F, _: &S) -> Self {
        Self(PhantomData)
    }
}

/// A function that takes a [`Wide`]: found before [`HostArgument`].
pub trait WideArgument {
    /// The literal.
    fn typed<const N: i128, const WIDTH: u32>(&self, _: Number<N, WIDTH>) -> Wide {
        Wide::new(N, WIDTH)
    }
}

impl<F: FnOnce(Wide) -> R, R> WideArgument for OfOne<F> {}
impl<F: FnOnce(S, Wide) -> R, S, R> WideArgument for OfTwo<F, S> {}

/// Any other function: it takes a number of the host.
pub trait HostArgument {
    /// The literal.
    fn typed<const N: i128, const WIDTH: u32, V: Beside<Typed = V>>(
        &self,
        _: Number<N, WIDTH>,
    ) -> V {
        V::typed::<N, WIDTH>()
    }
}

impl<F> HostArgument for &OfOne<F> {}
impl<F, S> HostArgument for &OfTwo<F, S> {}
