//! Comparisons of handles in plain Rust: there are none, and the error names `#[device]`.
//!
//! Without any comparison of handles the compiler would say no more than that. It says what [`Compared`] does
//! where an implementation asks for that: of no type that has values.

use std::cmp::Ordering;
use std::convert::Infallible;
use std::marker::PhantomData;

use super::element::Element;
use super::tile::{Scalar, Tile};

/// The other operand of a comparison.
pub struct Operand<R: ?Sized>(PhantomData<fn(&R)>);

/// Operands that plain Rust compares with handles.
#[diagnostic::on_unimplemented(
    message = "a comparison with a handle is an instruction, which plain Rust does not append",
    label = "the function around this needs `#[device]`",
    note = "comparisons, `if`, `for` and `while` over handles stand in functions marked `#[kernel]` or `#[device]`",
    note = "a structure that holds handles cannot be compared"
)]
pub trait Compared {}

// Two, so that neither is the only choice for an operand whose type is still open.
#[diagnostic::do_not_recommend]
impl Compared for Operand<Infallible> {}
#[diagnostic::do_not_recommend]
impl Compared for Operand<[Infallible; 1]> {}

macro_rules! plain {
    ($($Handle:ident)*) => { $(
        impl<T: Element, R> PartialEq<R> for $Handle<T>
        where
            Operand<R>: Compared,
        {
            /// Never called: no operand exists.
            fn eq(&self, _: &R) -> bool {
                false
            }
        }

        impl<T: Element, R> PartialOrd<R> for $Handle<T>
        where
            Operand<R>: Compared,
        {
            /// Never called: no operand exists.
            fn partial_cmp(&self, _: &R) -> Option<Ordering> {
                None
            }
        }
    )* };
}
plain!(Tile Scalar);
