//! Conditions: tiles of rank 0 that decide, and `&&` and `||`, which the macros rewrite to calls.

use std::panic::Location;

use super::branch::{Condition, Decision};
use super::context;
use super::element::LiteralOf;
use super::operators::binary;
use super::tile::{DeviceValue, Scalar, Tile};
use crate::ir::BinaryOp;

impl Condition for Tile<bool> {
    /// A tile of rank 0; another one is an error.
    #[track_caller]
    fn decide(self) -> Decision {
        let remedy = "a tile chooses element by element with `select(condition, a, b)`; `.any(axis)` and `.all(axis)` \
                      give one condition of a row";
        let condition = self.single("the condition of an `if` or `while`", remedy);
        Decision::Device(condition.handle())
    }
}

/// `&&` and `||` in a kernel. On host values the right side is evaluated only when it decides; on
/// device values always. A tile has rank 0.
#[diagnostic::on_unimplemented(
    message = "`{Self}` and `{R}` do not combine with `&&` or `||`",
    note = "they combine conditions: compare a number, such as `n != 0`"
)]
pub trait Logic<R> {
    /// `bool` or `Scalar<bool>`.
    type Output;
    /// `self && right()`
    fn and(self, right: impl FnOnce() -> R) -> Self::Output;
    /// `self || right()`
    fn or(self, right: impl FnOnce() -> R) -> Self::Output;
}

/// A condition as a scalar.
#[diagnostic::on_unimplemented(
    message = "`&&` and `||` do not combine a condition with `{Self}`",
    note = "they combine conditions: compare a number, such as `n != 0`"
)]
pub trait Truth {
    /// The scalar.
    #[doc(hidden)]
    fn truth(self) -> Scalar<bool>;
}

impl Truth for bool {
    #[track_caller]
    fn truth(self) -> Scalar<bool> {
        Scalar::from_handle(context::emit(Location::caller(), |context| {
            context.literal(LiteralOf::<bool>::literal(self))
        }))
    }
}

impl Truth for Scalar<bool> {
    fn truth(self) -> Scalar<bool> {
        self
    }
}

impl Truth for Tile<bool> {
    #[track_caller]
    fn truth(self) -> Scalar<bool> {
        let remedy = "on tiles use `&` and `|`, which work element by element";
        self.single("`&&` or `||`", remedy)
    }
}

impl Logic<bool> for bool {
    type Output = bool;
    fn and(self, right: impl FnOnce() -> bool) -> bool {
        self && right()
    }
    fn or(self, right: impl FnOnce() -> bool) -> bool {
        self || right()
    }
}

macro_rules! device_logic {
    ($($Kind:ident)*) => { $(
        impl Logic<$Kind<bool>> for bool {
            type Output = Scalar<bool>;
            #[track_caller]
            fn and(self, right: impl FnOnce() -> $Kind<bool>) -> Scalar<bool> {
                match self {
                    true => right().truth(),
                    false => false.truth(),
                }
            }
            #[track_caller]
            fn or(self, right: impl FnOnce() -> $Kind<bool>) -> Scalar<bool> {
                match self {
                    true => true.truth(),
                    false => right().truth(),
                }
            }
        }
        impl<R: Truth> Logic<R> for $Kind<bool> {
            type Output = Scalar<bool>;
            #[track_caller]
            fn and(self, right: impl FnOnce() -> R) -> Scalar<bool> {
                binary(BinaryOp::And, self.truth(), right().truth())
            }
            #[track_caller]
            fn or(self, right: impl FnOnce() -> R) -> Scalar<bool> {
                binary(BinaryOp::Or, self.truth(), right().truth())
            }
        }
    )* };
}
device_logic!(Tile Scalar);
