//! How the slots of a loop or branch become parameters, yields and results of its op.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::Location;

use super::carry::{Part, Slot};
use super::context::{self, Context, Handle};
use crate::diagnostic::Diagnostic;
use crate::ir::{Region, Type, Value};

/// The name of the value of an `if` among the names of bindings.
pub(super) const VALUE: &str = "the value of the `if`";

const ONE_ARGUMENT: &str = "which argument a pointer points into is known while tracing: load from both and choose \
     by `select`, or access each argument in its own branch";

/// A name as messages show it.
pub(super) fn quoted(name: &str) -> String {
    match name {
        VALUE => name.to_string(),
        "__result" => "the value that is returned".to_string(),
        _ if name.starts_with("__value_") => "the value of the `loop`".to_string(),
        _ if name.starts_with("__held_") => "the value that is bound".to_string(),
        _ => format!("`{name}`"),
    }
}

/// The values of all carried bindings at one moment.
#[derive(Clone, Default)]
pub(super) struct Snapshot {
    pub(super) names: Vec<&'static str>,
    pub(super) values: Vec<Handle>,
    fixed: Vec<(&'static str, Handle)>,
    /// The places of exits among the values.
    pub(super) exits: Vec<usize>,
}

impl Snapshot {
    pub(super) fn take(slots: &mut [Slot<'_>]) -> Self {
        let mut snapshot = Self::default();
        for slot in slots {
            if let Slot::Carried { name, value } = slot {
                value.visit(&mut |part| snapshot.part(name, part));
            }
        }
        snapshot
    }

    pub(super) fn part(&mut self, name: &'static str, part: Part<'_>) {
        match part {
            Part::Value(handle) => {
                self.names.push(name);
                self.values.push(*handle);
            }
            Part::Fixed(handle) => self.fixed.push((name, handle)),
            Part::Exit(exit) => {
                self.exits.push(self.values.len());
                self.names.push(name);
                self.values.push(*exit.handle_mut());
            }
        }
    }

    /// Sets the carried bindings to these values.
    pub(super) fn restore(&self, slots: &mut [Slot<'_>]) {
        let mut values = self.values.iter();
        for slot in slots {
            if let Slot::Carried { value, .. } = slot {
                value.visit(&mut |part| assign(part, &mut values));
            }
        }
    }

    /// The values in the trace.
    pub(super) fn resolve(&self, context: &mut Context) -> Vec<Value> {
        let values = self.values.iter();
        values.map(|&handle| context.value(handle)).collect()
    }

    /// Sets the values from the trace.
    pub(super) fn set(&mut self, context: &Context, values: &[Value]) {
        self.values = values.iter().map(|&value| context.handle(value)).collect();
    }

    /// [`set`](Self::set) where the body of a loop begins: nothing has been left.
    pub(super) fn set_in_body(&mut self, context: &mut Context, values: &[Value]) {
        self.set(context, values);
        for &exit in &self.exits {
            let stays = context.exit(false);
            self.values[exit] = context.handle(stays);
        }
    }

    /// The values after the body of a loop, which began with `inside`. Exits that it leaves nowhere are those
    /// that it began with.
    pub(super) fn after_body(&self, context: &mut Context, inside: &[Value]) -> Vec<Value> {
        let mut next = self.resolve(context);
        for &exit in &self.exits {
            if context.known_exit(next[exit]) == Some(false) {
                next[exit] = inside[exit];
            }
        }
        next
    }

    /// Reports what may not differ from `before`; whether the rest can be paired with it.
    pub(super) fn matches(&self, before: &Self, what: &str, context: &mut Context) -> bool {
        let mut reported = BTreeSet::new();
        for ((name, after), (_, start)) in self.fixed.iter().zip(&before.fixed) {
            if !after.is(*start) && reported.insert(name) {
                let loc = context.builder.loc().clone();
                let name = quoted(name);
                let message = format!("{name} points into another argument {what}");
                context
                    .builder
                    .report(Diagnostic::new(loc, message).note(ONE_ARGUMENT));
            }
        }
        let same = self.values.len() == before.values.len();
        if !same {
            let name = self
                .names
                .iter()
                .zip(&before.names)
                .find_map(|(after, start)| (after != start).then_some(*start))
                .or_else(|| before.names.last().copied())
                .or_else(|| self.names.last().copied())
                .unwrap_or_default();
            let message = format!(
                "{name} holds another number of values {what}",
                name = quoted(name)
            );
            let error = Diagnostic::new(context.builder.loc().clone(), message);
            context.builder.report(error.note(
                "the device has no lists that grow: make it as long as it will be before, and set its elements by numbers of the host, \
                 or loop over numbers of the host, as in `for i in 0..4`",
            ));
        }
        same
    }
}

/// Sets one part from the values that are left.
pub(super) fn assign<'a>(part: Part<'_>, values: &mut impl Iterator<Item = &'a Handle>) {
    match part {
        Part::Value(handle) => *handle = values.next().copied().unwrap_or(*handle),
        Part::Exit(exit) => values.next().into_iter().for_each(|&it| exit.set(it)),
        Part::Fixed(_) => {}
    }
}

/// Reports slots that a traced loop or branch cannot have.
pub(super) fn reject_opaque(location: &'static Location<'static>, what: &str, slots: &[Slot<'_>]) {
    for slot in slots {
        if let Slot::Opaque { name, type_name } = slot {
            context::with(location, |context| {
                let loc = context.builder.loc().clone();
                let message = format!(
                    "`{name}` of type `{type_name}` cannot be carried through a run-time {what}"
                );
                let advice = match type_name.contains("{{closure}}") {
                    true => {
                        "a closure hides what it changes: hand that to a `#[device]` function as `&mut`, or write the code where it is called"
                    }
                    false => "bind it without `mut`, or derive `Carry` for it if it holds handles",
                };
                context
                    .builder
                    .report(Diagnostic::new(loc, message).note(advice));
            });
        }
    }
}

/// Reports host values that a traced body changed.
pub(super) fn reject_changed(location: &'static Location<'static>, what: &str, slots: &[Slot<'_>]) {
    for slot in slots {
        if let Slot::Host {
            name,
            changed: true,
        } = slot
        {
            context::with(location, |context| {
                let loc = context.builder.loc().clone();
                context.builder.report(
                    Diagnostic::new(
                        loc,
                        format!("the host value `{name}` changes inside a run-time {what}"),
                    )
                    .note("it would change once, while tracing: use a `Scalar`, or make the bounds or condition host values"),
                );
            });
        }
    }
}

/// Which of `entry` a loop carries: all but those already in error. The rest keep their value.
pub(super) fn carried_types(context: &Context, entry: &[Value]) -> Vec<Type> {
    let types = entry.iter().map(|&value| context.ty(value));
    types.filter(|ty| !ty.is_poison()).collect()
}

/// `entry` with the carried ones replaced by `parameters`.
pub(super) fn replaced(context: &Context, entry: &[Value], parameters: &[Value]) -> Vec<Value> {
    let mut parameters = parameters.iter().copied();
    entry
        .iter()
        .map(|&value| match context.ty(value).is_poison() {
            true => value,
            false => parameters.next().unwrap_or(value),
        })
        .collect()
}

/// The next value of `name`, which must have the type of `entry`; otherwise an error, and `entry`.
pub(super) fn same_type(
    context: &mut Context,
    what: &str,
    name: &str,
    entry: Value,
    next: Value,
) -> Value {
    let (before, after) = (context.ty(entry), context.ty(next));
    if before == after || after.is_poison() {
        return next;
    }
    context.builder.error(format!(
        "`{name}` is `{after}` after the {what}, expected `{before}` as before it"
    ));
    entry
}

/// Replaces values in all instructions of `region`.
pub(super) fn substitute(
    context: &mut Context,
    region: Region,
    replacements: &BTreeMap<Value, Value>,
) {
    if replacements.is_empty() {
        return;
    }
    let mut insts = Vec::new();
    let func = context.builder.func_mut();
    func.walk(region, &mut |inst| insts.push(inst));
    for inst in insts {
        let op = &mut func.inst_mut(inst).op;
        op.map_operands(&mut |value| replacements.get(&value).copied().unwrap_or(value));
    }
    func.region_mut(region)
        .parameters
        .retain(|parameter| !replacements.contains_key(parameter));
}
