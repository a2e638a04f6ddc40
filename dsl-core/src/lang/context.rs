//! The trace context: where handles append instructions. One per thread, only while tracing.
//!
//! This is the one exception to "no global state": operators of handles have no argument through
//! which a builder could reach them.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

use super::bodies::{Bodies, Recording};
use crate::builder::Builder;
use crate::diagnostic::{Diagnostic, Diagnostics, Loc};
use crate::entity::Entity;
use crate::ir::infer::infer;
use crate::ir::{Access, DType, Func, Literal, Op, Shape, Stage, Type, Value, op};

thread_local! {
    static CONTEXT: RefCell<Option<Context>> = const { RefCell::new(None) };
    static TRACES: Cell<u64> = const { Cell::new(0) };
}

/// A device value of one trace. Handles of tiles, scalars and pointers hold these.
///
/// A handle stays on its thread, so that the number of the trace tells it from those of all others.
#[derive(Clone, Copy, Debug)]
pub struct Handle {
    value: Value,
    /// Which trace of this thread the value belongs to; 0 means made outside of any.
    trace: u64,
    thread: PhantomData<*const ()>,
}

impl Handle {
    /// Whether both are the same value of the same trace.
    pub(crate) fn is(self, other: Self) -> bool {
        self.value == other.value && self.trace == other.trace
    }
}

/// What a trace has built so far. Public in name only: the module is private.
pub struct Context {
    pub(crate) builder: Builder,
    trace: u64,
    file: (&'static str, Arc<str>),
    /// Whether the next loop goes through its body once more first, and forgets what that traced.
    pub(crate) repeats: bool,
    /// What the launch says of the parameters that are still to be declared, in order.
    choices: VecDeque<bool>,
    /// Where what the launch prints is recorded, once it prints.
    record: Option<Value>,
    /// The conditions of exits whose number is known.
    pub(super) exits: BTreeMap<Value, bool>,
    /// The parts of outcomes that no statement has set.
    pub(super) unset: BTreeSet<Value>,
    /// Whether the operator that is traced asserts that integers do not overflow.
    pub(super) checks_overflow: bool,
    /// How many functions of elements are around what is traced, which have no effects.
    pub(super) pure_depth: usize,
    /// How the bodies of loops and branches are gone through.
    pub(super) bodies: Bodies,
}

/// What a trace leaves.
#[derive(Debug)]
pub(super) struct Trace {
    pub(super) func: Func,
    pub(super) bodies: Bodies,
    exits: BTreeMap<Value, bool>,
    printed: Option<Value>,
}

impl Trace {
    /// The function, and what later traces know of this one.
    pub(super) fn recorded(self) -> (Func, Recording) {
        let recording = self.bodies.recording(&self.func, self.exits, self.printed);
        (self.func, recording)
    }
}

/// Runs `body` with a new context and gives what it traced. Traces do not nest.
pub(super) fn trace(name: &str, bodies: Bodies, body: impl FnOnce()) -> Result<Trace, Diagnostics> {
    let outer = CONTEXT.with(|cell| cell.borrow_mut().take());
    let trace = TRACES.with(|count| {
        count.set(count.get() + 1);
        count.get()
    });
    let context = Context {
        builder: Builder::new(name, Stage::Block),
        trace,
        file: ("", Arc::from("")),
        repeats: bodies.repeats(),
        choices: VecDeque::new(),
        record: None,
        exits: bodies.exits(),
        unset: BTreeSet::new(),
        checks_overflow: false,
        pure_depth: 0,
        bodies,
    };
    CONTEXT.with(|cell| *cell.borrow_mut() = Some(context));
    body();
    let context = CONTEXT
        .with(|cell| std::mem::replace(&mut *cell.borrow_mut(), outer))
        .expect("broken invariant: a trace keeps its context");
    let mut func = context.builder.finish()?;
    number_prints(&mut func);
    Ok(Trace {
        func,
        bodies: context.bodies,
        exits: context.exits,
        printed: context.record,
    })
}

/// Numbers prints as they stand in the text.
fn number_prints(func: &mut Func) {
    let mut numbers = 0..;
    for inst in func.all_insts() {
        if let Op::Print(op) = &mut func.inst_mut(inst).op {
            op.number = numbers.next().unwrap_or_default();
        }
    }
}

/// Whether this thread is tracing a kernel.
pub fn is_tracing() -> bool {
    // Something is borrowed while an instruction is appended: then it is.
    CONTEXT.with(|cell| cell.try_borrow().map_or(true, |context| context.is_some()))
}

/// Runs `action` on the context, with new instructions placed at `location`. Outside of a trace
/// nothing happens.
pub(crate) fn with<R>(
    location: &'static Location<'static>,
    action: impl FnOnce(&mut Context) -> R,
) -> Option<R> {
    CONTEXT.with(|cell| {
        let mut cell = cell.borrow_mut();
        let context = cell.as_mut()?;
        context.locate(location);
        Some(action(context))
    })
}

/// Appends what gives one value.
pub(crate) fn emit(
    location: &'static Location<'static>,
    action: impl FnOnce(&mut Context) -> Value,
) -> Handle {
    with(location, |context| {
        let value = action(context);
        context.handle(value)
    })
    .unwrap_or(Handle {
        value: Value::new(0),
        trace: 0,
        thread: PhantomData,
    })
}

/// Says what the trace depends on; what it says nothing of is not chosen.
pub(super) fn set_choices(choices: &[bool]) {
    with(Location::caller(), |context| {
        context.choices = choices.iter().copied().collect();
    });
}

/// What the launch says of the parameter that is declared next: whether an optional one is absent, whether a tensor begins
/// elsewhere than its memory, or whether an array that is read is also the one that is written.
pub(super) fn next_is_chosen() -> bool {
    let chosen = with(Location::caller(), |context| context.choices.pop_front());
    chosen.flatten().unwrap_or(false)
}

/// Records an error.
pub(crate) fn report(location: &'static Location<'static>, message: impl Into<String>) {
    with(location, |context| context.builder.error(message));
}

impl Context {
    /// Where what the launch prints is recorded: the last parameter, which no signature has.
    pub(super) fn record(&mut self) -> Value {
        let builder = &mut self.builder;
        let new = || builder.pointer_parameter("printed", DType::U64, Access::ReadWrite);
        *self.record.get_or_insert_with(new)
    }

