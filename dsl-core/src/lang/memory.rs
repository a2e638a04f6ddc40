//! Loads and stores through pointers, with masks.
//!
//! An access is emitted at once, so accesses stay in program order. `.mask(..)` and `.other(..)`
//! directly behind it emit it again with the mask, after the instructions that made the mask.

use std::panic::Location;

use super::context::{self, Context};
use super::element::Element;
use super::ptr::{Address, Ptr, PtrMut, PtrMutTile, PtrTile};
use super::tile::{DeviceValue, IntoTile, Scalar, Tile};
use crate::diagnostic::Diagnostic;
use crate::ir::{Cache, Func, Inst, MemoryOrder, Op, Scope, Trait, Type, Value, op};

/// Where `load` reads: pointers, and tiles of tensors.
#[diagnostic::on_unimplemented(
    message = "`load` does not read from `{Self}`",
    note = "it reads from `Ptr<T>`, `PtrMut<T>`, their tiles (`ptr + offsets`) and tiles of tensors"
)]
pub trait Source {
    /// A tile, or a scalar for one pointer.
    type Output;
    /// Reads.
    fn read(self) -> Self::Output;
}

/// Where `store` writes: pointers of `PtrMut` arguments, and tiles of `TensorMut`.
#[diagnostic::on_unimplemented(
    message = "`store` does not write to `{Self}`",
    note = "it writes to `PtrMut<T>`, its tiles (`ptr + offsets`) and tiles of `TensorMut<T, RANK>`"
)]
pub trait Target {
    /// The type of one number.
    type Element: Element;
    /// What may follow the store.
    type Stored;
    /// Writes.
    fn write(self, value: impl IntoTile<Self::Element>) -> Self::Stored;
}

/// Reads the elements that a pointer, a tile of pointers or a tile of a tensor names.
///
/// `load(ptr + offsets).mask(condition).other(0.0)` reads only where the condition holds; elsewhere
/// the result is `other`, or +0 without it.
#[cfg_attr(not(doctest), doc = include_str!("examples/load.md"))]
#[track_caller]
pub fn load<S: Source>(source: S) -> S::Output {
    source.read()
}

/// Writes `value`, repeated to the shape of the target. `.mask(condition)` behind it writes only
/// where the condition holds. Where several elements have one address, the highest index wins.
#[cfg_attr(not(doctest), doc = include_str!("examples/store.md"))]
#[track_caller]
pub fn store<D: Target>(target: D, value: impl IntoTile<D::Element>) -> D::Stored {
    target.write(value)
}

/// A store, an atomic or prints that were just made, which a mask may follow.
#[derive(Default)]
pub struct Stored {
    insts: Vec<Inst>,
    trace: u64,
}

macro_rules! sources {
    ($($Pointer:ident gives $Output:ident;)*) => { $(
        impl<T: Element> Source for $Pointer<T> {
            type Output = $Output<T>;
            #[track_caller]
            fn read(self) -> $Output<T> {
                $Output::from_handle(context::emit(Location::caller(), |context| {
                    context.load(self.address())
                }))
            }
        }
    )* };
}
sources! {
    Ptr gives Scalar;
    PtrMut gives Scalar;
    PtrTile gives Tile;
    PtrMutTile gives Tile;
}

macro_rules! targets {
    ($($Pointer:ident)*) => { $(
        impl<T: Element> Target for $Pointer<T> {
            type Element = T;
            type Stored = Stored;
            #[track_caller]
            fn write(self, value: impl IntoTile<T>) -> Stored {
                let stored = context::with(Location::caller(), |context| {
                    let value = value.into_value(context);
                    let inst = context.store(self.address(), value);
                    context.stored(inst)
                });
                stored.unwrap_or_default()
            }
        }
    )* };
}
targets!(PtrMut PtrMutTile);

impl Stored {
    /// Tells the caches of a GPU what becomes of what a store writes: directly behind `store`, before a mask. It
    /// never changes bits.
    #[track_caller]
    pub fn cache(self, hint: Cache) -> Self {
        self.told("cache", "store", |op| hint_of(op, hint))
    }

