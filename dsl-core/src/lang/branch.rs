//! `if` and `else`: what a condition can be, and how both branches become one op.

use std::panic::Location;

use super::bodies::{Body, Side};
use super::carry::{Carried, Carry, Host, Opaque, Slot};
use super::context::{self, Context, Handle};
use super::element::LiteralOf;
use super::frame::{Snapshot, VALUE, assign, quoted, reject_changed, reject_opaque};
use super::tile::{DeviceValue, Scalar};
use crate::diagnostic::Diagnostic;
use crate::ir::{BinaryOp, Op, Region, Trait, Type, Value, op};

/// What decides an `if` or `while`: a host `bool` while tracing, a `Scalar<bool>` on the device.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot decide an `if` or `while` in a kernel",
    label = "expected `bool` or `Scalar<bool>`",
    note = "compare a number, such as `n != 0`",
    note = "a tile chooses element by element with `select(condition, a, b)`"
)]
pub trait Condition {
    /// The condition.
    #[doc(hidden)]
    fn decide(self) -> Decision;
}

/// A condition that is known, or traced.
#[derive(Clone, Copy)]
pub enum Decision {
    /// Known while tracing.
    Host(bool),
    /// Known on the device.
    Device(Handle),
}

impl Condition for Decision {
    fn decide(self) -> Decision {
        self
    }
}

impl Condition for bool {
    fn decide(self) -> Decision {
        Decision::Host(self)
    }
}

impl Condition for Scalar<bool> {
    fn decide(self) -> Decision {
        Decision::Device(self.handle())
    }
}

/// A condition of the trace whose number is known.
pub(super) fn known(location: &'static Location<'static>, holds: bool) -> Handle {
    context::emit(location, |context| {
        context.literal(LiteralOf::<bool>::literal(holds))
    })
}

/// The values of the branches that were traced.
pub struct Branches<V> {
    /// Of the first branch.
    pub then: Option<V>,
    /// Of the second branch.
    pub otherwise: Option<V>,
}

impl<V> Branches<V> {
    /// No branch yet.
    pub const fn new() -> Self {
        Self {
            then: None,
            otherwise: None,
        }
    }

    /// No branch yet, of the type of others.
    pub const fn like(_: &Self) -> Self {
        Self::new()
    }

    fn any(self) -> V {
        self.then
            .or(self.otherwise)
            .expect("broken invariant: an `if` takes a branch")
    }
}

impl<V> Default for Branches<V> {
    fn default() -> Self {
        Self::new()
    }
}

/// An `if` while it is traced.
pub struct If {
    decision: Decision,
    location: &'static Location<'static>,
    regions: Vec<Region>,
    outer: Option<Region>,
    before: Snapshot,
    then: Snapshot,
    bodies: [Body; 2],
}

impl If {
    /// Starts an `if`.
    #[track_caller]
    pub fn begin(condition: impl Condition) -> Self {
        let location = Location::caller();
        let decision = condition.decide();
        // Outside of a trace nothing is on the device.
        let traced = context::with(location, |_| ()).is_some();
        Self {
            decision: match decision {
                Decision::Device(_) if !traced => Decision::Host(true),
                Decision::Device(_) | Decision::Host(_) => decision,
            },
            location,
            regions: Vec::new(),
            outer: None,
            before: Snapshot::default(),
            then: Snapshot::default(),
            bodies: Default::default(),
        }
    }

