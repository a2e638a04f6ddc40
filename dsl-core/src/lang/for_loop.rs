//! `for` over a range of the device: a loop of the device.

use std::collections::BTreeMap;
use std::panic::Location;

use super::bodies::{self, Side};
use super::carry::Slot;
use super::context::{self, Context, Handle};
use super::control::{DeviceRange, IntoLoop, Loop, Step};
use super::frame::{
    Snapshot, carried_types, reject_changed, reject_opaque, replaced, same_type, substitute,
};
use super::outcome::SetPart;
use super::repeat::Passes;
use super::tile::{DeviceValue, Scalar};
use crate::ir::{DType, Op, Region, Type, Value, op};

/// A loop that becomes a `for` op, or a `while` op if a statement leaves it.
pub struct DeviceLoop {
    range: DeviceRange,
    /// The trips of a loop that counts them.
    trips: Option<Handle>,
    location: &'static Location<'static>,
    body: Option<Body>,
    passes: Passes,
    done: bool,
}

struct Body {
    outer: Region,
    region: Region,
    before: Snapshot,
    entry: Vec<Value>,
    /// `entry`, with the carried ones as the region's parameters.
    inside: Vec<Value>,
    traced: bodies::Body,
}

impl IntoLoop for DeviceRange {
    type Loop = DeviceLoop;
    #[track_caller]
    fn into_loop(self) -> DeviceLoop {
        DeviceLoop {
            range: self,
            trips: None,
            location: Location::caller(),
            body: None,
            passes: Passes::default(),
            done: false,
        }
    }
}

impl Loop for DeviceLoop {
    type Item = Scalar<i64>;

