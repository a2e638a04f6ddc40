//! Loops in loops. What is counted of boxes goes on from one run of the inner loop to the next, and where a run's addresses
//! follow from the number of the iteration around it, so do copies: those of the next run start in the last iterations of
//! the one before. Whatever the program does with that run's results, it does while they are under way.

use std::collections::BTreeSet;

use super::super::MayEnd;
use super::super::ahead::arithmetic_of;
use super::super::nest::{carry_in, carry_on};
use super::super::read_back::insert_before;
use super::{LONGEST_STEP, Now, Own, Pipeliner, before_end};
use crate::ir::{BinaryOp, CompareOp, DType, Effect, Func, Inst, Op, Region, Type, Value, op};

/// Copies that go on from run to run.
pub(super) struct Onward {
    /// The loop around.
    outer: op::For,
    /// What addresses follow from in its body, from its index.
    slice: BTreeSet<Inst>,
    /// Of the values of that body those that copies take, scalars.
    taken: Vec<Value>,
}

/// What stands behind a run of a loop.
pub(super) struct Behind {
    around: Vec<Inst>,
    /// What stands behind its last products.
    settled: Vec<Inst>,
    /// What the loops around carry on.
    values: Vec<Value>,
}

impl Behind {
    /// Puts it behind the loop.
    pub(super) fn apply(self, func: &mut Func, inst: Inst) {
        let behind = func.all_regions().into_iter().find_map(|region| {
            let insts = &func.region(region).insts;
            let at = insts.iter().position(|&it| it == inst)?;
            Some(insts[at + 1..].to_vec())
        });
        let behind = behind.unwrap_or_default();
        let settles = |inst: &&Inst| matches!(func.op(**inst), Op::Settle(_));
        let settles = behind.iter().take_while(settles).count();
        if let Some(&next) = behind.get(settles) {
            insert_before(func, next, self.settled);
        }
        carry_on(func, &self.around, self.values);
    }
}

/// What stands before a loop in each of its runs, and what the loop carries.
type Filled = (Vec<Inst>, Vec<Value>);

impl Pipeliner {
    /// Fills slots before each run of a loop in others, or before the first one where copies go `onward`; what comes before all
    /// of them is `begun`.
    pub(super) fn fill_on(
        &mut self,
        (around, op): (&[Inst], &op::For),
        (begun, releases): (&mut Vec<Inst>, bool),
        onward: Option<&Onward>,
    ) -> Filled {
        let (first, filled) = self.apart(|this| onward.map(|onward| this.fill_first(op, onward)));
        begun.extend(first);
        let (first, zeros) = self.apart(|this| vec![this.builder.int32(0), this.builder.int32(0)]);
        begun.extend(first);
        let start = carry_in(self.builder.func_mut(), around, zeros);
        self.apart(|this| {
            if let (Some(onward), Some(filled)) = (onward, filled) {
                let mut state = this.of_run(onward, filled);
                state.extend(start);
                return state;
            }
            // Other warps may still read what the run before has filled the slots with.
            if !releases {
                this.builder.emit(Op::Barrier(op::Barrier {}), &[]);
            }
            let start = Own {
                slot: start[0],
                turn: Some(start[1]),
            };
            this.fill(op, Some((start, releases)))
        })
    }

    /// Whether copies go on from run to run: what they follow from in the loop around is arithmetic on its index, all runs begin
    /// and go on alike and have equally many iterations, and nothing in it orders memory, may end the program, or writes what they
    /// read.
    pub(super) fn onward(
        &self,
        around: &[Inst],
        op: &op::For,
        may_end: MayEnd<'_>,
    ) -> Option<Onward> {
        let func = self.func();
        let &[outer] = around else { return None };
        let Op::For(outer) = func.op(outer) else {
            return None;
        };
        let mut stays = outer.step <= LONGEST_STEP;
        let slice = || self.ahead.slice.iter().chain(&self.ahead.loads);
        let read = slice().filter_map(|&inst| base(func, inst));
        let read: BTreeSet<Value> = read.collect();
        func.walk(outer.body, &mut |inst| {
            let op = func.op(inst);
            let access = op.access();
            let mut written = access
                .filter(|access| access.effect != Effect::Reads)
                .into_iter();
            stays &= op.memory_order().is_none() && !may_end(op);
            stays &= !written.any(|access| read.contains(&access.base));
        });
        let used: BTreeSet<Value> = slice().flat_map(|&inst| func.op(inst).operands()).collect();
        let body = func.region(outer.body);
        let made = body.insts.iter();
        let made = made.flat_map(|&inst| func.inst(inst).results.iter());
        let made: BTreeSet<Value> = made.chain(&body.parameters).copied().collect();
        let begin = self.ahead.carried.iter().map(|&at| op.init[at]);
        let mut alike = begin.chain([op.lower, op.upper]);
        stays &= alike.all(|value| !made.contains(&value)) && self.advances_alike(&made);
        let taken: Vec<Value> = used.intersection(&made).copied().collect();
        let slice = arithmetic_of(func, outer.body, &taken)?;
        stays &= taken.iter().all(|&value| func.ty(value).is_scalar());
        stays.then(|| Onward {
            outer: outer.clone(),
            slice,
            taken,
        })
    }

