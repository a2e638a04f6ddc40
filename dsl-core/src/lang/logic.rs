//! Conditions: tiles of rank 0 that decide, and `&&` and `||`, which the macros rewrite to calls.

use std::marker::PhantomData;
use std::panic::Location;

use super::branch::{Condition, Decision, If, known};
use super::carry::Slot;
use super::tile::{DeviceValue, Scalar, Tile};

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

/// `&&` and `||` in a kernel. As in Rust the right side is evaluated only when it decides: on device values what it loads,
/// stores and asserts happens only then. A tile has rank 0.
#[diagnostic::on_unimplemented(
    message = "`{Self}` and `{R}` do not combine with `&&` or `||`",
    note = "they combine conditions: compare a number, such as `n != 0`"
)]
pub trait Logic<R>: Sized {
    /// `bool` or `Scalar<bool>`.
    type Output;
    /// The left side.
    #[doc(hidden)]
    fn decision(self) -> Decision;
    /// The value, where `right` is the right side as far as it was evaluated.
    #[doc(hidden)]
    fn joined(circuit: Circuit<Self, R>, right: Option<R>, slots: &mut [Slot<'_>]) -> Self::Output;
}

/// `&&` or `||` while it is traced: made by the macros.
pub struct Circuit<L, R> {
    branch: If,
    /// What the left side is where the right one decides.
    asked_if: bool,
    location: &'static Location<'static>,
    sides: PhantomData<fn(L) -> R>,
}

impl<L: Logic<R>, R> Circuit<L, R> {
    /// Starts `left && ..`; with a place for the right side.
    #[track_caller]
    pub fn and(left: L) -> (Self, Option<R>) {
        Self::begin(left, true)
    }

    /// Starts `left || ..`; with a place for the right side.
    #[track_caller]
    pub fn or(left: L) -> (Self, Option<R>) {
        Self::begin(left, false)
    }

    #[track_caller]
    fn begin(left: L, asked_if: bool) -> (Self, Option<R>) {
        let circuit = Self {
            branch: If::begin(left.decision()),
            asked_if,
            location: Location::caller(),
            sides: PhantomData,
        };
        (circuit, None)
    }

    /// Whether to evaluate the right side now.
    pub fn enter(circuit: &mut Self, slots: &mut [Slot<'_>]) -> bool {
        circuit.branch.enter_right(circuit.asked_if, slots)
    }

    /// The value.
    #[track_caller]
    pub fn end(self, right: Option<R>, slots: &mut [Slot<'_>]) -> L::Output {
        L::joined(self, right, slots)
    }

    /// The value as a scalar.
    #[track_caller]
    fn scalar(self, right: Option<R>, slots: &mut [Slot<'_>]) -> Scalar<bool>
    where
        R: Truth,
    {
        let right = right.map(|right| right.truth().handle());
        let value = self.branch.end_right(self.asked_if, right, slots);
        Scalar::from_handle(value.unwrap_or_else(|| known(self.location, !self.asked_if)))
    }
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
        Scalar::from_handle(known(Location::caller(), self))
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
    fn decision(self) -> Decision {
        Decision::Host(self)
    }
    fn joined(circuit: Circuit<bool, bool>, right: Option<bool>, _: &mut [Slot<'_>]) -> bool {
        right.unwrap_or(!circuit.asked_if)
    }
}

macro_rules! device_logic {
    ($($Kind:ident)*) => { $(
        impl Logic<$Kind<bool>> for bool {
            type Output = Scalar<bool>;
            fn decision(self) -> Decision {
                Decision::Host(self)
            }
            #[track_caller]
            fn joined(
                circuit: Circuit<Self, $Kind<bool>>,
                right: Option<$Kind<bool>>,
                slots: &mut [Slot<'_>],
            ) -> Scalar<bool> {
                circuit.scalar(right, slots)
            }
        }
        impl<R: Truth> Logic<R> for $Kind<bool> {
            type Output = Scalar<bool>;
            #[track_caller]
            fn decision(self) -> Decision {
                Decision::Device(self.truth().handle())
            }
            #[track_caller]
            fn joined(circuit: Circuit<Self, R>, right: Option<R>, slots: &mut [Slot<'_>]) -> Scalar<bool> {
                circuit.scalar(right, slots)
            }
        }
    )* };
}
device_logic!(Tile Scalar);
