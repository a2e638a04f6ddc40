//! Loops whose loads are started iterations ahead, by asynchronous copies to shared memory.
//!
//! A load keeps its layout: each lane copies what it would have loaded, and reads back what it
//! copied itself, so waiting is enough and no barrier is needed. The copies of one access lie side
//! by side in the order of lanes, which leaves no bank conflicts. There is one buffer for each stage:
//! an iteration first starts the copies of the iteration `stages - 1` ahead, into the buffer that
//! the iteration before it has read.

use std::collections::{BTreeMap, BTreeSet};

use super::ahead::Ahead;
use super::buffers::{Place, Staged};
use super::order::Touch;
use super::tile::Scope;
use super::{Lowering, Result};
use crate::ir::{BinaryOp, CompareOp, Effect, Inst, Op, Region, Trait, Type, Value, op};

/// The deepest pipeline.
pub(super) const MAX_STAGES: i64 = 8;

/// A loop with loads that run ahead.
pub(super) struct Pipeline {
    body: Region,
    stages: i64,
    ahead: Ahead,
    /// For each load its memory.
    buffers: BTreeMap<Inst, (Value, Place)>,
    /// The carried values that are advanced ahead, and their next values.
    carried: Vec<Value>,
    next: Vec<Value>,
    /// Of the slice, what the next values and scalars follow from.
    early: BTreeSet<Inst>,
    upper: Value,
    step: i64,
}

/// What is known of an iteration ahead.
#[derive(Clone)]
struct State {
    index: Value,
    /// Whether the iteration runs.
    runs: Value,
    carried: Vec<Value>,
}

impl State {
    fn flat(&self) -> Vec<Value> {
        [&[self.index, self.runs][..], &self.carried].concat()
    }

    fn of(values: &[Value]) -> Self {
        Self {
            index: values[0],
            runs: values[1],
            carried: values[2..].to_vec(),
        }
    }
}

