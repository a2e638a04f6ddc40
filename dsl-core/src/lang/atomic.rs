//! Atomics: numbers combined into memory that several programs share, and what it held before.
//!
//! Programs run in any order, so only what commutes has one result: integers, of 32 and 64 bits,
//! with every op at every level of determinism. `f32` and `f64` have [`atomic_add`] and [`atomic_exchange`] alone, and need
//! `Determinism::NotGuaranteed`: at any other level compiling is an error with the line of the
//! atomic, which advises partial sums and a second kernel, or integers. Narrower numbers have none,
//! which `rustc` says.
//!
//! Every element counts, also where offsets are equal; between programs an address is combined by
//! one op, and neither loaded nor stored.
//!
//! [`atomic_fetch_add`] and its like also give what memory held. That depends on the order of arrival, so they
//! need `Determinism::NotGuaranteed` too, for every type, and several of them may meet at one address. Without
//! `.order(..)` they order no other access. A program that stores and then releases, `atomic_fetch_add(count,
//! 1).order(MemoryOrder::AcquireRelease)`, hands what it wrote to the one that acquires what it left: the last of some
//! programs can go on with what all of them wrote. None may wait for another one. A GPU may take subnormal
//! `f32` numbers that it adds up in memory for zeros.

use std::panic::Location;

use super::context::{self, Context};
use super::element::{Element, Int, Numeric};
use super::memory::Stored;
use super::ptr::{Address, PtrMut, PtrMutTile};
use super::tile::{DeviceValue, IntoTile, Scalar, Tile, zeros};
use crate::diagnostic::Diagnostic;
use crate::ir::{AtomicOp, Op, Shape, Value, op};

/// Integers that memory combines: those of 32 and 64 bits.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no atomic minimum, maximum, bitwise operation or compare-and-exchange",
    note = "`i32`, `u32`, `i64` and `u64` have"
)]
pub trait AtomicInt: Int + AtomicAdd {}

/// Numbers that memory adds up: integers of 32 and 64 bits, `f32` and `f64`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no atomic sum or exchange",
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
    /// What memory held: a tile, or a scalar for one pointer.
    type Old: DeviceValue;
    /// Appends the atomic with a result.
    #[doc(hidden)]
    fn fetch(
        self,
        op: AtomicOp,
        value: impl IntoTile<Self::Element>,
        expected: Option<impl IntoTile<Self::Element>>,
    ) -> Self::Old;
}

macro_rules! targets {
    ($($Pointer:ident gives $Old:ident;)*) => { $(
        impl<T: Element> AtomicTarget for $Pointer<T> {
            type Element = T;
            type Old = $Old<T>;
            #[track_caller]
            fn combine(self, op: AtomicOp, value: impl IntoTile<T>) -> Stored {
                combine(self.address(), op, value)
            }
            #[track_caller]
            fn fetch(
                self,
                op: AtomicOp,
                value: impl IntoTile<T>,
                expected: Option<impl IntoTile<T>>,
            ) -> $Old<T> {
                $Old::from_handle(context::emit(Location::caller(), |context| {
                    let expected = expected.map(|expected| expected.into_value(context));
                    let value = value.into_value(context);
                    context.fetch(self.address(), op, (value, expected))
                }))
            }
        }
    )* };
}
targets! {
    PtrMut gives Scalar;
    PtrMutTile gives Tile;
}

#[track_caller]
fn combine<T: Element>(address: Address, op: AtomicOp, value: impl IntoTile<T>) -> Stored {
    let stored = context::with(Location::caller(), |context| {
        let value = value.into_value(context);
        let base = context.value(address.base);
        let offsets = address.offset(context);
        let shape = context.ty(offsets).shape;
        let value = context.combined(&format!("atomic_{}", op.word()), value, shape);
        if context.ty(offsets).is_poison() || context.ty(value).is_poison() {
            return context.stored(None);
        }
        let atomic = Op::AtomicReduce(op::AtomicReduce {
            base,
            offsets,
            value,
            mask: None,
            op,
            order: None,
            scope: None,
        });
        let inst = context.builder.emit(atomic, &[]);
        context.stored(Some(inst))
    });
    stored.unwrap_or_default()
}

impl Context {
    /// A number for each address of an atomic.
    fn combined(&mut self, name: &str, value: Value, shape: Shape) -> Value {
        let found = self.ty(value);
        if !shape.is_scalar() || found.shape.is_scalar() || found.is_poison() {
            return self.broadcast(name, value, shape);
        }
        let message = format!(
            "`{name}`: a tile of shape {} does not go to one address",
            found.shape
        );
        let note = "`ptr + offsets` is an address for each element; `x.sum(0)` and its like make one number of a tile";
        let loc = self.builder.loc().clone();
        self.builder
            .report(Diagnostic::new(loc, message).note(note));
        self.builder.poison()
    }