    /// Whether to trace the first branch now.
    pub fn enter_then(&mut self, slots: &mut [Slot<'_>]) -> bool {
        match self.decision {
            Decision::Host(taken) => taken,
            Decision::Device(_) => {
                reject_opaque(self.location, "branch", slots);
                self.before = Snapshot::take(slots);
                self.enter();
                self.bodies[0] = Body::begin(self.location, Side::First, &self.before);
                !self.bodies[0].is_left_out()
            }
        }
    }

    /// Whether to trace the second branch now.
    pub fn enter_otherwise(&mut self, slots: &mut [Slot<'_>]) -> bool {
        match self.decision {
            Decision::Host(taken) => !taken,
            Decision::Device(_) => {
                self.end_then(slots);
                self.bodies[1] = Body::begin(self.location, Side::Otherwise, &self.before);
                !self.bodies[1].is_left_out()
            }
        }
    }

    /// [`enter_otherwise`](Self::enter_otherwise) where there is no second branch, so that it gives nothing.
    pub fn enter_nothing(&mut self, slots: &mut [Slot<'_>]) -> bool {
        match self.decision {
            Decision::Host(taken) => !taken,
            Decision::Device(_) => {
                self.end_then(slots);
                true
            }
        }
    }

    /// Whether to trace the right side of `&&` or `||` now: the first branch where it is asked for if the left one holds,
    /// else the second one.
    pub(super) fn enter_right(&mut self, asked_if: bool, slots: &mut [Slot<'_>]) -> bool {
        if let Decision::Host(holds) = self.decision {
            return holds == asked_if;
        }
        reject_opaque(self.location, "branch", slots);
        self.before = Snapshot::take(slots);
        if !asked_if {
            self.then = self.before.clone();
            self.enter();
        }
        self.enter();
        let body = Body::begin(self.location, Side::Right, &self.before);
        let is_traced = !body.is_left_out();
        self.bodies[usize::from(!asked_if)] = body;
        is_traced
    }

    /// What `&&` or `||` gives on the device. A right side without effects becomes an operand, which is computed always.
    pub(super) fn end_right(
        mut self,
        asked_if: bool,
        right: Option<Handle>,
        slots: &mut [Slot<'_>],
    ) -> Option<Handle> {
        let Decision::Device(condition) = self.decision else {
            return right;
        };
        let body = &self.bodies[usize::from(!asked_if)];
        // Where parts are left out, what is left tells nothing.
        let is_plain = match body.was_dissolved() {
            Some(dissolved) => dissolved,
            None => self.is_plain(slots),
        };
        if is_plain {
            reject_changed(self.location, "branch", slots);
            return self.operand(asked_if, condition, right, slots);
        }
        let mut decides = |parts: &mut Snapshot| parts.values.extend(right);
        let location = self.location;
        let mut decided = |parts: &mut Snapshot| parts.values.push(known(location, !asked_if));
        let values: [&mut dyn FnMut(&mut Snapshot); 2] = match asked_if {
            true => {
                self.end_then(slots);
                [&mut decides, &mut decided]
            }
            false => [&mut decided, &mut decides],
        };
        self.end(condition, slots, values).first().copied()
    }

    /// Whether the branch that was traced last changes nothing and has no effect, nor anything that may not end.
    fn is_plain(&self, slots: &mut [Slot<'_>]) -> bool {
        let after = Snapshot::take(slots);
        let same = after.values.iter().zip(&self.before.values);
        let unchanged = after.values.len() == self.before.values.len()
            && same.into_iter().all(|(a, b)| a.is(*b));
        let pure = context::with(self.location, |context| {
            let (func, mut pure) = (context.builder.func(), true);
            let region = *self.regions.last()?;
            func.walk(region, &mut |inst| {
                let op = func.op(inst);
                pure &= op.is(Trait::pure) || matches!(op, Op::If(_) | Op::Yield(_));
            });
            Some(pure)
        });
        unchanged && pure.flatten().unwrap_or(false)
    }

    /// Moves the branch that was traced last to where the `if` stands.
    fn operand(
        &mut self,
        asked_if: bool,
        left: Handle,
        right: Option<Handle>,
        slots: &mut [Slot<'_>],
    ) -> Option<Handle> {
        let body = &self.bodies[usize::from(!asked_if)];
        body.end(self.location, &self.before, slots);
        let mut value = Snapshot::default();
        value.values.extend(right);
        body.value(self.location, &mut value);
        let insts = context::with(self.location, |context| {
            let (outer, region) = (self.outer?, *self.regions.last()?);
            let func = context.builder.func_mut();
            let insts = std::mem::take(&mut func.region_mut(region).insts);
            func.region_mut(outer).insts.extend(&insts);
            context.builder.enter(outer);
            Some(insts)
        })?;
        body.dissolve(self.location, &insts?);
        let &right = value.values.first()?;
        context::with(self.location, |context| {
            let op = match asked_if {
                true => BinaryOp::And,
                false => BinaryOp::Or,
            };
            let [left, right] = [left, right].map(|it| context.value(it));
            let both = context.builder.binary(op, left, right);
            context.handle(both)
        })
    }

    fn end_then(&mut self, slots: &mut [Slot<'_>]) {
        reject_changed(self.location, "branch", slots);
        self.then = self.bodies[0].end(self.location, &self.before, slots);
        self.before.restore(slots);
        self.enter();
    }

    fn enter(&mut self) {
        context::with(self.location, |context| {
            let region = context.builder.new_region(&[]);
            let outer = context.builder.enter(region);
            self.outer.get_or_insert(outer);
            self.regions.push(region);
        });
    }

    /// Ends the `if`; gives what each value of the two branches became. `values` give the parts of
    /// the values of the branches.
    fn end(
        &mut self,
        condition: Handle,
        slots: &mut [Slot<'_>],
        values: [&mut dyn FnMut(&mut Snapshot); 2],
    ) -> Vec<Handle> {
        reject_changed(self.location, "branch", slots);
        let otherwise = self.bodies[1].end(self.location, &self.before, slots);
        let values = self.values(values);
        let merged = context::with(self.location, |context| {
            let paired = self.then.matches(&self.before, "after the branch", context)
                & otherwise.matches(&self.before, "after the branch", context)
                & values[1].matches(&values[0], "in the second branch", context);
            let (mut names, mut left, mut right) = (Vec::new(), Vec::new(), Vec::new());
            if paired {
                names.extend(&self.before.names);
                names.extend(&values[0].names);
                left.extend(self.then.resolve(context));
                left.extend(values[0].resolve(context));
                right.extend(otherwise.resolve(context));
                right.extend(values[1].resolve(context));
            }
            let merged = self.merge(context, condition, &names, &left, &right);
            let handles = merged.into_iter().map(|value| context.handle(value));
            handles.collect::<Vec<Handle>>()
        });
        let merged = merged.unwrap_or_default();
        let mut carried = self.before.clone();
        let count = carried.values.len();
        if merged.len() >= count {
            carried.values = merged[..count].to_vec();
            carried.restore(slots);
            return merged[count..].to_vec();
        }
        self.before.restore(slots);
        Vec::new()
    }

    /// The parts of the values of the branches, each made where its branch ends.
    fn values(&self, values: [&mut dyn FnMut(&mut Snapshot); 2]) -> [Snapshot; 2] {
        let mut parts = [Snapshot::default(), Snapshot::default()];
        for (side, parts) in parts.iter_mut().enumerate() {
            context::with(self.location, |context| {
                context.builder.enter(self.regions[side]);
            });
            values[side](parts);
            self.bodies[side].value(self.location, parts);
            parts.names = vec![VALUE; parts.values.len()];
        }
        parts
    }

    /// Both sides, with zeros for parts of outcomes that one side alone sets.
    fn filled(&self, context: &mut Context, [left, right]: [&[Value]; 2]) -> [Vec<Value>; 2] {
        let [mut first, mut second] = [left.to_vec(), right.to_vec()];
        let regions = [self.regions[0], self.regions[1]];
        for (left, right) in first.iter_mut().zip(&mut second) {
            let (of_left, of_right) = (*left, *right);
            for (region, own, other) in [(regions[0], left, of_right), (regions[1], right, of_left)]
            {
                if !context.is_unset(*own) || context.ty(other).is_poison() {
                    continue;
                }
                if let Some(filler) = context.filler(region, context.ty(other)) {
                    *own = filler;
                }
            }
        }
        [first, second]
    }

    fn merge(
        &self,
        context: &mut Context,
        condition: Handle,
        names: &[&'static str],
        left: &[Value],
        right: &[Value],
    ) -> Vec<Value> {
        let [left, right] = self.filled(context, [left, right]);
        let mut merged = left.clone();
        let mut places = Vec::new();
        let mut types: Vec<Type> = Vec::new();
        for (index, (&a, &b)) in left.iter().zip(&right).enumerate() {
            let (first, second) = (context.ty(a), context.ty(b));
            if a == b {
                continue;
            }
            if first.is_poison() || second.is_poison() {
                merged[index] = if first.is_poison() { a } else { b };
            } else if first == second {
                places.push(index);
                types.push(first);
            } else {
                let name = names[index];
                context.builder.error(format!(
                    "{name} is `{first}` in one branch and `{second}` in the other",
                    name = quoted(name)
                ));
            }
        }
        for (&region, values) in self.regions.iter().zip([left, right]) {
            context.builder.enter(region);
            let values = places.iter().map(|&place| values[place]).collect();
            context.builder.emit(Op::Yield(op::Yield { values }), &[]);
        }
        if let Some(outer) = self.outer {
            context.builder.enter(outer);
        }
        if let [on_true, on_false] = self.regions[..] {
            let condition = context.value(condition);
            let op = Op::If(op::If {
                condition,
                on_true,
                on_false,
            });
            let inst = context.builder.emit(op, &types);
            let results = context.builder.results(inst).to_vec();
            for (place, result) in places.into_iter().zip(results) {
                merged[place] = result;
            }
        }
        merged
    }
}

impl Carried {
    /// The value of an `if` that gives handles.
    pub fn merge<V: Carry>(
        &self,
        mut branch: If,
        mut branches: Branches<V>,
        slots: &mut [Slot<'_>],
    ) -> V {
        let Decision::Device(condition) = branch.decision else {
            return branches.any();
        };
        let Branches { then, otherwise } = &mut branches;
        let parts = |side: &mut Option<V>, snapshot: &mut Snapshot| {
            if let Some(value) = side {
                value.visit(&mut |part| snapshot.part(VALUE, part));
            }
        };
        let merged = branch.end(
            condition,
            slots,
            [&mut |snapshot| parts(then, snapshot), &mut |snapshot| {
                parts(otherwise, snapshot)
            }],
        );
        let mut value = branches.any();
        let mut merged = merged.iter();
        value.visit(&mut |part| assign(part, &mut merged));
        value
    }
}

impl Host {
    /// The value of an `if` that gives a host value: on the device both must be equal.
    pub fn merge<V: PartialEq>(
        &self,
        mut branch: If,
        branches: Branches<V>,
        slots: &mut [Slot<'_>],
    ) -> V {
        if let Decision::Device(condition) = branch.decision {
            branch.end(condition, slots, [&mut |_| {}, &mut |_| {}]);
            let left_out = branch.bodies.iter().any(Body::is_left_out);
            if !left_out && branches.then != branches.otherwise {
                context::with(branch.location, |context| {
                    let message = "a run-time `if` gives different host values in its branches";
                    let error = Diagnostic::new(context.builder.loc().clone(), message);
                    context.builder.report(error.note(
                        "make numbers of the device of them, as `scalar(1.0)` in both branches, or write `select(condition, 1.0, 2.0)`",
                    ));
                });
            }
        }
        branches.any()
    }
}

impl Opaque {
    /// The value of an `if` of another type: an error on the device.
    pub fn merge<V>(&self, mut branch: If, branches: Branches<V>, slots: &mut [Slot<'_>]) -> V {
        if let Decision::Device(condition) = branch.decision {
            branch.end(condition, slots, [&mut |_| {}, &mut |_| {}]);
            let found = std::any::type_name::<V>();
            context::report(
                branch.location,
                format!("a run-time `if` cannot give a value of type `{found}`"),
            );
        }
        branches.any()
    }
}
