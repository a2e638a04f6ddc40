//! `while`: a host condition unrolls, a device condition becomes a loop.

use std::collections::BTreeMap;
use std::panic::Location;

use super::bodies::{Body, Side};
use super::branch::{Condition, Decision};
use super::carry::Slot;
use super::context::{self, Context};
use super::exit::is_left;
use super::frame::{
    Snapshot, carried_types, reject_changed, reject_opaque, replaced, same_type, substitute,
};
use super::repeat::Passes;
use crate::diagnostic::Diagnostic;
use crate::ir::{Op, Region, Trait, Value, op};

/// A `while` while it is traced.
///
/// Whether the condition is a host value shows only once it is evaluated, so the first evaluation
/// happens in a region of its own, which a host condition drops again.
pub struct While {
    location: &'static Location<'static>,
    state: State,
    passes: Passes,
    /// Whether the body has been entered.
    begun: bool,
}

enum State {
    Start,
    /// The condition is being evaluated in `regions[0]`.
    Testing(Trial),
    /// The body is being traced in `regions[1]`.
    Body(Trial),
    /// The condition is a host value.
    Host,
    Done,
}

struct Trial {
    outer: Region,
    regions: [Region; 2],
    before: Snapshot,
    entry: Vec<Value>,
    /// For each region, `entry` with the carried ones as its parameters.
    inside: [Vec<Value>; 2],
    condition: Option<Value>,
    /// What the first region hands on.
    tested: Vec<Value>,
    traced: Body,
}

impl Default for While {
    #[track_caller]
    fn default() -> Self {
        Self::new()
    }
}

impl While {
    /// Starts a `while`.
    #[track_caller]
    pub fn new() -> Self {
        Self {
            location: Location::caller(),
            state: State::Start,
            passes: Passes::default(),
            begun: false,
        }
    }