    /// Whether the carried values that copies take follow in each iteration from none that the loop around makes.
    fn advances_alike(&self, made: &BTreeSet<Value>) -> bool {
        let func = self.func();
        let definitions = func.definitions();
        let yielded = func.yielded(self.body);
        let mut pending: Vec<Value> = self.ahead.carried.iter().map(|&at| yielded[at]).collect();
        let mut found = BTreeSet::new();
        while let Some(value) = pending.pop() {
            if made.contains(&value) {
                return false;
            }
            if let Some(inst) = definitions[value]
                && self.ahead.slice.contains(&inst)
                && found.insert(inst)
            {
                pending.extend(func.op(inst).operands());
            }
        }
        true
    }

    /// Types of what says where copies have come to that go on.
    pub(super) fn types_of(&self, onward: &Onward) -> Vec<Type> {
        let taken = onward.taken.iter().map(|&value| self.func().ty(value));
        [Type::INDEX, Type::INDEX]
            .into_iter()
            .chain(taken)
            .collect()
    }

    /// Starts the copies of the first iterations of all. Returns what they come to.
    fn fill_first(&mut self, op: &op::For, onward: &Onward) -> Vec<Value> {
        let has_any = self.builder.compare(CompareOp::Lt, op.lower, op.upper);
        let (none, all) = (self.builder.index(0), self.builder.index(self.distance));
        let upper = self.builder.select(has_any, all, none);
        let init = self.first_of(op, onward, onward.outer.lower);
        let types = init.iter().map(|&value| self.func().ty(value));
        let types: Vec<Type> = std::iter::once(Type::INDEX).chain(types).collect();
        let body = self.builder.new_region(&types);
        let outer = self.builder.enter(body);
        let parameters = self.builder.parameters(body);
        self.place_as(&parameters[1..]);
        let slot = self.builder.cast(parameters[0], DType::I32);
        let values = self.copy_onward(op, onward, (&parameters[1..], slot));
        self.builder.emit(Op::Yield(op::Yield { values }), &[]);
        self.builder.enter(outer);
        let filling = Op::For(op::For {
            lower: none,
            upper,
            init,
            step: 1,
            stages: 0,
            body,
        });
        let filling = self.builder.emit(filling, &[]);
        let reached = self.builder.results(filling).to_vec();
        self.place_as(&reached);
        reached
    }

    /// What copies have come to before a run, from what they had before the first one.
    fn of_run(&mut self, onward: &Onward, mut reached: Vec<Value>) -> Vec<Value> {
        let outer = &onward.outer;
        let index = self.func().region(outer.body).parameters[0];
        let place = self.ahead.carried.len() + 1;
        let ahead = self
            .builder
            .binary(BinaryOp::Sub, reached[place], outer.lower);
        let least = self.builder.index(i64::MIN);
        let first = self.builder.add(least, ahead);
        let none = self.builder.compare(CompareOp::Lt, outer.upper, first);
        let end = self.builder.binary(BinaryOp::Sub, outer.upper, ahead);
        let end = self.builder.select(none, least, end);
        let is_one = self.builder.compare(CompareOp::Lt, index, end);
        let later = self.builder.add(index, ahead);
        let around = self.builder.select(is_one, later, outer.upper);
        reached.truncate(place);
        reached.push(around);
        let taken = self.taken_of(onward, around);
        reached.extend(taken);
        reached
    }

