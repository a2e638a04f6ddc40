//! Atomics: numbers combined into memory that several programs share, and what it held before.
//!
//! Programs run in any order, so only what commutes has one result: integers of 32 and 64 bits, with every op, and
//! [`atomic_min`] and [`atomic_max`] of `f32` and `f64`, at every level of determinism. A minimum or maximum is one of
//! numbers: a NaN changes nothing, a number takes the place of a NaN in memory, and -0 < +0, so that no order of
//! arrival shows. [`atomic_add`] of `f16`, `bf16`, `f32` and `f64` rounds after each number, and
//! needs `Determinism::NotGuaranteed`: at any other level compiling is an error with the line of the
//! atomic, which names `exactile_kernels::segment_sum`, partial sums and a second kernel, or integers. [`atomic_exchange`]
//! and its like take integers and floats of 16 bits too. Other numbers have none, which `rustc` says.
//!
//! Every element counts, also where offsets are equal; between programs an address is combined by
//! one op, and neither loaded nor stored. Of a tile of a tensor, `atomic_add(out.tile([16]).at([0]), 1)`, the elements
//! outside of the tensor are left out.
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
use super::ptr::{PtrMut, PtrMutTile};
use super::tensor::TensorMutTile;
use super::tile::{DeviceValue, IntoTile, Scalar, Tile, zeros};
use crate::diagnostic::Diagnostic;
use crate::ir::{AtomicOp, Op, Shape, Value, op};

/// Integers that memory combines: those of 32 and 64 bits.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no atomic bitwise operation",
    note = "`i32`, `u32`, `i64` and `u64` have"
)]
pub trait AtomicInt: Int + AtomicNumber {}

/// Numbers of which memory keeps the smaller or the larger: integers of 32 and 64 bits, `f32` and `f64`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no atomic minimum or maximum",
    note = "`i32`, `u32`, `i64`, `u64`, `f32` and `f64` have: convert a narrower number, `x.to::<f32>()`, and keep that"
)]
pub trait AtomicNumber: AtomicAdd + AtomicExchange {}

/// Numbers that memory replaces: integers of 16 to 64 bits, `f16`, `bf16`, `f32` and `f64`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no atomic exchange, compare-and-exchange, load or store",
    note = "integers of 16 to 64 bits have, `f16`, `bf16`, `f32` and `f64`: convert another number, `x.to::<i16>()`, and keep that"
)]
pub trait AtomicExchange: Numeric {}

/// Numbers that memory adds up: integers of 32 and 64 bits, `f16`, `bf16`, `f32` and `f64`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no atomic sum",
    note = "`i32`, `u32`, `i64` and `u64` have, and where bits are not guaranteed `f16`, `bf16`, `f32` and `f64`"
)]
pub trait AtomicAdd: Numeric {}

macro_rules! atomic_numbers {
    ($($Rust:ty: $($Class:ident)*;)*) => { $($(impl $Class for $Rust {})*)* };
}
atomic_numbers! {
    i16: AtomicExchange;
    u16: AtomicExchange;
    i32: AtomicExchange AtomicAdd AtomicNumber AtomicInt;
    u32: AtomicExchange AtomicAdd AtomicNumber AtomicInt;
    i64: AtomicExchange AtomicAdd AtomicNumber AtomicInt;
    u64: AtomicExchange AtomicAdd AtomicNumber AtomicInt;
    half::f16: AtomicExchange AtomicAdd;
    half::bf16: AtomicExchange AtomicAdd;
    f32: AtomicExchange AtomicAdd AtomicNumber;
    f64: AtomicExchange AtomicAdd AtomicNumber;
}

/// Where atomics combine: pointers of `PtrMut` arguments, their tiles, and tiles of `TensorMut`.
#[diagnostic::on_unimplemented(
    message = "an atomic does not write to `{Self}`",
    note = "it writes to `PtrMut<T>`, its tiles (`ptr + offsets`) and tiles of `TensorMut<T, RANK>`"
)]
pub trait AtomicTarget: Sized {
    /// The type of one number.
    type Element: Element;
    /// What memory held: a tile, or a scalar for one pointer.
    type Old: DeviceValue;
    /// The places in the trace, and their shape; `None` where there is no such shape.
    #[doc(hidden)]
    fn places(self, context: &mut Context) -> Option<(Places, Shape)>;
}

/// The places of an atomic in the trace.
#[doc(hidden)]
pub enum Places {
    /// Offsets from a pointer.
    Offsets { base: Value, offsets: Value },
    /// A tile of a tensor.
    Tile { tensor: Value, origin: Vec<Value> },
}

macro_rules! targets {
    ($($Pointer:ident gives $Old:ident;)*) => { $(
        impl<T: Element> AtomicTarget for $Pointer<T> {
            type Element = T;
            type Old = $Old<T>;
            fn places(self, context: &mut Context) -> Option<(Places, Shape)> {
                let address = self.address();
                let base = context.value(address.base);
                let offsets = address.offset(context);
                let shape = context.ty(offsets).shape;
                Some((Places::Offsets { base, offsets }, shape))
            }
        }
    )* };
}
targets! {
    PtrMut gives Scalar;
    PtrMutTile gives Tile;
}

impl<T: Element, const RANK: usize> AtomicTarget for TensorMutTile<T, RANK> {
    type Element = T;
    type Old = Tile<T>;
    fn places(self, context: &mut Context) -> Option<(Places, Shape)> {
        let (tensor, origin, shape) = self.place.parts(context)?;
        Some((Places::Tile { tensor, origin }, shape))
    }
}

