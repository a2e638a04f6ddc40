//! `if` and `else`: what a condition can be, and how both branches become one op.

use std::panic::Location;

use super::carry::{Carried, Carry, Host, Opaque, Slot};
use super::context::{self, Context, Handle};
use super::frame::{Snapshot, assign, reject_changed, reject_opaque};
use super::tile::{DeviceValue, Scalar};
use crate::ir::{Op, Region, Type, Value, op};

/// What decides an `if` or `while`: a host `bool` while tracing, a `Scalar<bool>` on the device.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot decide an `if` or `while` in a kernel",
    label = "expected `bool` or `Scalar<bool>`",
    note = "compare a number, such as `n != 0`",
    note = "a tile chooses element by element with `select(condition, a, b)`",
    note = "a tile of rank 0 becomes a scalar with `.scalar()`"
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
                true
            }
        }
    }

    /// Whether to trace the second branch now.
    pub fn enter_otherwise(&mut self, slots: &mut [Slot<'_>]) -> bool {
        match self.decision {
            Decision::Host(taken) => !taken,
            Decision::Device(_) => {
                reject_changed(self.location, "branch", slots);
                self.then = Snapshot::take(slots);
                self.before.restore(slots);
                self.enter();
                true
            }
        }
    }

    fn enter(&mut self) {
        context::with(self.location, |context| {
            let region = context.builder.new_region(&[]);
            let outer = context.builder.enter(region);
            self.outer.get_or_insert(outer);
            self.regions.push(region);
        });
    }

    /// Ends the `if`; gives what each value of the two branches became. `values` are the parts of
    /// the values of the branches.
    fn end(
        &mut self,
        condition: Handle,
        slots: &mut [Slot<'_>],
        values: [Snapshot; 2],
    ) -> Vec<Handle> {
        reject_changed(self.location, "branch", slots);
        let otherwise = Snapshot::take(slots);
        let merged = context::with(self.location, |context| {
            let paired = self.then.matches(&self.before, "branch", context)
                & otherwise.matches(&self.before, "branch", context)
                & values[0].matches(&values[1], "branches", context);
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

    fn merge(
        &self,
        context: &mut Context,
        condition: Handle,
        names: &[&'static str],
        left: &[Value],
        right: &[Value],
    ) -> Vec<Value> {
        let mut merged = left.to_vec();
        let mut places = Vec::new();
        let mut types: Vec<Type> = Vec::new();
        for (index, (&a, &b)) in left.iter().zip(right).enumerate() {
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

/// The name of the value of an `if` among the names of bindings.
const VALUE: &str = "the value of the `if`";

fn quoted(name: &str) -> String {
    match name == VALUE {
        true => name.to_string(),
        false => format!("`{name}`"),
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
        let mut values = [Snapshot::default(), Snapshot::default()];
        let sides = [&mut branches.then, &mut branches.otherwise];
        for (snapshot, side) in values.iter_mut().zip(sides) {
            if let Some(value) = side {
                value.visit(&mut |part| snapshot.part(VALUE, part));
            }
        }
        let merged = branch.end(condition, slots, values);
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
            branch.end(condition, slots, Default::default());
            if branches.then != branches.otherwise {
                context::report(
                    branch.location,
                    "a run-time `if` gives different host values in its branches",
                );
            }
        }
        branches.any()
    }
}

impl Opaque {
    /// The value of an `if` of another type: an error on the device.
    pub fn merge<V>(&self, mut branch: If, branches: Branches<V>, slots: &mut [Slot<'_>]) -> V {
        if let Decision::Device(condition) = branch.decision {
            branch.end(condition, slots, Default::default());
            let found = std::any::type_name::<V>();
            context::report(
                branch.location,
                format!("a run-time `if` cannot give a value of type `{found}`"),
            );
        }
        branches.any()
    }
}
