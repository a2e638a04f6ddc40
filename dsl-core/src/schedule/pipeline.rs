//! Loops whose loads are started iterations ahead, by asynchronous copies to slots of shared memory.
//!
//! A load keeps its layout: each lane copies what it would have loaded, and reads back what it copied itself,
//! so waiting is enough and no barrier is needed. Three kinds of slots are filled by all lanes for all, and there an iteration begins
//! with a barrier: what a product reads from slots, runs that begin anywhere, whose pieces lanes share, and tiles that are read in
//! another layout. There is one slot for each stage: an iteration first starts the
//! copies of the iteration `stages - 1` ahead, into the slot that the iteration before it has read. Where tiles are read in
//! another layout and the next iteration does not wait for these copies, they come last; where such tiles are carried to the
//! next iteration, copies are for `stages` iterations ahead, into the slot of their own iteration. Where products stay under way over
//! the loop's edge, they come first. Where warps release slots, copies follow the
//! release of that slot then; otherwise they are for `stages - 2` iterations ahead, into that of the iteration before the last.

mod carried;
mod copies;
mod first;
mod nested;
mod order;
mod read_ahead;
mod releases;

use std::collections::{BTreeMap, BTreeSet};

use super::ahead::Ahead;
use super::nest::{is_counted, loops_around, stages_of};
use super::overlap::{Added, Overlap};
use super::read_back::read_back;
use super::rings::{Ring, Slots, Uses};
use super::runs::{Numbers, numbered, slow_runs};
use super::{MayEnd, PlacedFunc};
use crate::builder::Builder;
use crate::diagnostic::Diagnostics;
use crate::ir::{BinaryOp, CompareOp, Element, Func, Inst, Op, Region, Type, Value, op};
use crate::passes::dce::dce;
use crate::passes::indices::Indices;
use crate::target::Target;

use first::{has_boxes, is_small};
use nested::Onward;
use read_ahead::Reads;

/// The most stages of a ring that has no slot to spare.
const LEAST_SPARE: i64 = 4;

/// The deepest pipeline.
pub const MAX_STAGES: i64 = 8;

/// The greatest step of a loop whose loads run ahead: so far ahead no index wraps.
pub(super) const LONGEST_STEP: i64 = 1 << 40;

/// What stands for the values of an iteration in one that is ahead of it.
type Now = BTreeMap<Value, Value>;

/// Starts the loads of loops ahead: `stated` iterations of all loops, or as many as each loop says, and not more
/// than `most`. No copy of a box is under way where `may_end` says that the program may end.
///
/// # Errors
/// None that the function did not have before.
pub fn pipeline(
    func: PlacedFunc,
    target: &Target,
    (stated, most): (Option<i64>, i64),
    may_end: MayEnd<'_>,
) -> Result<PlacedFunc, Diagnostics> {
    if target.gpu.copy_bytes.is_empty() {
        return Ok(func);
    }
    let stages = |inst: Inst| {
        let Op::For(op) = func.op(inst) else { return 1 };
        stages_of(&func, op, stated).min(most)
    };
    let loops = func.all_insts().into_iter();
    let loops: Vec<(Inst, i64)> = loops
        .map(|inst| (inst, stages(inst)))
        .filter(|&(_, stages)| stages > 1)
        .collect();
    if loops.is_empty() {
        return Ok(func);
    }
    let before = func.inst_count();
    let mut indices = Indices::of(&func);
    let mut func = func.into_inner();
    let mut runs = Numbers::new();
    let slow = slow_runs(&func, &indices, target, stated);
    if !slow.is_empty() {
        (func, runs) = numbered(func, slow)?;
        indices = Indices::of(&func);
    }
    func.keep_sites();
    for (inst, stages) in loops {
        func = pipelined(func, inst, stages, (&indices, &runs, target), may_end)?;
    }
    if func.inst_count() > before {
        dce(&mut func);
    }
    PlacedFunc::new(func)
}

/// The state of pipelining one loop.
struct Pipeliner {
    builder: Builder,
    body: Region,
    stages: i64,
    /// How many iterations ahead copies start.
    distance: i64,
    /// Whether the products of an iteration stay under way in the next one.
    overlaps: bool,
    ahead: Ahead,
    /// For each load that runs ahead its slots.
    rings: BTreeMap<Inst, Ring>,
    /// For each of them its buffer.
    buffers: BTreeMap<Inst, Value>,
    /// Of the slice, what the next carried values and scalars follow from, but for what follows from loads.
    early: BTreeSet<Inst>,
    /// How often warps must have released a slot that is filled from here on.
    released: Option<Value>,
    /// What stands for the values of an iteration of the loop around, where copies for another one are started.
    around: Now,
}