    /// Whether to evaluate the condition now; the end of a traced body ends the loop.
    pub fn enter(&mut self, slots: &mut [Slot<'_>]) -> bool {
        match std::mem::replace(&mut self.state, State::Done) {
            State::Host if is_left(slots) => false,
            State::Start => {
                self.state = self.begin(Snapshot::take(slots), slots);
                true
            }
            State::Host => {
                self.state = State::Host;
                true
            }
            State::Body(trial) if self.passes.forgets() => {
                context::with(self.location, |context| {
                    self.passes.go_on(context);
                    context.builder.enter(trial.outer);
                });
                self.state = self.begin(trial.before, slots);
                true
            }
            State::Body(trial) => {
                self.end(trial, slots);
                false
            }
            State::Testing(_) | State::Done => false,
        }
    }

    fn begin(&self, before: Snapshot, slots: &mut [Slot<'_>]) -> State {
        let trial = context::with(self.location, |context| {
            let entry = before.resolve(context);
            let types = carried_types(context, &entry);
            let regions = [(); 2].map(|()| context.builder.new_region(&types));
            let inside = regions.map(|region| {
                let parameters = context.builder.parameters(region);
                replaced(context, &entry, &parameters)
            });
            let outer = context.builder.enter(regions[0]);
            let mut snapshot = before.clone();
            snapshot.set(context, &inside[0]);
            let trial = Trial {
                outer,
                regions,
                before,
                entry,
                inside,
                condition: None,
                tested: Vec::new(),
                traced: Body::default(),
            };
            (trial, snapshot)
        });
        let Some((trial, snapshot)) = trial else {
            return State::Host;
        };
        snapshot.restore(slots);
        State::Testing(trial)
    }

    /// Whether to run or trace the body now.
    #[track_caller]
    pub fn test(&mut self, condition: impl Condition, slots: &mut [Slot<'_>]) -> bool {
        let decision = condition.decide();
        match (std::mem::replace(&mut self.state, State::Done), decision) {
            (State::Testing(trial), Decision::Host(holds)) => {
                self.abandon(&trial, slots);
                self.state = State::Host;
                holds
            }
            (State::Testing(trial), Decision::Device(condition)) => {
                reject_opaque(self.location, "loop", slots);
                reject_changed(self.location, "loop", slots);
                let trial = self.body(trial, condition, slots);
                if trial.traced.is_left_out() {
                    self.end(trial, slots);
                    return false;
                }
                self.state = State::Body(trial);
                true
            }
            (State::Host, Decision::Host(holds)) => {
                self.state = State::Host;
                holds
            }
            (_, _) => false,
        }
    }

    fn abandon(&self, trial: &Trial, slots: &mut [Slot<'_>]) {
        context::with(self.location, |context| {
            let traced = &context.builder.func().region(trial.regions[0]).insts;
            if !traced.is_empty() {
                context
                    .builder
                    .error("the host condition of a `while` computes device values");
            }
            context.builder.enter(trial.outer);
        });
        trial.before.restore(slots);
    }

    fn body(
        &mut self,
        mut trial: Trial,
        condition: context::Handle,
        slots: &mut [Slot<'_>],
    ) -> Trial {
        let tested = Snapshot::take(slots);
        let is_first = !std::mem::replace(&mut self.begun, true);
        let snapshot = context::with(self.location, |context| {
            if is_first {
                self.passes = Passes::begin(context);
            }
            trial.tested = match tested.matches(&trial.before, "after the condition", context) {
                true => tested.resolve(context),
                false => trial.inside[0].clone(),
            };
            let condition = context.value(condition);
            trial.condition = Some(goes_on(&trial, condition, context));
            context.builder.enter(trial.regions[1]);
            let mut snapshot = trial.before.clone();
            snapshot.set_in_body(context, &trial.inside[1]);
            snapshot
        });
        if let Some(snapshot) = snapshot {
            snapshot.restore(slots);
        }
        trial.traced = Body::begin(self.location, Side::First, &trial.before);
        trial
    }

    fn end(&self, trial: Trial, slots: &mut [Slot<'_>]) {
        reject_changed(self.location, "loop", slots);
        let after = trial.traced.end(self.location, &trial.before, slots);
        let snapshot = context::with(self.location, |context| {
            let next = match after.matches(&trial.before, "after the body", context) {
                true => after.after_body(context, &trial.inside[1]),
                false => trial.inside[1].clone(),
            };
            let Carried {
                mut init,
                mut yields,
                unchanged,
            } = Carried::of(&trial, &next, context);
            let set = context.set_in_loop(&trial.entry, &next, trial.outer);
            for part in &set {
                let [tested, _] = trial
                    .regions
                    .map(|region| context.parameter_for(region, part));
                init.push(part.before);
                yields[0].push(tested);
                yields[1].push(part.value);
            }
            for (&region, values) in trial.regions.iter().zip(yields) {
                context.builder.enter(region);
                context.builder.emit(Op::Yield(op::Yield { values }), &[]);
            }
            for (&region, unchanged) in trial.regions.iter().zip(&unchanged) {
                substitute(context, region, unchanged);
            }
            context.builder.enter(trial.outer);
            self.passes.go_on(context);
            let [before, body] = trial.regions;
            let inst = context
                .builder
                .emit(Op::While(op::While { init, before, body }), &[]);
            let mut results = context.builder.results(inst).to_vec().into_iter();
            let mut last: Vec<Value> = trial
                .entry
                .iter()
                .zip(&trial.inside[0])
                .map(|(&entry, inside)| {
                    match entry == *inside || unchanged[0].contains_key(inside) {
                        true => entry,
                        false => results.next().unwrap_or(entry),
                    }
                })
                .collect();
            for (part, result) in set.iter().zip(results) {
                last[part.place] = result;
            }
            let mut snapshot = trial.before.clone();
            snapshot.set(context, &last);
            snapshot
        });
        if let Some(snapshot) = snapshot {
            snapshot.restore(slots);
        }
    }
}

/// The condition of another iteration: nothing has been left, and `condition` holds. That is computed after
/// an iteration that left the loop too, so it may read no memory, which could lie out of bounds by then.
fn goes_on(trial: &Trial, condition: Value, context: &mut Context) -> Value {
    let exits = trial.before.exits.iter();
    let exits: Vec<Value> = exits.map(|&exit| trial.inside[0][exit]).collect();
    let Some(stays) = context.none(&exits) else {
        return condition;
    };
    let func = context.builder.func();
    let mut reads = false;
    func.walk(trial.regions[0], &mut |inst| {
        let op = func.op(inst);
        reads |= op.is(Trait::reads) || op.is(Trait::writes) || matches!(op, Op::Gather(_));
    });
    if reads {
        let message = "the condition of a `while` that `break` or `return` leaves reads memory";
        let loc = context.builder.loc().clone();
        let error = Diagnostic::new(loc, message)
            .note("write `loop { if !condition { break; } .. }`, which does not compute it again after a `break`");
        context.builder.report(error);
    }
    match context.ty(condition).is_poison() {
        true => condition,
        false => context.builder.and(stays, condition),
    }
}

/// What a loop carries.
struct Carried {
    init: Vec<Value>,
    /// What each region hands on: of the condition, that first.
    yields: [Vec<Value>; 2],
    /// In each region the parameters of values that no region changes, with the values.
    unchanged: [BTreeMap<Value, Value>; 2],
}

impl Carried {
    /// Carried are the values that the condition or the body changes, where `next` is what the body makes.
    fn of(trial: &Trial, next: &[Value], context: &mut Context) -> Self {
        let mut init = Vec::new();
        let mut yields = [Vec::from_iter(trial.condition), Vec::new()];
        let mut unchanged = [BTreeMap::new(), BTreeMap::new()];
        for (index, &entry) in trial.entry.iter().enumerate() {
            let parameters = [trial.inside[0][index], trial.inside[1][index]];
            if parameters[0] == entry {
                continue;
            }
            let name = trial.before.names[index];
            let tested = same_type(
                context,
                "condition",
                name,
                parameters[0],
                trial.tested[index],
            );
            let value = same_type(context, "body", name, parameters[1], next[index]);
            if tested == parameters[0] && value == parameters[1] {
                unchanged[0].insert(parameters[0], entry);
                unchanged[1].insert(parameters[1], entry);
            } else {
                init.push(entry);
                yields[0].push(tested);
                yields[1].push(value);
            }
        }
        Self {
            init,
            yields,
            unchanged,
        }
    }
}