    fn locate(&mut self, location: &'static Location<'static>) {
        if self.file.0 != location.file() {
            self.file = (location.file(), Arc::from(location.file()));
        }
        self.builder.set_loc(Loc {
            file: Arc::clone(&self.file.1),
            line: location.line(),
            column: location.column(),
        });
    }

    /// The number of this trace, which no other of this thread has.
    pub(crate) fn trace(&self) -> u64 {
        self.trace
    }

    /// A value of this trace as a handle.
    pub(crate) fn handle(&self, value: Value) -> Handle {
        Handle {
            value,
            trace: self.trace,
            thread: PhantomData,
        }
    }

    /// The value of a handle of this trace.
    pub(super) fn own(&self, handle: Handle) -> Option<Value> {
        (handle.trace == self.trace).then_some(handle.value)
    }

    /// The value of a handle; one of another trace is an error.
    pub(crate) fn value(&mut self, handle: Handle) -> Value {
        if handle.trace == self.trace {
            return handle.value;
        }
        self.builder
            .error("a device value made outside of this kernel is used in it");
        self.builder.poison()
    }

    /// The type of a value.
    pub(crate) fn ty(&self, value: Value) -> Type {
        self.builder.ty(value)
    }

    /// The shape with these extents, or an error that says where it is used.
    pub(crate) fn shape(&mut self, what: &str, extents: &[usize]) -> Option<Shape> {
        let shape = Shape::new(extents);
        shape
            .map_err(|reason| {
                let message = format!("`{what}`: {reason}");
                let mut error = Diagnostic::new(self.builder.loc().clone(), message);
                error.notes.extend(extents.iter().find_map(|&it| whole(it)));
                self.builder.report(error);
            })
            .ok()
    }

    /// The one result of an op, or an error with what to do.
    pub(super) fn advised(&mut self, op: Op, advice: impl FnOnce() -> Option<String>) -> Value {
        if let Err(message) = infer(self.builder.func(), &op, &[]) {
            let mut error = Diagnostic::new(self.builder.loc().clone(), message);
            error.notes.extend(advice());
            self.builder.report(error);
            return self.builder.poison();
        }
        self.builder.value(op)
    }