#[track_caller]
fn combine<D: AtomicTarget>(target: D, op: AtomicOp, value: impl IntoTile<D::Element>) -> Stored {
    let stored = context::with(Location::caller(), |context| {
        let value = value.into_value(context);
        let Some((places, shape)) = target.places(context) else {
            return context.stored(None);
        };
        let value = context.combined(&format!("atomic_{}", op.word()), value, shape);
        if context.wrong(&places, [Some(value)]) {
            return context.stored(None);
        }
        let (mask, order, scope) = (None, None, None);
        let atomic = match places {
            Places::Offsets { base, offsets } => Op::AtomicReduce(op::AtomicReduce {
                base,
                offsets,
                value,
                mask,
                op,
                order,
                scope,
            }),
            Places::Tile { tensor, origin } => Op::TileAtomic(op::TileAtomic {
                tensor,
                origin,
                value,
                mask,
                op,
                order,
                scope,
            }),
        };
        let inst = context.builder.emit(atomic, &[]);
        context.stored(Some(inst))
    });
    stored.unwrap_or_default()
}

#[track_caller]
fn fetch<D: AtomicTarget>(
    target: D,
    op: AtomicOp,
    value: impl IntoTile<D::Element>,
    expected: Option<impl IntoTile<D::Element>>,
) -> D::Old {
    D::Old::from_handle(context::emit(Location::caller(), |context| {
        let expected = expected.map(|expected| expected.into_value(context));
        let value = value.into_value(context);
        context.fetch(target, op, (value, expected))
    }))
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

    /// Whether an operand of an atomic was already wrong.
    fn wrong<const N: usize>(&self, places: &Places, operands: [Option<Value>; N]) -> bool {
        let place = match places {
            Places::Offsets { offsets, .. } => *offsets,
            Places::Tile { tensor, .. } => *tensor,
        };
        let mut operands = operands.into_iter().flatten().chain([place]);
        operands.any(|it| self.ty(it).is_poison())
    }

    /// Appends an atomic with a result, of a number and what memory must hold for it.
    fn fetch<D: AtomicTarget>(
        &mut self,
        target: D,
        op: AtomicOp,
        (value, expected): (Value, Option<Value>),
    ) -> Value {
        let Some((places, shape)) = target.places(self) else {
            return self.builder.poison();
        };
        let name = match op.combines() {
            true => format!("atomic_fetch_{}", op.word()),
            false if expected.is_some() => "atomic_compare_exchange".to_string(),
            false => format!("atomic_{}", op.word()),
        };
        let value = self.combined(&name, value, shape);
        let expected = expected.map(|expected| self.combined(&name, expected, shape));
        if self.wrong(&places, [Some(value), expected]) {
            return self.builder.poison();
        }
        let (mask, order, scope) = (None, None, None);
        self.builder.value(match places {
            Places::Offsets { base, offsets } => Op::AtomicFetch(op::AtomicFetch {
                base,
                offsets,
                value,
                mask,
                expected,
                op,
                order,
                scope,
            }),
            Places::Tile { tensor, origin } => Op::TileFetch(op::TileFetch {
                tensor,
                origin,
                value,
                mask,
                expected,
                op,
                order,
                scope,
            }),
        })
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
            combine(target, AtomicOp::$Op, value)
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
            fetch(target, AtomicOp::$Op, value, none::<D::Element>())
        }
    )* };
}

fetches! {
    /// Adds `value` to memory; what it held before. Integers wrap, floats round once to nearest even.
    atomic_fetch_add: Add of AtomicAdd;
    /// Keeps the smaller of memory and `value`, as [`atomic_min`] does; what memory held before.
    atomic_fetch_min: Min of AtomicNumber;
    /// Keeps the larger of memory and `value`, as [`atomic_max`] does; what memory held before.
    atomic_fetch_max: Max of AtomicNumber;
    /// Keeps the bits that both memory and `value` have; what memory held before.
    atomic_fetch_and: And of AtomicInt;
    /// Keeps the bits that memory or `value` has; what memory held before.
    atomic_fetch_or: Or of AtomicInt;
    /// Flips the bits of memory that `value` has; what memory held before.
    atomic_fetch_xor: Xor of AtomicInt;
    /// Puts `value` into memory; what it held before.
    atomic_exchange: Exchange of AtomicExchange;
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
    D::Element: AtomicExchange,
{
    fetch(
        source,
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
    D::Element: AtomicExchange,
{
    let old = fetch(target, AtomicOp::Exchange, value, none::<D::Element>());
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
/// it was replaced. So -0 is not +0; a NaN is any NaN, since devices store other ones.
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
    D::Element: AtomicExchange,
{
    fetch(target, AtomicOp::Exchange, value, Some(expected))
}

atomics! {
    /// Adds `value` to memory. Integers wrap. Sums of floats round to nearest even after each number, so they depend on
    /// the order of arrival, and are errors of the compilation but under `Determinism::NotGuaranteed`.
    atomic_add: Add of AtomicAdd;
    /// Keeps the smaller of memory and `value`, -0 < +0. A NaN changes nothing; a number takes the place of a NaN in
    /// memory.
    atomic_min: Min of AtomicNumber;
    /// Keeps the larger of memory and `value`, -0 < +0. A NaN changes nothing; a number takes the place of a NaN in
    /// memory.
    atomic_max: Max of AtomicNumber;
    /// Keeps the bits that both memory and `value` have.
    atomic_and: And of AtomicInt;
    /// Keeps the bits that memory or `value` has.
    atomic_or: Or of AtomicInt;
    /// Flips the bits of memory that `value` has.
    atomic_xor: Xor of AtomicInt;
}
