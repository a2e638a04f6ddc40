//! The bodies of loops and branches of the device: what the first trace made of them, and traces that leave
//! some of them out.
//!
//! A body runs on the host while it is traced, whether the device will run it or not, so nothing that follows
//! may show that it ran. A trace that leaves a body out goes on with the values that the first trace had at its
//! end. They have the same numbers, since values that no instruction gives take the place of those of the body.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::Location;
use std::rc::Rc;

use super::carry::Slot;
use super::context::{self, Context, Handle};
use super::frame::Snapshot;
use super::repeat::Passes;
use crate::entity::Entity;
use crate::ir::{Func, Inst, Region, Type, Value};

/// From this depth on all bodies are left out at once, which bounds the number of traces.
const MOST_DEPTH: usize = 6;

/// Which body of a loop or branch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Side {
    /// That of a loop, and the first one of an `if`.
    First,
    /// What follows `else`.
    Otherwise,
    /// What follows `&&` or `||`.
    Right,
}

/// How a trace goes through bodies.
#[derive(Debug)]
pub(super) struct Bodies {
    plan: Plan,
    /// How many bodies are around what is traced.
    depth: usize,
}

#[derive(Debug)]
enum Plan {
    /// Through each, to know it in later traces.
    Record(Vec<Recorded>),
    /// Through each, and through those of loops once more before.
    Repeat,
    /// Through all but these.
    LeaveOut {
        side: Side,
        depth: usize,
        first: Rc<Recording>,
        /// The number of the body that begins next.
        next: usize,
        omitted: Omitted,
    },
}

/// What a trace left out.
#[derive(Clone, Default, Debug)]
pub(super) struct Omitted {
    /// Its regions.
    pub(super) regions: BTreeSet<Region>,
    /// Instructions of the first trace, which became part of what is around their body.
    pub(super) dissolved: BTreeSet<Inst>,
}

/// What the first trace leaves for those after it.
#[derive(Debug)]
pub(super) struct Recording {
    types: Vec<Type>,
    bodies: Vec<Recorded>,
    exits: BTreeMap<Value, bool>,
    /// Where what the launch prints is recorded.
    printed: Option<Value>,
}

/// A body in the first trace.
#[derive(Clone, Debug)]
struct Recorded {
    side: Side,
    depth: usize,
    /// How many values there were where it began.
    start: usize,
    end: Moment,
    /// Where the value of its `if` was taken.
    value: Moment,
    /// How many bodies had begun where it ended.
    next: usize,
    /// What it holds, where that became part of the body around it.
    dissolved: Option<Vec<Inst>>,
}

/// Values at some place of the first trace.
#[derive(Clone, Default, Debug)]
struct Moment {
    /// How many there were in all.
    count: usize,
    values: Vec<Value>,
}

impl Bodies {
    /// The first trace.
    pub(super) fn record() -> Self {
        Self::new(Plan::Record(Vec::new()))
    }

    fn new(plan: Plan) -> Self {
        Self { plan, depth: 0 }
    }

    /// Whether loops go through their bodies again.
    pub(super) fn repeats(&self) -> bool {
        matches!(self.plan, Plan::Repeat)
    }

    /// The exits whose numbers are known before anything is traced.
    pub(super) fn exits(&self) -> BTreeMap<Value, bool> {
        match &self.plan {
            Plan::LeaveOut { first, .. } => first.exits.clone(),
            Plan::Record(_) | Plan::Repeat => BTreeMap::new(),
        }
    }

    /// What was left out.
    pub(super) fn left_out(self) -> Omitted {
        match self.plan {
            Plan::LeaveOut { omitted, .. } => omitted,
            Plan::Record(_) | Plan::Repeat => Omitted::default(),
        }
    }

    /// What later traces know of this one.
    pub(super) fn recording(
        self,
        func: &Func,
        exits: BTreeMap<Value, bool>,
        printed: Option<Value>,
    ) -> Recording {
        Recording {
            types: func.values().map(|value| func.ty(value)).collect(),
            bodies: match self.plan {
                Plan::Record(bodies) => bodies,
                Plan::Repeat | Plan::LeaveOut { .. } => Vec::new(),
            },
            exits,
            printed,
        }
    }
}