    /// A scalar literal, or an error.
    pub(crate) fn literal(&mut self, literal: Result<Literal, String>) -> Value {
        match literal {
            Ok(literal) => self.builder.filled(literal, Shape::SCALAR),
            Err(message) => {
                self.builder.error(message);
                self.builder.poison()
            }
        }
    }

    /// Both values as `i64`: how `i32` and `i64` mix.
    pub(crate) fn widen(&mut self, left: Value, right: Value) -> (Value, Value) {
        (self.cast(left, DType::I64), self.cast(right, DType::I64))
    }

    /// A conversion, or nothing when the value has the type or is poisoned.
    pub(crate) fn cast(&mut self, value: Value, dtype: DType) -> Value {
        match self.ty(value).is_poison() {
            true => value,
            false => self.builder.cast(value, dtype),
        }
    }

    /// Two operands repeated to their common shape.
    pub(crate) fn broadcast_pair(&mut self, what: &str, a: Value, b: Value) -> (Value, Value) {
        let (left, right) = (self.ty(a), self.ty(b));
        if left.is_poison() || right.is_poison() || left.shape == right.shape {
            return (a, b);
        }
        match common_shape(left.shape, right.shape) {
            Ok(shape) => (
                self.broadcast(what, a, shape),
                self.broadcast(what, b, shape),
            ),
            Err(reason) => {
                let (found, other) = (left.shape, right.shape);
                let message = format!("`{what}`: shapes {found} and {other} do not broadcast");
                let diagnostic = Diagnostic::new(self.builder.loc().clone(), message).note(reason);
                self.builder.report(diagnostic);
                let poison = self.builder.poison();
                (poison, poison)
            }
        }
    }

    /// A value repeated to `shape`.
    pub(crate) fn broadcast(&mut self, what: &str, value: Value, shape: Shape) -> Value {
        let ty = self.ty(value);
        if ty.is_poison() || ty.shape == shape {
            return value;
        }
        if ty.shape.is_scalar() {
            return self.builder.splat(value, shape);
        }
        match common_shape(ty.shape, shape) {
            Ok(common) if common == shape => self.builder.declared(
                Op::Broadcast(op::Broadcast { x: value }),
                ty.with_shape(shape),
            ),
            other => {
                let found = ty.shape;
                let message = format!("`{what}`: shape {found} does not broadcast to {shape}");
                let mut diagnostic = Diagnostic::new(self.builder.loc().clone(), message);
                let remedy = other.err().filter(|_| found.rank() <= shape.rank());
                diagnostic.notes.extend(remedy);
                if shape.is_scalar() && matches!(what, "store" | "mask" | "other") {
                    let extents = found.dims();
                    let offsets = match extents[..] {
                        [extent] => format!("arange(0, {extent})"),
                        _ => format!("offsets of shape {found}"),
                    };
                    diagnostic.notes.push(format!(
                        "the pointer names one place: add the offsets of the others to it, as in `out + {offsets}`"
                    ));
                }
                self.builder.report(diagnostic);
                self.builder.poison()
            }
        }
    }
}

/// What to do about an extent that is no power of two.
pub(super) fn whole(extent: usize) -> Option<String> {
    let whole = extent.checked_next_power_of_two()?;
    (whole != extent && extent > 0).then(|| {
        format!(
            "take {whole}, the next power of two, and a mask that leaves out the rest: `at < {extent}` of `let at = arange(0, {whole})`"
        )
    })
}

/// The shape that both broadcast to, or why there is none. A scalar fits every shape; else ranks
/// are equal, and so are the extents of each axis unless one of them is 1.
fn common_shape(left: Shape, right: Shape) -> Result<Shape, String> {
    if left.is_scalar() {
        return Ok(right);
    }
    if right.is_scalar() {
        return Ok(left);
    }
    if left.rank() != right.rank() {
        return Err("the ranks differ: insert an axis with `.expand(axis)`".to_string());
    }
    let mut extents = Vec::with_capacity(left.rank());
    for (axis, (a, b)) in left.dims().into_iter().zip(right.dims()).enumerate() {
        if a != b && a != 1 && b != 1 {
            return Err(format!("axis {axis} has extents `{a}` and `{b}`"));
        }
        extents.push(a.max(b));
    }
    Shape::new(&extents)
}