/// What a loop carries for an iteration of its own: its slot, and how many boxes have filled that before.
#[derive(Clone, Copy)]
struct Own {
    slot: Value,
    turn: Option<Value>,
}

fn pipelined(
    func: Func,
    inst: Inst,
    stages: i64,
    (indices, runs, target): (&Indices, &Numbers, &Target),
    may_end: MayEnd<'_>,
) -> Result<Func, Diagnostics> {
    let Op::For(op) = func.op(inst).clone() else {
        return Ok(func);
    };
    let mut rings = BTreeMap::new();
    let uses = Uses::new(&func, indices, target);
    let counted = is_counted(&func, inst);
    let boxed = counted && has_boxes(&func, op.body);
    let ahead = Ahead::find(&func, op.body, may_end, &mut |load| {
        let found = uses
            .ring(load, runs.get(&load).copied())
            .filter(|_| !matches!(func.op(load), Op::CopyBox(_)) || counted)
            .filter(|found| found.fed.is_some() || !boxed || !is_small(&func, load))?;
        let numbers = found.run.into_iter().flatten().collect();
        rings.insert(load, found).is_none().then_some(numbers)
    });
    if ahead.loads.is_empty() {
        return Ok(func);
    }
    rings.retain(|load, _| ahead.loads.contains(load));
    let mut pipeliner = Pipeliner {
        early: ahead.early(&func, op.body),
        builder: Builder::resume(func),
        body: op.body,
        stages,
        distance: stages - 1,
        overlaps: false,
        ahead,
        rings,
        buffers: BTreeMap::new(),
        released: None,
        around: Now::new(),
    };
    pipeliner.whole(inst, op, may_end);
    pipeliner.builder.finish()
}

impl Pipeliner {
    fn func(&self) -> &Func {
        self.builder.func()
    }

    /// Appends what `fill` appends to a region of its own; returns it.
    fn apart<T>(&mut self, fill: impl FnOnce(&mut Self) -> T) -> (Vec<Inst>, T) {
        let region = self.builder.func_mut().add_region();
        let outer = self.builder.enter(region);
        let filled = fill(self);
        self.builder.enter(outer);
        let insts = std::mem::take(&mut self.builder.func_mut().region_mut(region).insts);
        (insts, filled)
    }

    fn whole(&mut self, inst: Inst, mut op: op::For, may_end: MayEnd<'_>) {
        self.builder.set_loc(self.func().inst(inst).loc.clone());
        let (mut begun, ()) = self.apart(|this| this.make_buffers(this.body));
        let around = loops_around(self.func(), inst);
        // What is counted of boxes goes on from run to run.
        let goes_on = self.copies_boxes() && !around.is_empty();
        let releases = (goes_on || around.is_empty()) && self.shares_boxes_alone();
        let onward = (goes_on && releases).then(|| self.onward(&around, &op, may_end));
        let onward = onward.flatten();
        let parameters = self.carry_all(&op, onward.as_ref());
        let own = self.own(&parameters);
        let slot = own.slot;
        let is_behind_releases = releases && self.stages <= LEAST_SPARE;
        let (reads, pending) = self.look_ahead(slot, (releases, is_behind_releases));
        let (insts, ()) = self.apart(|this| this.meet(&own, (pending, releases)));
        let outermost = around.first().copied().unwrap_or(inst);
        let (mut before, state) = if goes_on {
            let begun = (&mut begun, releases);
            self.fill_on((&around, &op), begun, onward.as_ref())
        } else {
            self.apart(|this| this.fill_alone(&op, outermost != inst))
        };
        let (last, limit) = self.apart(|this| this.limit(&op));
        before.extend(last);
        let turn = own.turn.filter(|_| releases);
        let onward = onward.as_ref();
        let (ahead, next) =
            self.apart(|this| this.run_ahead((&op, onward), &parameters, (limit, turn)));
        let (released, ()) = self.apart(|this| {
            if releases {
                this.release(&op, slot);
            }
        });
        self.add_results(inst, &state);
        let behind = goes_on.then(|| self.go_on(around, (inst, &op), releases));
        let insts = [self.loads_first(may_end), insts].concat();
        let reader = reads.map(|reads| (&op, own, reads));
        let (overlap, (first, tiles)) =
            self.compose((slot, pending), (insts, &ahead, &released), (next, reader));
        before.extend(first);
        self.add_results(inst, &tiles);
        let func = self.builder.func_mut();
        op.init.extend([state, tiles].concat());
        func.inst_mut(inst).op = Op::For(op);
        if let Some(overlap) = overlap {
            let added = Added {
                ahead: &ahead.into_iter().collect(),
                is_behind_releases,
                releases: &released,
            };
            overlap.apply(func, inst, self.body, added);
        }
        self.begin((inst, outermost), (begun, before), may_end);
        if let Some(behind) = behind {
            behind.apply(self.builder.func_mut(), inst);
        }
    }