impl Recording {
    /// The traces that must be like the first one.
    pub(super) fn rounds(self: &Rc<Self>) -> Vec<Bodies> {
        let bodies = self.bodies.iter();
        let places = bodies.map(|body| (body.depth.min(MOST_DEPTH), body.side));
        let places: BTreeSet<(usize, Side)> = places.collect();
        let without = places.into_iter().map(|(depth, side)| {
            Bodies::new(Plan::LeaveOut {
                side,
                depth,
                first: Rc::clone(self),
                next: 0,
                omitted: Omitted::default(),
            })
        });
        std::iter::once(Bodies::new(Plan::Repeat))
            .chain(without)
            .collect()
    }
}

/// A body while it is traced, or left out.
#[derive(Default)]
pub(super) struct Body {
    /// Nothing where nobody counts them.
    number: Option<usize>,
    left_out: Option<Recorded>,
    /// Whether the first trace made it part of the body around it.
    was_dissolved: Option<bool>,
}

impl Body {
    /// The body that the current region begins; `before` is what its slots hold.
    pub(super) fn begin(
        location: &'static Location<'static>,
        side: Side,
        before: &Snapshot,
    ) -> Self {
        let begun = context::with(location, |context| {
            context.begin_body(side, before.values.len())
        });
        begun.unwrap_or_default()
    }

    /// Whether it is not to be traced.
    pub(super) fn is_left_out(&self) -> bool {
        self.left_out.is_some()
    }