impl Lowering<'_> {
    /// Plans the pipeline of a loop, if it is to have one and has loads for it.
    pub(super) fn pipeline(&mut self, inst: Inst, op: &op::For) -> Result<Option<Pipeline>> {
        let op::For {
            upper,
            step,
            stages,
            body,
            ..
        } = *op;
        let block = self.block;
        let stages = self.stages.unwrap_or(stages).min(self.buffers.most);
        if stages < 2 {
            return Ok(None);
        }
        let ahead = Ahead::find(block, body, &|load| self.copy_place(load).is_some());
        if ahead.loads.is_empty() {
            return Ok(None);
        }
        let mut carried = Vec::new();
        let mut next = Vec::new();
        let all = block.carried(inst);
        for each in ahead.carried.iter().map(|&at| &all[at]) {
            carried.push(each.parameters[0]);
            next.push(each.yielded[0]);
        }
        let mut pipeline = Pipeline {
            body,
            stages,
            early: self.early(&ahead, &next),
            ahead,
            buffers: BTreeMap::new(),
            carried,
            next,
            upper: self.scalar(upper),
            step,
        };
        self.allocate(&mut pipeline, body);
        Ok(Some(pipeline))
    }

    /// Allocates the buffers of the loads in a region. The branches of an `if` share what has the
    /// same shape, so that every byte belongs to one lane.
    fn allocate(&mut self, pipeline: &mut Pipeline, region: Region) {
        let block = self.block;
        for &inst in &block.region(region).insts {
            if pipeline.ahead.loads.contains(&inst) {
                let place = self
                    .copy_place(inst)
                    .expect("broken invariant: loads that run ahead are wide enough");
                let base = self.ring(place, pipeline.stages);
                pipeline.buffers.insert(inst, (base, place));
            } else if let Op::If(op::If {
                on_true, on_false, ..
            }) = block.op(inst)
                && pipeline.ahead.slice.contains(&inst)
            {
                self.allocate(pipeline, *on_true);
                self.allocate_like(pipeline, *on_false, *on_true);
            }
        }
    }

    fn allocate_like(&mut self, pipeline: &mut Pipeline, region: Region, other: Region) {
        let block = self.block;
        let mut free: Vec<(Value, Place)> = Vec::new();
        block.walk(other, &mut |inst| {
            if let Some(&buffer) = pipeline.buffers.get(&inst)
                && !free.contains(&buffer)
            {
                free.push(buffer);
            }
        });
        let mut loads = Vec::new();
        block.walk(region, &mut |inst| {
            if pipeline.ahead.loads.contains(&inst) {
                loads.push(inst);
            }
        });
        for load in loads {
            let place = self
                .copy_place(load)
                .expect("broken invariant: loads that run ahead are wide enough");
            let found = free.iter().position(|&(_, other)| other == place);
            let buffer = match found {
                Some(position) => free.swap_remove(position),
                None => (self.ring(place, pipeline.stages), place),
            };
            pipeline.buffers.insert(load, buffer);
        }
    }

    /// Lowers a loop with a pipeline.
    pub(super) fn pipelined_loop(
        &mut self,
        inst: Inst,
        op: &op::For,
        pipeline: &Pipeline,
    ) -> Result<()> {
        let block = self.block;
        let results = self.carried(pipeline.body, &block.inst(inst).results);
        let lower = self.scalar(op.lower);
        let first = self.flatten(&self.carried(pipeline.body, &op.init));
        let start = self.fill(pipeline, lower, &op.init)?;
        let mut init = first.clone();
        init.extend(start.flat());
        init.push(self.builder.int32(0));
        let types: Vec<Type> = std::iter::once(Type::INDEX)
            .chain(init.iter().map(|&value| self.builder.ty(value)))
            .collect();
        let entered = self.enter_loop(&[pipeline.body]);
        let body = self.builder.new_region(&types);
        let outer = self.builder.enter(body);
        self.scopes.push(Scope::default());
        let parameters = self.builder.parameters(body);
        let (own, extra) = parameters.split_at(1 + first.len());
        let last = self.run_ahead(pipeline, extra)?;
        let carried = self.in_registers(&block.region(pipeline.body).parameters);
        self.unflatten(&carried, own);
        self.spend(pipeline);
        self.insts(pipeline.body)?;
        let ends = self.in_registers(block.yielded(pipeline.body));
        let mut values = self.flatten(&ends);
        values.extend(last);
        self.builder.emit(Op::Yield(op::Yield { values }), &[]);
        self.scopes.pop();
        self.builder.enter(outer);
        self.leave_loop(&entered);
        let op = Op::For(op::For {
            lower,
            upper: pipeline.upper,
            init,
            step: pipeline.step,
            stages: op.stages,
            body,
        });
        let emitted = self.builder.emit_unchecked(op, &types[1..]);
        let flat = self.builder.results(emitted).to_vec();
        self.unflatten(&results, &flat[..first.len()]);
        Ok(())
    }

    /// Before the loop: starts the copies of all stages but one.
    fn fill(&mut self, pipeline: &Pipeline, lower: Value, init: &[Value]) -> Result<State> {
        for &load in &pipeline.ahead.loads {
            let base = self.block.op(load).access().map(|tile| tile.base);
            if let Some(argument) = base.and_then(|base| self.block.parameter_index(base)) {
                let touch = Touch {
                    owned: None,
                    effect: Effect::Reads,
                };
                self.order_access(argument, touch);
            }
        }
        let chosen: Vec<Value> = pipeline.ahead.carried.iter().map(|&at| init[at]).collect();
        let carried = self.flatten(&chosen);
        let runs = self.builder.compare(CompareOp::Lt, lower, pipeline.upper);
        let mut state = State {
            index: lower,
            runs,
            carried,
        };
        for stage in 0..pipeline.stages - 1 {
            let slot = self.builder.int32(stage as i32);
            state = self.start_copies(pipeline, &state, slot)?;
        }
        Ok(state)
    }

    /// At the start of an iteration: starts the copies of the iteration ahead, waits for its own, and
    /// says where they are. Takes and returns what the loop carries for the pipeline.
    fn run_ahead(&mut self, pipeline: &Pipeline, extra: &[Value]) -> Result<Vec<Value>> {
        let (&slot, state) = extra
            .split_last()
            .expect("broken invariant: the loop carries a slot");
        let last = self.builder.int32(pipeline.stages as i32 - 1);
        let (zero, one) = (self.builder.int32(0), self.builder.int32(1));
        let is_first = self.builder.compare(CompareOp::Eq, slot, zero);
        let before = self.builder.binary(BinaryOp::Sub, slot, one);
        let before = self.builder.select(is_first, last, before);
        let state = self.start_copies(pipeline, &State::of(state), before)?;
        let pending = pipeline.stages - 1;
        self.builder
            .emit(Op::WaitCopies(op::WaitCopies { pending }), &[]);
        for (&load, &(base, place)) in &pipeline.buffers {
            let offset = self.lane_start(place, slot);
            let staged = Staged {
                base,
                offset,
                place,
            };
            self.buffers.staged.insert(load, staged);
        }
        let is_last = self.builder.compare(CompareOp::Eq, slot, last);
        let after = self.builder.binary(BinaryOp::Add, slot, one);
        let after = self.builder.select(is_last, zero, after);
        let mut values = state.flat();
        values.push(after);
        Ok(values)
    }

    /// Starts the copies of one iteration if it runs, as one group; returns the next iteration.
    fn start_copies(&mut self, pipeline: &Pipeline, state: &State, slot: Value) -> Result<State> {
        let block = self.block;
        self.scopes.push(Scope::default());
        let index = block.region(pipeline.body).parameters[0];
        let values = [&[index][..], &pipeline.carried].concat();
        let flat = [&[state.index][..], &state.carried].concat();
        self.unflatten(&values, &flat);
        self.addresses(pipeline, pipeline.body)?;
        let carried = self.flatten(&pipeline.next);
        let on_true = self.nested(|this| this.copies(pipeline, pipeline.body, slot))?;
        let on_false = self.nested(|_| Ok(()))?;
        let op = Op::If(op::If {
            condition: state.runs,
            on_true,
            on_false,
        });
        self.builder.emit(op, &[]);
        self.builder.emit(Op::GroupCopies(op::GroupCopies {}), &[]);
        self.scopes.pop();
        let step = self.builder.index(pipeline.step);
        let index = self.builder.add(state.index, step);
        let grows = self.builder.compare(CompareOp::Gt, index, state.index);
        let inside = self.builder.compare(CompareOp::Lt, index, pipeline.upper);
        let more = self.builder.and(grows, inside);
        let runs = self.builder.and(state.runs, more);
        Ok(State {
            index,
            runs,
            carried,
        })
    }

    /// A new lane region without parameters or results, which may not be taken.
    pub(super) fn nested(&mut self, fill: impl FnOnce(&mut Self) -> Result<()>) -> Result<Region> {
        let region = self.builder.new_region(&[]);
        let outer = self.builder.enter(region);
        let before = self.pending.clone();
        self.scopes.push(Scope::default());
        let filled = fill(self);
        self.pending.merge(&before);
        self.builder
            .emit(Op::Yield(op::Yield { values: Vec::new() }), &[]);
        self.scopes.pop();
        self.builder.enter(outer);
        filled.map(|()| region)
    }

    /// What of a slice these values and all its scalars follow from.
    fn early(&self, ahead: &Ahead, values: &[Value]) -> BTreeSet<Inst> {
        let mut pending = values.to_vec();
        for &inst in &ahead.slice {
            let results = self.block.inst(inst).results.iter();
            pending.extend(results.filter(|&&result| self.block.ty(result).is_scalar()));
        }
        let mut early = BTreeSet::new();
        while let Some(value) = pending.pop() {
            if let Some(inst) = self.definitions[value]
                && ahead.slice.contains(&inst)
                && !matches!(self.block.op(inst), Op::If(_))
                && early.insert(inst)
            {
                pending.extend(self.block.op(inst).operands());
            }
        }
        early
    }

    /// Marks what only the addresses of copies are made of: iterations need not make it again.
    fn spend(&mut self, pipeline: &Pipeline) {
        let block = self.block;
        let mut insts = Vec::new();
        block.walk(pipeline.body, &mut |inst| insts.push(inst));
        let mut users: BTreeMap<Value, Vec<Inst>> = BTreeMap::new();
        for &inst in &insts {
            for operand in block.op(inst).operands() {
                users.entry(operand).or_default().push(inst);
            }
        }
        for &inst in insts.iter().rev() {
            let &[result] = &block.inst(inst).results[..] else {
                continue;
            };
            let users = users.get(&result).map_or(&[][..], |users| users);
            let is_spent = |user: &Inst| {
                let copied = pipeline.buffers.contains_key(user) && !self.reads_back(*user, result);
                copied || self.spent.contains(user)
            };
            let tile = !block.ty(result).is_scalar() && block.op(inst).is(Trait::pointwise);
            if tile && !users.is_empty() && users.iter().all(is_spent) {
                self.spent.insert(inst);
            }
        }
    }

    /// Whether what a load has copied is not the load's result yet, and `value` decides about it.
    fn reads_back(&self, load: Inst, value: Value) -> bool {
        let filled = if let Op::Load(op) = self.block.op(load) {
            op.mask
                .zip(op.other)
                .filter(|&(_, other)| !self.is_zero(other))
        } else {
            None
        };
        filled.is_some_and(|(mask, other)| mask == value || other == value)
    }

    /// The address arithmetic of a region that comes before its copies.
    fn addresses(&mut self, pipeline: &Pipeline, region: Region) -> Result<()> {
        let block = self.block;
        for &inst in &block.region(region).insts {
            if pipeline.early.contains(&inst) {
                self.builder.set_loc(block.inst(inst).loc.clone());
                self.inst(inst)?;
            }
        }
        Ok(())
    }

    /// The copies of a region, and the rest of its address arithmetic.
    fn copies(&mut self, pipeline: &Pipeline, region: Region, slot: Value) -> Result<()> {
        let block = self.block;
        for &inst in &block.region(region).insts {
            self.builder.set_loc(block.inst(inst).loc.clone());
            if let Some(&(base, place)) = pipeline.buffers.get(&inst) {
                let start = self.lane_start(place, slot);
                self.copy(inst, base, start, place)?;
            } else if let Op::If(op::If {
                condition,
                on_true,
                on_false,
            }) = *block.op(inst)
                && pipeline.ahead.slice.contains(&inst)
            {
                let condition = self.scalar(condition);
                let [on_true, on_false] = [on_true, on_false].map(|branch| {
                    self.nested(|this| {
                        this.addresses(pipeline, branch)?;
                        this.copies(pipeline, branch, slot)
                    })
                });
                let op = Op::If(op::If {
                    condition,
                    on_true: on_true?,
                    on_false: on_false?,
                });
                self.builder.emit(op, &[]);
            } else if pipeline.ahead.slice.contains(&inst) && !pipeline.early.contains(&inst) {
                self.inst(inst)?;
            }
        }
        Ok(())
    }

    fn copy(&mut self, load: Inst, target: Value, start: Value, place: Place) -> Result<()> {
        let result = self.block.inst(load).results[0];
        let layout = self.layout(result);
        let tile = self
            .block
            .op(load)
            .access()
            .ok_or_else(|| self.error("only loads can run ahead"))?;
        self.check(&[load], &mut BTreeSet::new())?;
        let access = self.access(&tile, &layout)?;
        let vectors = self.copied_vectors(&tile, &layout);
        let starts: Vec<u32> = vectors.iter().map(|vector| vector[0]).collect();
        let op = Op::StartCopy(op::StartCopy {
            target,
            offset: self.copy_offsets(place, start, starts.len()),
            source: access.base(),
            source_offset: self.pick(access.offsets(), &starts),
            mask: access.masks().map(|masks| self.pick(masks, &starts)),
            count: place.width,
        });
        self.builder.emit(op, &[]);
        Ok(())
    }
}