    fn next(&mut self, slots: &mut [Slot<'_>]) -> Option<Scalar<i64>> {
        if self.done {
            return None;
        }
        match self.body.take() {
            None => {
                let index = self.begin(slots);
                self.done = index.is_none();
                index
            }
            Some(body) if self.passes.forgets() => self.again(body, slots),
            Some(body) => {
                self.end(body, slots);
                self.done = true;
                None
            }
        }
    }
}

impl DeviceLoop {
    fn begin(&mut self, slots: &mut [Slot<'_>]) -> Option<Scalar<i64>> {
        reject_opaque(self.location, "loop", slots);
        let before = Snapshot::take(slots);
        let counts = !before.exits.is_empty();
        let begun = context::with(self.location, |context| {
            if counts || self.range.must_count() {
                self.range.count(context);
            }
            let trips = self.range.trips(context);
            let trips = trips.map(|trips| context.handle(trips));
            (trips, Passes::begin(context))
        });
        (self.trips, self.passes) = begun?;
        self.enter(before, slots)
    }

    /// Goes through the body anew: what it traced is forgotten.
    fn again(&mut self, body: Body, slots: &mut [Slot<'_>]) -> Option<Scalar<i64>> {
        context::with(self.location, |context| {
            self.passes.go_on(context);
            context.builder.enter(body.outer);
        });
        self.enter(body.before, slots)
    }

    fn enter(&mut self, before: Snapshot, slots: &mut [Slot<'_>]) -> Option<Scalar<i64>> {
        let range = self.range;
        let (mut body, index, inside) = context::with(self.location, |context| {
            let entry = before.resolve(context);
            let types = carried_types(context, &entry);
            let region = context
                .builder
                .new_region(&[&[Type::INDEX][..], &types].concat());
            let parameters = context.builder.parameters(region);
            let inside = replaced(context, &entry, &parameters[1..]);
            let outer = context.builder.enter(region);
            let mut snapshot = before.clone();
            snapshot.set_in_body(context, &inside);
            let body = Body {
                outer,
                region,
                before,
                entry,
                inside,
                traced: bodies::Body::default(),
            };
            let index = range.index(context, parameters[0]);
            (body, context.handle(index), snapshot)
        })?;
        inside.restore(slots);
        body.traced = bodies::Body::begin(self.location, Side::First, &body.before);
        if body.traced.is_left_out() {
            self.end(body, slots);
            self.done = true;
            return None;
        }
        self.body = Some(body);
        Some(Scalar::from_handle(index))
    }

    fn end(&self, body: Body, slots: &mut [Slot<'_>]) {
        reject_changed(self.location, "loop", slots);
        let mut after = body.traced.end(self.location, &body.before, slots);
        let after = context::with(self.location, |context| {
            let next = match after.matches(&body.before, "after the body", context) {
                true => after.after_body(context, &body.inside),
                false => body.inside.clone(),
            };
            after = body.before.clone();
            let mut carried = Carried::default();
            for (index, &parameter) in body.inside.iter().enumerate() {
                if parameter == body.entry[index] {
                    continue;
                }
                let name = after.names[index];
                let value = same_type(context, "body", name, parameter, next[index]);
                if value == parameter {
                    carried.unchanged.insert(parameter, body.entry[index]);
                    continue;
                }
                if after.exits.contains(&index) {
                    carried.exits.push(carried.init.len());
                }
                carried.init.push(body.entry[index]);
                carried.yielded.push(value);
            }
            let set = context.set_in_loop(&body.entry, &next, body.outer);
            carried.add(&set, body.region, context);
            let unchanged = std::mem::take(&mut carried.unchanged);
            substitute(context, body.region, &unchanged);
            let results = match carried.exits.is_empty() {
                true => self.emit(context, carried, &body),
                false => self.emit_left(context, carried, &body),
            };
            self.passes.go_on(context);
            let mut results = results.into_iter();
            let mut last: Vec<Value> = body
                .entry
                .iter()
                .zip(&body.inside)
                .map(
                    |(&entry, inside)| match entry == *inside || unchanged.contains_key(inside) {
                        true => entry,
                        false => results.next().unwrap_or(entry),
                    },
                )
                .collect();
            for (part, result) in set.iter().zip(results) {
                last[part.place] = result;
            }
            after.set(context, &last);
            after
        });
        if let Some(after) = after {
            after.restore(slots);
        }
    }

    fn emit(&self, context: &mut Context, carried: Carried, body: &Body) -> Vec<Value> {
        let Carried { init, yielded, .. } = carried;
        hand_on(context, yielded);
        context.builder.enter(body.outer);
        let bound = |context: &mut Context, handle: Handle| {
            let value = context.value(handle);
            context.cast(value, DType::I64)
        };
        let (lower, upper, step) = match (self.range.step, self.trips) {
            (Step::Device(_) | Step::Down(_), Some(trips)) => {
                (context.builder.index(0), context.value(trips), 1)
            }
            (Step::Host(step), _) => {
                let lower = bound(context, self.range.start.handle());
                (lower, bound(context, self.range.end.handle()), step)
            }
            (Step::Device(_) | Step::Down(_), None) => return Vec::new(),
        };
        let op = Op::For(op::For {
            lower,
            upper,
            init,
            step,
            stages: self.range.stages,
            body: body.region,
        });
        let inst = context.builder.emit(op, &[]);
        context.builder.results(inst).to_vec()
    }

    /// The loop as a `while`, which ends as soon as an iteration has left it.
    fn emit_left(&self, context: &mut Context, carried: Carried, body: &Body) -> Vec<Value> {
        let Some(trips) = self.trips else {
            return Vec::new();
        };
        let trips = context.value(trips);
        let one = context.builder.index(1);
        let trip = context.builder.parameters(body.region)[0];
        let next = context.builder.add(trip, one);
        hand_on(context, [vec![next], carried.yielded].concat());
        context.builder.enter(body.outer);
        let zero = context.builder.index(0);
        let init = [vec![zero], carried.init].concat();
        let types: Vec<Type> = init.iter().map(|&value| context.ty(value)).collect();
        let before = context.builder.new_region(&types);
        let parameters = context.builder.parameters(before).to_vec();
        context.builder.enter(before);
        let exits = carried.exits.iter().map(|&exit| parameters[exit + 1]);
        let exits: Vec<Value> = exits.collect();
        let more = context.builder.lt(parameters[0], trips);
        let more = match context.none(&exits) {
            Some(stays) => context.builder.and(stays, more),
            None => more,
        };
        hand_on(context, [vec![more], parameters].concat());
        context.builder.enter(body.outer);
        let body = body.region;
        let op = Op::While(op::While { init, before, body });
        let inst = context.builder.emit(op, &[]);
        context.builder.results(inst)[1..].to_vec()
    }
}

fn hand_on(context: &mut Context, values: Vec<Value>) {
    context.builder.emit(Op::Yield(op::Yield { values }), &[]);
}

/// What a loop carries.
#[derive(Default)]
struct Carried {
    init: Vec<Value>,
    yielded: Vec<Value>,
    /// The places of exits in both.
    exits: Vec<usize>,
    /// The parameters of values that the body does not change, with the values.
    unchanged: BTreeMap<Value, Value>,
}

impl Carried {
    /// Adds the parts of outcomes that the body sets.
    fn add(&mut self, set: &[SetPart], region: Region, context: &mut Context) {
        for part in set {
            context.parameter_for(region, part);
            self.init.push(part.before);
            self.yielded.push(part.value);
        }
    }
}