    /// How far ahead copies start. Returns when tiles are read ahead, if they are, and how many groups of copies may be pending where
    /// an iteration begins.
    fn look_ahead(
        &mut self,
        slot: Value,
        (releases, is_behind_releases): (bool, bool),
    ) -> (Option<Reads>, i64) {
        self.overlaps = (releases || self.stages > 2) && self.may_overlap(slot);
        self.distance -= i64::from(self.overlaps && !is_behind_releases);
        let reads = self.may_read_ahead(slot);
        let ahead = i64::from(reads.is_some());
        self.distance += ahead;
        (reads, self.distance - 1 - ahead)
    }

    /// Starts the first copies of a loop, which may be in another one.
    fn fill_alone(&mut self, op: &op::For, is_inner: bool) -> Vec<Value> {
        // Other warps may still read what a loop around has filled the slots with before.
        if self.shares() && is_inner {
            self.builder.emit(Op::Barrier(op::Barrier {}), &[]);
        }
        self.fill(op, None)
    }

    /// Whether the products of the loop may stay under way. Their slots are free an iteration later.
    fn may_overlap(&self, slot: Value) -> bool {
        if !self.feeds() {
            return false;
        }
        let mut func = self.func().clone();
        read_back(&mut func, &self.rings, &self.buffers, (self.body, slot));
        Overlap::find(&func, self.body, slot).is_some()
    }

    /// Makes the buffers of the loads in a region. The branches of an `if` share those that are alike.
    fn make_buffers(&mut self, region: Region) {
        for inst in self.func().region(region).insts.clone() {
            if self.ahead.loads.contains(&inst) {
                let buffer = self.buffer(inst);
                self.buffers.insert(inst, buffer);
            } else if let &Op::If(op::If {
                on_true, on_false, ..
            }) = self.func().op(inst)
                && self.ahead.slice.contains(&inst)
            {
                self.make_buffers(on_true);
                let mut free: Vec<(Slots, Value)> = Vec::new();
                for load in self.loads_in(on_true) {
                    let found = (self.rings[&load].slots.clone(), self.buffers[&load]);
                    if !free.contains(&found) {
                        free.push(found);
                    }
                }
                for load in self.loads_in(on_false) {
                    let found = free
                        .iter()
                        .position(|(slots, _)| *slots == self.rings[&load].slots);
                    let buffer = match found {
                        Some(position) => free.swap_remove(position).1,
                        None => self.buffer(load),
                    };
                    self.buffers.insert(load, buffer);
                }
            }
        }
    }

    fn loads_in(&self, region: Region) -> Vec<Inst> {
        let mut loads = Vec::new();
        self.func().walk(region, &mut |inst| {
            if self.ahead.loads.contains(&inst) {
                loads.push(inst);
            }
        });
        loads
    }

    fn buffer(&mut self, load: Inst) -> Value {
        let Slots { ty, layout, .. } = self.rings[&load].slots.clone();
        let dtype = ty.dtype().expect("broken invariant: a tile is of numbers");
        let loc = self.builder.loc().clone();
        self.builder.set_loc(self.func().inst(load).loc.clone());
        let buffer = self.builder.declared(
            Op::Buffer(op::Buffer { behind: None }),
            Type {
                element: Element::Buffer(dtype, self.stages as u8),
                shape: ty.shape,
            },
        );
        self.builder.set_loc(loc);
        let layout = self.builder.func_mut().intern(layout);
        self.builder.func_mut().set_layout(buffer, Some(layout));
        buffer
    }