    /// Directly behind an atomic, before a mask: what it orders, which is nothing without it.
    #[track_caller]
    pub fn order(self, order: MemoryOrder) -> Self {
        self.told("order", "atomic", |op| order_of(op, order))
    }

    /// Directly behind an atomic, before a mask: between whom it is one, which are the programs of the device without it.
    #[track_caller]
    pub fn scope(self, scope: Scope) -> Self {
        self.told("scope", "atomic", |op| scope_of(op, scope))
    }

    /// Sets an attribute of the access, if it has it.
    #[track_caller]
    pub(super) fn told(self, what: &str, access: &str, set: impl Fn(&mut Op) -> bool) -> Self {
        context::with(Location::caller(), |context| {
            let here = self.trace == context.trace();
            let mut ops = self.insts.iter();
            if !ops.all(|&inst| here && set(&mut context.builder.func_mut().inst_mut(inst).op)) {
                context.misplaced(what, access);
            }
        });
        self
    }

    /// Writes, combines or prints only where `mask` holds.
    #[track_caller]
    pub fn mask(self, mask: impl IntoTile<bool>) {
        context::with(Location::caller(), |context| {
            let mask = mask.into_value(context);
            if self.insts.is_empty() {
                return;
            }
            if self.trace != context.trace() {
                return context.misplaced("mask", "store");
            }
            // Each moves behind the mask, and none past another one.
            let region = context.builder.region();
            let others = self.insts.get(1..).unwrap_or_default();
            let insts = &mut context.builder.func_mut().region_mut(region).insts;
            let count = insts.len();
            insts.retain(|inst| !others.contains(inst));
            let is_here = insts.len() + others.len() == count;
            for &inst in &self.insts {
                if is_here && others.contains(&inst) {
                    context
                        .builder
                        .func_mut()
                        .region_mut(region)
                        .insts
                        .push(inst);
                }
                context.mask(inst, mask);
            }
        });
    }
}

macro_rules! masks {
    ($($Kind:ident)*) => { $(
        impl<T: Element> $Kind<T> {
            /// Directly behind `load`: reads only where `mask` holds, and any mask before it; elsewhere
            /// the result is `other`, or +0 without it. Behind an atomic that gives what memory held: combines
            /// only there; elsewhere the result is +0.
            #[cfg_attr(not(doctest), doc = include_str!("examples/mask.md"))]
            #[track_caller]
            pub fn mask(self, mask: impl IntoTile<bool>) -> Self {
                self.reload(Part::Mask, |context| mask.into_value(context))
            }

            /// Behind `load(..).mask(..)`: the result where the mask does not hold.
            #[cfg_attr(not(doctest), doc = include_str!("examples/other.md"))]
            #[track_caller]
            pub fn other(self, other: impl IntoTile<T>) -> Self {
                self.reload(Part::Other, |context| other.into_value(context))
            }

            /// Behind `load(..)`: tells the caches of a GPU what becomes of what it reads. It never changes bits.
            #[cfg_attr(not(doctest), doc = include_str!("examples/cache.md"))]
            #[track_caller]
            pub fn cache(self, hint: Cache) -> Self {
                self.told("cache", "load", |op| !op.is(Trait::writes) && hint_of(op, hint))
            }

            /// Directly behind an atomic that gives what memory held: what it orders, which is nothing without it.
            #[track_caller]
            pub fn order(self, order: MemoryOrder) -> Self {
                self.told("order", "atomic", |op| order_of(op, order))
            }

            /// Directly behind an atomic that gives what memory held: between whom it is one, which are the programs
            /// of the device without it.
            #[track_caller]
            pub fn scope(self, scope: Scope) -> Self {
                self.told("scope", "atomic", |op| scope_of(op, scope))
            }

            /// Sets an attribute of the access that gave the value, if it has it.
            #[track_caller]
            fn told(self, what: &str, access: &str, set: impl FnOnce(&mut Op) -> bool) -> Self {
                context::with(Location::caller(), |context| {
                    let load = context.value(self.handle());
                    if context.ty(load).is_poison() {
                        return;
                    }
                    let found = context.load_of(load);
                    let told = found.is_some_and(|inst| {
                        set(&mut context.builder.func_mut().inst_mut(inst).op)
                    });
                    if !told {
                        context.misplaced(what, access);
                    }
                });
                self
            }

            #[track_caller]
            fn reload(self, part: Part, value: impl FnOnce(&mut Context) -> Value) -> Self {
                Self::from_handle(context::emit(Location::caller(), |context| {
                    let value = value(context);
                    let load = context.value(self.handle());
                    context.reload(part, load, value)
                }))
            }
        }
    )* };
}