    /// Starts the copies of the iteration that they have `reached`, to a slot; returns what they come to.
    pub(super) fn copy_onward(
        &mut self,
        op: &op::For,
        onward: &Onward,
        (reached, slot): (&[Value], Value),
    ) -> Vec<Value> {
        let (carried, places) = reached.split_at(self.ahead.carried.len());
        let (index, around, taken) = (places[0], places[1], &places[2..]);
        let limit = onward.outer.upper;
        let runs = self.builder.compare(CompareOp::Lt, around, limit);
        let values = onward.taken.iter().copied().zip(taken.iter().copied());
        self.around = values.collect();
        let mut next = self.start_copies(index, carried, runs, slot);
        self.around = Now::new();
        let limit = before_end(&mut self.builder, op.upper, op.step);
        let goes_on = self.builder.compare(CompareOp::Lt, index, limit);
        let on_true = self.yielding(|this| {
            next.extend([this.later(index, op.step), around]);
            next.extend(taken);
            next
        });
        let on_false = self.yielding(|this| {
            let (upper, step) = (onward.outer.upper, onward.outer.step);
            let limit = before_end(&mut this.builder, upper, step);
            let has_next = this.builder.compare(CompareOp::Lt, around, limit);
            let later = this.later(around, step);
            let next = this.builder.select(has_next, later, upper);
            this.first_of(op, onward, next)
        });
        let branch = Op::If(op::If {
            condition: goes_on,
            on_true,
            on_false,
        });
        let branch = self.builder.emit(branch, &[]);
        let values = self.builder.results(branch).to_vec();
        self.place_as(&values);
        values
    }

    /// The first iteration of the run in that iteration of the loop around.
    fn first_of(&mut self, op: &op::For, onward: &Onward, index: Value) -> Vec<Value> {
        let taken = self.taken_of(onward, index);
        let carried = self.ahead.carried.iter().map(|&at| op.init[at]);
        carried.chain([op.lower, index]).chain(taken).collect()
    }

    /// What copies take in that iteration of the loop around.
    fn taken_of(&mut self, onward: &Onward, index: Value) -> Vec<Value> {
        let own = self.func().region(onward.outer.body);
        let (parameter, mut insts) = (own.parameters[0], own.insts.clone());
        insts.retain(|inst| onward.slice.contains(inst));
        let mut around = Now::from([(parameter, index)]);
        for inst in insts {
            self.again(inst, &mut around);
        }
        let taken = onward.taken.iter();
        taken
            .map(|value| around.get(value).copied().unwrap_or(*value))
            .collect()
    }

    /// Gives what says where copies have come to the layouts of what the loop carries.
    fn place_as(&mut self, values: &[Value]) {
        let parameters = &self.func().region(self.body).parameters;
        let carried = self.ahead.carried.iter().map(|&at| parameters[1 + at]);
        let carried: Vec<Value> = carried.collect();
        let func = self.builder.func_mut();
        for (&value, like) in values.iter().zip(carried) {
            let layout = func.layout(like);
            func.set_layout(value, layout);
        }
    }

    /// A region that yields what `fill` returns.
    pub(super) fn yielding(&mut self, fill: impl FnOnce(&mut Self) -> Vec<Value>) -> Region {
        let region = self.builder.new_region(&[]);
        let outer = self.builder.enter(region);
        let values = fill(self);
        self.builder.emit(Op::Yield(op::Yield { values }), &[]);
        self.builder.enter(outer);
        region
    }

    /// What stands behind a run: it says that the last slots have been read.
    pub(super) fn go_on(
        &mut self,
        around: Vec<Inst>,
        (inst, op): (Inst, &op::For),
        releases: bool,
    ) -> Behind {
        let results = &self.func().inst(inst).results;
        let last = self.own(results);
        let values = [last.slot].into_iter().chain(last.turn).collect();
        let (settled, ()) = self.apart(|this| {
            if releases && this.overlaps {
                this.release_last(op, last.slot);
            }
        });
        Behind {
            around,
            settled,
            values,
        }
    }

    /// Warps release what the last iteration of a run has read, if there was one, once its products are over.
    fn release_last(&mut self, op: &op::For, slot: Value) {
        let has_one = self.builder.compare(CompareOp::Lt, op.lower, op.upper);
        let before = self.slot_before(slot);
        self.release_if(has_one, before);
    }
}

/// The array that a load, or the copy of a box, reads.
fn base(func: &Func, load: Inst) -> Option<Value> {
    let op = func.op(load);
    if let Op::CopyBox(copy) = op {
        return Some(copy.base);
    }
    op.access().map(|access| access.base)
}
