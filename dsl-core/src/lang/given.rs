//! Literals that a branch gives beside a handle that another one gives.

use super::element::{Element, HostNumber, LiteralOf};
use super::tile::{Scalar, scalar};

/// What the other branches give where one gives a literal: made by the macros.
#[diagnostic::on_unimplemented(
    message = "one branch gives a number of the host and another one a `{Self}`",
    note = "all branches give one type: write `full(shape, 1.0)` next to a tile, and `1.0` instead of `1` next to a float"
)]
pub trait Given<L> {
    /// The literal as that.
    fn given(literal: L) -> Self;
}

impl<T: Element, L: HostNumber + LiteralOf<T>> Given<L> for Scalar<T> {
    #[track_caller]
    fn given(literal: L) -> Self {
        scalar(literal)
    }
}

macro_rules! given_by_the_host {
    ($($Host:ty)*) => { $(
        impl Given<$Host> for $Host {
            fn given(literal: Self) -> Self {
                literal
            }
        }
    )* };
}
given_by_the_host!(bool f32 f64 i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize);