/// Gives a load or a store a hint. Whether it is one.
fn hint_of(op: &mut Op, hint: Cache) -> bool {
    let (Op::Load(op::Load { cache, .. })
    | Op::TileLoad(op::TileLoad { cache, .. })
    | Op::Store(op::Store { cache, .. })
    | Op::TileStore(op::TileStore { cache, .. })) = op
    else {
        return false;
    };
    *cache = Some(hint);
    true
}

/// Gives an atomic an order. Whether it is one.
fn order_of(op: &mut Op, wanted: MemoryOrder) -> bool {
    let Some((order, _)) = op.ordering_mut() else {
        return false;
    };
    *order = Some(wanted);
    true
}

/// Gives an atomic a scope. Whether it is one.
fn scope_of(op: &mut Op, wanted: Scope) -> bool {
    let Some((_, scope)) = op.ordering_mut() else {
        return false;
    };
    *scope = Some(wanted);
    true
}

/// What follows a load.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Mask,
    Other,
}

impl Part {
    fn word(self) -> &'static str {
        match self {
            Self::Mask => "mask",
            Self::Other => "other",
        }
    }
}

masks!(Tile Scalar);

impl Context {
    /// Appends a load.
    pub(crate) fn load(&mut self, address: Address) -> Value {
        let base = self.value(address.base);
        let offsets = address.offset(self);
        let inst = self.builder.emit(
            Op::Load(op::Load {
                base,
                offsets,
                mask: None,
                other: None,
                cache: None,
            }),
            &[],
        );
        self.builder.results(inst)[0]
    }

    /// Appends a store; `None` when an operand was already wrong.
    pub(crate) fn store(&mut self, address: Address, value: Value) -> Option<Inst> {
        let base = self.value(address.base);
        let offsets = address.offset(self);
        let ty = self.ty(offsets);
        let value = self.broadcast("store", value, ty.shape);
        if ty.is_poison() || self.ty(value).is_poison() {
            return None;
        }
        let inst = self.builder.emit(
            Op::Store(op::Store {
                base,
                offsets,
                value,
                mask: None,
                cache: None,
            }),
            &[],
        );
        Some(inst)
    }

    /// A store or an atomic of this trace.
    pub(super) fn stored(&self, inst: Option<Inst>) -> Stored {
        self.all_stored(inst.into_iter().collect())
    }

    pub(super) fn all_stored(&self, insts: Vec<Inst>) -> Stored {
        let trace = self.trace();
        Stored { insts, trace }
    }

    /// Lets an access count only where a mask holds.
    fn mask(&mut self, inst: Inst, mask: Value) {
        let (Op::Store(op::Store { offsets: like, .. })
        | Op::AtomicReduce(op::AtomicReduce { offsets: like, .. })
        | Op::AtomicFetch(op::AtomicFetch { offsets: like, .. })
        | Op::Print(op::Print { x: like, .. })
        | Op::TileAtomic(op::TileAtomic { value: like, .. })
        | Op::TileFetch(op::TileFetch { value: like, .. })
        | Op::TileStore(op::TileStore { value: like, .. })) = *self.builder.func().op(inst)
        else {
            return;
        };
        let shape = self.ty(like).shape;
        let condition = self.broadcast("mask", mask, shape);
        let condition = self.joined(inst, condition);
        self.again("mask", inst, |op| {
            if let Some(mask) = op.mask_mut() {
                *mask = Some(condition);
            }
        });
    }

    /// A condition together with the mask that the access has already.
    fn joined(&mut self, access: Inst, condition: Value) -> Value {
        let op = &mut self.builder.func_mut().inst_mut(access).op;
        match op.mask_mut() {
            Some(&mut Some(mask)) => self.builder.and(mask, condition),
            Some(None) | None => condition,
        }
    }