    /// Appends an atomic with a result, of a number and what memory must hold for it.
    fn fetch(
        &mut self,
        address: Address,
        op: AtomicOp,
        (value, expected): (Value, Option<Value>),
    ) -> Value {
        let base = self.value(address.base);
        let offsets = address.offset(self);
        let shape = self.ty(offsets).shape;
        let name = match op.binary() {
            Some(_) => format!("atomic_fetch_{}", op.word()),
            None if expected.is_some() => "atomic_compare_exchange".to_string(),
            None => format!("atomic_{}", op.word()),
        };
        let value = self.combined(&name, value, shape);
        let expected = expected.map(|expected| self.combined(&name, expected, shape));
        let operands = [Some(offsets), Some(value), expected];
        if operands
            .into_iter()
            .flatten()
            .any(|it| self.ty(it).is_poison())
        {
            return self.builder.poison();
        }
        self.builder.value(Op::AtomicFetch(op::AtomicFetch {
            base,
            offsets,
            value,
            mask: None,
            expected,
            op,
            order: None,
            scope: None,
        }))
    }
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

macro_rules! fetches {
    ($($(#[doc = $doc:literal])* $name:ident: $Op:ident of $Class:ident;)*) => { $(
        $(#[doc = $doc])*
        ///
        /// `value` is repeated to the shape of the target, a tile or a scalar, which the result has as well.
        /// `.mask(condition)` behind it combines only where the condition holds, and gives +0 elsewhere.
        ///
        /// # Errors
        /// The compilation fails but under `Determinism::NotGuaranteed`: other programs decide what memory holds.
        #[track_caller]
        #[must_use = "the atomic without `fetch` in its name gives nothing and is faster"]
        pub fn $name<D: AtomicTarget>(target: D, value: impl IntoTile<D::Element>) -> D::Old
        where
            D::Element: $Class,
        {
            target.fetch(AtomicOp::$Op, value, none::<D::Element>())
        }
    )* };
}

fetches! {
    /// Adds `value` to memory; what it held before. Integers wrap, floats round once to nearest even.
    atomic_fetch_add: Add of AtomicAdd;
    /// Keeps the smaller of memory and `value`; what memory held before.
    atomic_fetch_min: Min of AtomicInt;
    /// Keeps the larger of memory and `value`; what memory held before.
    atomic_fetch_max: Max of AtomicInt;
    /// Keeps the bits that both memory and `value` have; what memory held before.
    atomic_fetch_and: And of AtomicInt;
    /// Keeps the bits that memory or `value` has; what memory held before.
    atomic_fetch_or: Or of AtomicInt;
    /// Flips the bits of memory that `value` has; what memory held before.
    atomic_fetch_xor: Xor of AtomicInt;
    /// Puts `value` into memory; what it held before.
    atomic_exchange: Exchange of AtomicAdd;
}

/// What memory holds, read in one step that nothing divides: a tile, or a scalar for one pointer.
///
/// `.order(MemoryOrder::Acquire)` behind it, before a mask, makes seen what programs did before they released the number.
///
/// # Errors
/// The compilation fails but under `Determinism::NotGuaranteed`: other programs decide what memory holds.
#[track_caller]
pub fn atomic_load<D: AtomicTarget>(source: D) -> D::Old
where
    D::Element: AtomicAdd,
{
    source.fetch(
        AtomicOp::Load,
        zeros::<D::Element>([]),
        none::<D::Element>(),
    )
}

/// Puts `value` into memory in one step that nothing divides: an [`atomic_exchange`] of which nobody wants the old number.
///
/// `.order(MemoryOrder::Release)` behind it, before a mask, makes what the program did before seen by those who acquire the
/// number.
///
/// # Errors
/// The compilation fails but under `Determinism::NotGuaranteed`: of several programs the last to come wins.
#[track_caller]
pub fn atomic_store<D: AtomicTarget>(target: D, value: impl IntoTile<D::Element>) -> Stored
where
    D::Element: AtomicAdd,
{
    let old = target.fetch(AtomicOp::Exchange, value, none::<D::Element>());
    let stored = context::with(Location::caller(), |context| {
        let old = context.value(old.handle());
        let inst = context.load_of(old);
        context.stored(inst)
    });
    stored.unwrap_or_default()
}

/// No expected number.
fn none<T: Element>() -> Option<Scalar<T>> {
    None
}

/// Puts `value` into memory where it holds `expected`, bit by bit; what it held before, which is `expected` where
/// it was replaced.
///
/// Both are repeated to the shape of the target, a tile or a scalar, which the result has as well.
/// `.mask(condition)` behind it touches memory only where the condition holds, and gives 0 elsewhere.
///
/// # Errors
/// The compilation fails but under `Determinism::NotGuaranteed`: other programs decide what memory holds.
#[track_caller]
pub fn atomic_compare_exchange<D: AtomicTarget>(
    target: D,
    expected: impl IntoTile<D::Element>,
    value: impl IntoTile<D::Element>,
) -> D::Old
where
    D::Element: AtomicInt,
{
    target.fetch(AtomicOp::Exchange, value, Some(expected))
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
