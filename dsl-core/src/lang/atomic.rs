//! Atomics without a result: numbers combined into memory that several programs share.
//!
//! Programs run in any order, so only what commutes has one result: integers, of 32 and 64 bits,
//! with every op at every level of determinism. `f32` and `f64` have [`atomic_add`] alone, and need
//! `Determinism::NotGuaranteed`: at any other level compiling is an error with the line of the
//! atomic, which advises partial sums and a second kernel, or integers. Narrower numbers have none,
//! which `rustc` says.
//!
//! Every element counts, also where offsets are equal; between programs an address is combined by
//! one op, and neither loaded nor stored.

use std::panic::Location;

use super::context;
use super::element::{Element, Int, Numeric};
use super::memory::Stored;
use super::ptr::{Address, PtrMut, PtrMutTile};
use super::tile::IntoTile;
use crate::ir::{AtomicOp, Op, op};

/// Integers that memory combines: those of 32 and 64 bits.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no atomic minimum, maximum or bitwise operation",
    note = "`i32`, `u32`, `i64` and `u64` have"
)]
pub trait AtomicInt: Int + AtomicAdd {}

/// Numbers that memory adds up: integers of 32 and 64 bits, `f32` and `f64`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no atomic sum",
    note = "`i32`, `u32`, `i64` and `u64` have, and where bits are not guaranteed `f32` and `f64`"
)]
pub trait AtomicAdd: Numeric {}

macro_rules! atomic_numbers {
    ($($Rust:ty: $($Class:ident)*;)*) => { $($(impl $Class for $Rust {})*)* };
}
atomic_numbers! {
    i32: AtomicAdd AtomicInt;
    u32: AtomicAdd AtomicInt;
    i64: AtomicAdd AtomicInt;
    u64: AtomicAdd AtomicInt;
    f32: AtomicAdd;
    f64: AtomicAdd;
}

/// Where atomics combine: pointers of `PtrMut` arguments and their tiles.
#[diagnostic::on_unimplemented(
    message = "an atomic does not write to `{Self}`",
    note = "it writes to `PtrMut<T>` and its tiles (`ptr + offsets`)"
)]
pub trait AtomicTarget {
    /// The type of one number.
    type Element: Element;
    /// Appends the atomic.
    #[doc(hidden)]
    fn combine(self, op: AtomicOp, value: impl IntoTile<Self::Element>) -> Stored;
}

macro_rules! targets {
    ($($Pointer:ident)*) => { $(
        impl<T: Element> AtomicTarget for $Pointer<T> {
            type Element = T;
            #[track_caller]
            fn combine(self, op: AtomicOp, value: impl IntoTile<T>) -> Stored {
                combine(self.address(), op, value)
            }
        }
    )* };
}
targets!(PtrMut PtrMutTile);

#[track_caller]
fn combine<T: Element>(address: Address, op: AtomicOp, value: impl IntoTile<T>) -> Stored {
    let stored = context::with(Location::caller(), |context| {
        let value = value.into_value(context);
        let base = context.value(address.base);
        let offsets = address.offset(context);
        let shape = context.ty(offsets).shape;
        let value = context.broadcast(op.word(), value, shape);
        if context.ty(offsets).is_poison() || context.ty(value).is_poison() {
            return context.stored(None);
        }
        let atomic = Op::AtomicReduce(op::AtomicReduce {
            base,
            offsets,
            value,
            mask: None,
            op,
        });
        let inst = context.builder.emit(atomic, &[]);
        context.stored(Some(inst))
    });
    stored.unwrap_or_default()
}

macro_rules! atomics {
    ($($(#[doc = $doc:literal])* $name:ident: $Op:ident of $Class:ident;)*) => { $(
        $(#[doc = $doc])*
        ///
        /// `value` is repeated to the shape of the target; `.mask(condition)` behind it combines
        /// only where the condition holds.
        #[track_caller]
        pub fn $name<D: AtomicTarget>(target: D, value: impl IntoTile<D::Element>) -> Stored
        where
            D::Element: $Class,
        {
            target.combine(AtomicOp::$Op, value)
        }
    )* };
}

atomics! {
    /// Adds `value` to memory. Integers wrap. Sums of `f32` and `f64` depend on the order of arrival,
    /// and are errors of the compilation but under `Determinism::NotGuaranteed`.
    atomic_add: Add of AtomicAdd;
    /// Keeps the smaller of memory and `value`.
    atomic_min: Min of AtomicInt;
    /// Keeps the larger of memory and `value`.
    atomic_max: Max of AtomicInt;
    /// Keeps the bits that both memory and `value` have.
    atomic_and: And of AtomicInt;
    /// Keeps the bits that memory or `value` has.
    atomic_or: Or of AtomicInt;
    /// Flips the bits of memory that `value` has.
    atomic_xor: Xor of AtomicInt;
}