    /// The load, or the atomic with a result, of this region that gives a value.
    pub(super) fn load_of(&self, load: Value) -> Option<Inst> {
        let func = self.builder.func();
        let insts = func.region(self.builder.region()).insts.iter();
        let mut loads = insts.rev().copied().filter(|&inst| {
            let op = func.op(inst);
            matches!(op, Op::Load(_) | Op::TileLoad(_)) || fetches(op)
        });
        loads.find(|&inst| func.inst(inst).results.contains(&load))
    }

    fn reload(&mut self, part: Part, load: Value, value: Value) -> Value {
        let what = part.word();
        let ty = self.ty(load);
        if ty.is_poison() || self.ty(value).is_poison() {
            return load;
        }
        let found = self.load_of(load).filter(|&inst| {
            let fetches = fetches(self.builder.func().op(inst));
            !fetches || part == Part::Mask
        });
        let Some(inst) = found else {
            self.misplaced(what, "load");
            return load;
        };
        let mut value = self.broadcast(what, value, ty.shape);
        if part == Part::Mask {
            value = self.joined(inst, value);
        }
        let again = self.again(what, inst, |op| {
            if part == Part::Mask {
                if let Some(mask) = op.mask_mut() {
                    *mask = Some(value);
                }
            } else if let Op::Load(op::Load { other, .. })
            | Op::TileLoad(op::TileLoad { other, .. }) = op
            {
                *other = Some(value);
            }
        });
        match again {
            Some(inst) => self.builder.results(inst)[0],
            None => load,
        }
    }

    /// Moves the access `inst` to the end of the region, changed by `change`. Nothing since may
    /// use its result or write, or read memory that it writes.
    fn again(&mut self, what: &str, inst: Inst, change: impl FnOnce(&mut Op)) -> Option<Inst> {
        let region = self.builder.region();
        let func = self.builder.func();
        let insts = &func.region(region).insts;
        let position = insts.iter().rposition(|&other| other == inst);
        let written = func
            .accessed(inst)
            .filter(|_| func.any(inst, Trait::writes));
        let sees = |later: Inst| {
            let read = func.accessed(later);
            let other = read.is_some_and(|base| written.is_some_and(|it| it != base));
            written.is_some() && func.any(later, Trait::reads) && !other
        };
        let movable = position.filter(|&position| {
            insts[position + 1..].iter().all(|&later| {
                !func.any(later, Trait::writes)
                    && !sees(later)
                    && !uses(func, later, &func.inst(inst).results)
            })
        });
        let Some(position) = movable else {
            let op = func.op(inst);
            let loads = op.is(Trait::reads) && !op.is(Trait::writes);
            let name = if loads { "load" } else { op.mnemonic() };
            self.misplaced(what, name);
            return None;
        };
        let (mut op, loc) = (func.op(inst).clone(), func.inst(inst).loc.clone());
        let results = func.inst(inst).results.iter();
        let types: Vec<Type> = results.map(|&result| func.ty(result)).collect();
        change(&mut op);
        self.builder
            .func_mut()
            .region_mut(region)
            .insts
            .remove(position);
        let here = self.builder.loc().clone();
        self.builder.set_loc(loc);
        let inst = self.builder.emit(op, &types);
        self.builder.set_loc(here);
        Some(inst)
    }

    fn misplaced(&mut self, what: &str, access: &str) {
        let loc = self.builder.loc().clone();
        self.builder.report(
            Diagnostic::new(
                loc,
                format!("`{what}` does not directly follow a `{access}`"),
            )
            .note(format!(
                "write `{access}(..).{what}(..)` before anything uses the result"
            )),
        );
    }
}

/// Whether an op is an atomic that gives what memory held.
fn fetches(op: &Op) -> bool {
    matches!(op, Op::AtomicFetch(_) | Op::TileFetch(_))
}

/// Whether `inst` or anything it owns has one of `values` as an operand.
fn uses(func: &Func, inst: Inst, values: &[Value]) -> bool {
    let reads = |inst: Inst| {
        let operands = func.op(inst).operands();
        operands.iter().any(|operand| values.contains(operand))
    };
    let mut used = reads(inst);
    for region in func.op(inst).regions() {
        func.walk(region, &mut |nested| used |= reads(nested));
    }
    used
}