    /// Before the loop: starts the copies of the iterations that it is ahead. They fill slots from that of `start` on, which others
    /// may have to release, or the first ones. Returns what the loop carries: values of the iteration ahead, and the slot of its
    /// own.
    fn fill(&mut self, op: &op::For, start: Option<(Own, bool)>) -> Vec<Value> {
        let mut state: Vec<Value> = self.ahead.carried.iter().map(|&at| op.init[at]).collect();
        let mut own = start.map(|(own, _)| own);
        for stage in 0..self.distance {
            let distance = stage * op.step;
            let limit = before_end(&mut self.builder, op.upper, distance);
            let runs = self.builder.compare(CompareOp::Lt, op.lower, limit);
            let index = self.later(op.lower, distance);
            let slot = match own {
                Some(own) => own.slot,
                None => self.builder.int32(stage as i32),
            };
            let released = start.is_some_and(|(_, released)| released);
            self.released = own.and_then(|own| own.turn).filter(|_| released);
            state = self.start_copies(index, &state, runs, slot);
            own = own.map(|own| self.following(own));
        }
        self.released = None;
        match start {
            Some((own, _)) => state.extend([own.slot].into_iter().chain(own.turn)),
            None => {
                for _ in 0..=usize::from(self.copies_boxes()) {
                    state.push(self.builder.int32(0));
                }
            }
        }
        state
    }

    /// What an index must be below for an iteration as far ahead to run.
    fn limit(&mut self, op: &op::For) -> Value {
        before_end(&mut self.builder, op.upper, self.distance * op.step)
    }

    fn later(&mut self, index: Value, distance: i64) -> Value {
        if distance == 0 {
            return index;
        }
        let distance = self.builder.index(distance);
        self.builder.add(index, distance)
    }

    /// At the start of an iteration that reads slots that others fill: waits until its copies are there for all.
    fn meet(&mut self, &Own { slot, turn }: &Own, (pending, releases): (i64, bool)) {
        if !self.shares() {
            return;
        }
        if self.copies_lanes() {
            self.wait(pending);
        }
        if self.feeds_by_lanes() {
            self.builder.emit(Op::ProxyFence(op::ProxyFence {}), &[]);
        }
        let boxes = self.buffers.iter().filter(|&(&load, _)| self.is_box(load));
        let buffers: BTreeSet<Value> = boxes.map(|(_, &buffer)| buffer).collect();
        for (buffer, turn) in buffers.into_iter().zip(turn.into_iter().cycle()) {
            let wait = op::WaitBox { buffer, slot, turn };
            self.builder.emit(Op::WaitBox(wait), &[]);
        }
        if !releases {
            self.builder.emit(Op::Barrier(op::Barrier {}), &[]);
        }
    }

    /// Starts the copies of the iteration ahead, and waits for those of the iteration's own unless that is done.
    /// Takes and returns what the loop carries for that.
    fn run_ahead(
        &mut self,
        (op, onward): (&op::For, Option<&Onward>),
        carried: &[Value],
        (limit, released): (Value, Option<Value>),
    ) -> Vec<Value> {
        let Own { slot, turn } = self.own(carried);
        let state = &carried[..carried.len() - 1 - usize::from(turn.is_some())];
        let index = self.func().region(self.body).parameters[0];
        let last = self.builder.int32(self.stages as i32 - 1);
        let (zero, one) = (self.builder.int32(0), self.builder.int32(1));
        let mut free = slot;
        for _ in self.distance..self.stages {
            free = self.slot_before(free);
        }
        self.released = released.map(|turn| self.releases_before(slot, turn));
        let mut next = if let Some(onward) = onward {
            self.copy_onward(op, onward, (state, free))
        } else {
            let runs = self.builder.compare(CompareOp::Lt, index, limit);
            let index = self.later(index, self.distance * op.step);
            self.start_copies(index, state, runs, free)
        };
        if !self.shares() {
            self.wait(self.distance);
        }
        let own = self.following_by(Own { slot, turn }, [last, zero, one]);
        next.extend([own.slot].into_iter().chain(own.turn));
        next
    }

    fn wait(&mut self, pending: i64) {
        self.builder
            .emit(Op::WaitCopies(op::WaitCopies { pending }), &[]);
    }
}

/// `upper - distance`, or the least index where there is no such number.
pub(super) fn before_end(builder: &mut Builder, upper: Value, distance: i64) -> Value {
    if distance == 0 {
        return upper;
    }
    let least = builder.index(i64::MIN);
    let first = builder.index(i64::MIN + distance);
    let distance = builder.index(distance);
    let none = builder.compare(CompareOp::Lt, upper, first);
    let end = builder.binary(BinaryOp::Sub, upper, distance);
    builder.select(none, least, end)
}