    /// What its slots hold where it ends.
    pub(super) fn end(
        &self,
        location: &'static Location<'static>,
        before: &Snapshot,
        slots: &mut [Slot<'_>],
    ) -> Snapshot {
        let mut after = match self.left_out {
            Some(_) => before.clone(),
            None => Snapshot::take(slots),
        };
        context::with(location, |context| {
            if self.number.is_some() {
                context.bodies.depth -= 1;
            }
            match &self.left_out {
                Some(recorded) => {
                    context.go_to(&recorded.end, &mut after);
                    if let Plan::LeaveOut { next, .. } = &mut context.bodies.plan {
                        *next = recorded.next;
                    }
                }
                None => context.note(self.number, &after, |recorded, moment, next| {
                    recorded.end = moment;
                    recorded.next = next;
                }),
            }
        });
        after
    }

    /// Whether the first trace made what it holds part of the body around it; nothing in that trace.
    pub(super) fn was_dissolved(&self) -> Option<bool> {
        self.was_dissolved
    }

    /// Says that what it holds, `insts`, became part of the body around it.
    pub(super) fn dissolve(&self, location: &'static Location<'static>, insts: &[Inst]) {
        context::with(location, |context| {
            if let Plan::Record(bodies) = &mut context.bodies.plan
                && let Some(recorded) = self.number.and_then(|number| bodies.get_mut(number))
            {
                recorded.dissolved = Some(insts.to_vec());
            }
        });
    }

    /// The parts of the value that it gives to its `if`: `parts`, unless it was left out.
    pub(super) fn value(&self, location: &'static Location<'static>, parts: &mut Snapshot) {
        context::with(location, |context| match &self.left_out {
            Some(recorded) => context.go_to(&recorded.value, parts),
            None => context.note(self.number, parts, |recorded, moment, _| {
                recorded.value = moment;
            }),
        });
    }
}

/// What a function of elements gives, of which the current region is the body: as a body of a loop it is traced again,
/// or left out.
pub(super) fn function(
    location: &'static Location<'static>,
    call: impl FnMut() -> Vec<Handle>,
) -> Vec<Handle> {
    let before = Snapshot::default();
    let body = Body::begin(location, Side::First, &before);
    let mut given = Snapshot::default();
    if !body.is_left_out() {
        given.values = repeated(location, call);
    }
    body.end(location, &before, &mut []);
    body.value(location, &mut given);
    given.values
}

/// What a closure without effects gives: in a trace that repeats, what it traced first is forgotten and it is called again.
pub(super) fn repeated(
    location: &'static Location<'static>,
    mut call: impl FnMut() -> Vec<Handle>,
) -> Vec<Handle> {
    let begun = context::with(location, |context| {
        context.pure_depth += 1;
        let region = context.builder.region();
        let count = context.builder.func().region(region).insts.len();
        (Passes::begin(context), region, count)
    });
    let Some((mut passes, region, count)) = begun else {
        return call();
    };
    if passes.forgets() {
        call();
        context::with(location, |context| {
            passes.go_on(context);
            context.builder.enter(region);
            let insts = &mut context.builder.func_mut().region_mut(region).insts;
            insts.truncate(count);
        });
    }
    let given = call();
    context::with(location, |context| {
        context.pure_depth -= 1;
        passes.go_on(context);
    });
    given
}

impl Context {
    fn begin_body(&mut self, side: Side, slots: usize) -> Body {
        let start = self.builder.func().value_count();
        let depth = self.bodies.depth + 1;
        let region = self.builder.region();
        let body = match &mut self.bodies.plan {
            Plan::Repeat => return Body::default(),
            Plan::Record(bodies) => {
                bodies.push(Recorded {
                    side,
                    depth,
                    start,
                    end: Moment::default(),
                    value: Moment::default(),
                    next: bodies.len() + 1,
                    dissolved: None,
                });
                Body {
                    number: Some(bodies.len() - 1),
                    left_out: None,
                    was_dissolved: None,
                }
            }
            Plan::LeaveOut {
                side: of_side,
                depth: at,
                first,
                next,
                omitted,
            } => {
                let number = *next;
                *next += 1;
                let asked = *of_side == side && depth.min(MOST_DEPTH) == *at;
                // A trace that already differs has other values: then nothing can be left out.
                let is_same = |it: &&Recorded| {
                    it.start == start && it.side == side && it.end.values.len() == slots
                };
                let recorded = first.bodies.get(number).filter(is_same);
                let left_out = recorded.filter(|_| asked).cloned();
                if let Some(recorded) = &left_out {
                    omitted.regions.insert(region);
                    omitted
                        .dissolved
                        .extend(recorded.dissolved.iter().flatten());
                }
                Body {
                    number: Some(number),
                    left_out,
                    was_dissolved: recorded.map(|it| it.dissolved.is_some()),
                }
            }
        };
        self.bodies.depth = depth;
        body
    }

    fn note(
        &mut self,
        number: Option<usize>,
        snapshot: &Snapshot,
        set: impl FnOnce(&mut Recorded, Moment, usize),
    ) {
        let values = snapshot.values.iter();
        let values: Option<Vec<Value>> = values.map(|&handle| self.own(handle)).collect();
        let moment = Moment {
            count: self.builder.func().value_count(),
            values: values.unwrap_or_default(),
        };
        if let Plan::Record(bodies) = &mut self.bodies.plan {
            let next = bodies.len();
            if let Some(recorded) = number.and_then(|number| bodies.get_mut(number)) {
                set(recorded, moment, next);
            }
        }
    }

    /// Adds values until there are as many as at `moment`, and gives those that were noted then.
    fn go_to(&mut self, moment: &Moment, snapshot: &mut Snapshot) {
        let Plan::LeaveOut { first, .. } = &self.bodies.plan else {
            return;
        };
        let first = Rc::clone(first);
        let nowhere = self.builder.func_mut().add_region();
        let start = self.builder.func().value_count();
        for number in start..moment.count {
            let is_printed = first.printed.is_some_and(|it| it.index() == number);
            match first.types.get(number) {
                Some(_) if is_printed => {
                    self.record();
                }
                Some(&ty) => {
                    self.builder.func_mut().add_region_parameter(nowhere, ty);
                }
                None => {}
            }
        }
        snapshot.set(self, &moment.values);
    }
}
