//! Loops in loops. What is counted of boxes goes on from one run of the inner loop to the next, and where a run's addresses
//! follow from the number of the iteration around it, its first copies start as soon as the run before is over: whatever
//! the program does with that run's results, it does while they are under way.

use std::collections::BTreeSet;

use super::super::MayEnd;
use super::super::ahead::arithmetic_of;
use super::super::nest::{carry_in, carry_on};
use super::super::read_back::insert_before;
use super::{LONGEST_STEP, Own, Pipeliner, before_end};
use crate::ir::{BinaryOp, CompareOp, Func, Inst, Op, Value, op};

/// The loops around one whose boxes are counted.
pub(super) struct Nest {
    /// From the outermost inwards, each in the body of the one before.
    around: Vec<Inst>,
    /// What the first copies of the next run follow from, where these start early.
    early: Option<BTreeSet<Inst>>,
}

/// What stands behind a run of a loop.
pub(super) struct Behind {
    around: Vec<Inst>,
    /// The first copies of the next run, to slots that its last products do not read.
    copies: Vec<Inst>,
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
        for (at, insts) in [(0, self.copies), (settles, self.settled)] {
            if let Some(&next) = behind.get(at) {
                insert_before(func, next, insts);
            }
        }
        carry_on(func, &self.around, self.values);
    }
}

/// What stands before a loop in each of its runs, what its index must be below for an iteration ahead to run, and what it
/// carries.
pub(super) type Filled = (Vec<Inst>, (Value, Vec<Value>));

impl Pipeliner {
    /// Fills slots before each run of a loop in others; what comes before all of them is `begun`.
    pub(super) fn fill_on(
        &mut self,
        (around, op): (Vec<Inst>, &op::For),
        (begun, releases): (&mut Vec<Inst>, bool),
        may_end: MayEnd<'_>,
    ) -> (Nest, Filled) {
        let early = releases.then(|| self.follows(&around, op, may_end));
        let early = early.flatten();
        if let Some(slice) = &early
            && let Op::For(outer) = self.func().op(around[0]).clone()
        {
            let (first, state) = self.apart(|this| {
                let runs = this
                    .builder
                    .compare(CompareOp::Lt, outer.lower, outer.upper);
                this.stand_for((&outer, outer.lower), slice);
                this.fill(op, None, Some(runs))
            });
            begun.extend(first);
            let state = carry_in(self.builder.func_mut(), &around, state);
            let (before, limit) = self.apart(|this| this.limit(op));
            let nest = Nest { around, early };
            return (nest, (before, (limit, state)));
        }
        let (first, zeros) = self.apart(|this| vec![this.builder.int32(0), this.builder.int32(0)]);
        begun.extend(first);
        let start = carry_in(self.builder.func_mut(), &around, zeros);
        let filled = self.apart(|this| {
            // Other warps may still read what the run before has filled the slots with.
            if !releases {
                this.builder.emit(Op::Barrier(op::Barrier {}), &[]);
            }
            let start = Own {
                slot: start[0],
                turn: Some(start[1]),
            };
            let state = this.fill(op, Some((start, releases)), None);
            (this.limit(op), state)
        });
        (Nest { around, early }, filled)
    }

    /// What the first copies of a run follow from in the loop around it, if that is arithmetic on its index, and nothing in that
    /// loop orders memory or may end the program.
    fn follows(
        &self,
        around: &[Inst],
        op: &op::For,
        may_end: MayEnd<'_>,
    ) -> Option<BTreeSet<Inst>> {
        let func = self.func();
        let &[outer] = around else { return None };
        let Op::For(outer) = func.op(outer) else {
            return None;
        };
        let mut stays = outer.step <= LONGEST_STEP;
        func.walk(outer.body, &mut |inst| {
            let op = func.op(inst);
            stays &= op.memory_order().is_none() && !may_end(op);
        });
        let slice = self.ahead.slice.iter().chain(&self.ahead.loads);
        let mut used: Vec<Value> = slice.flat_map(|&inst| func.op(inst).operands()).collect();
        used.extend([op.lower, op.upper]);
        used.extend(self.ahead.carried.iter().map(|&at| op.init[at]));
        stays
            .then(|| arithmetic_of(func, outer.body, &used))
            .flatten()
    }

    /// From here on values of an iteration of the loop around stand for those of another one.
    fn stand_for(&mut self, (outer, index): (&op::For, Value), slice: &BTreeSet<Inst>) {
        let own = self.func().region(outer.body);
        let (parameter, mut insts) = (own.parameters[0], own.insts.clone());
        insts.retain(|inst| slice.contains(inst));
        let mut around = super::Now::from([(parameter, index)]);
        for inst in insts {
            self.again(inst, &mut around);
        }
        self.around = around;
    }

    /// What stands behind a run: it starts the first copies of the next one where these are early, and says that the last slots
    /// have been read.
    pub(super) fn go_on(
        &mut self,
        Nest { around, early }: Nest,
        (inst, op): (Inst, &op::For),
        releases: bool,
    ) -> Behind {
        let results = &self.func().inst(inst).results;
        let last = Own {
            slot: results[results.len() - 2],
            turn: results.last().copied(),
        };
        let mut values: Vec<Value> = [last.slot].into_iter().chain(last.turn).collect();
        let (copies, ()) = self.apart(|this| {
            if let Some(slice) = early
                && let Op::For(outer) = this.func().op(around[0]).clone()
            {
                let index = this.func().region(outer.body).parameters[0];
                let limit = before_end(&mut this.builder, outer.upper, outer.step);
                let runs = this.builder.compare(CompareOp::Lt, index, limit);
                let next = this.later(index, outer.step);
                this.stand_for((&outer, next), &slice);
                values = this.fill(op, Some((last, releases)), Some(runs));
            }
        });
        let (settled, ()) = self.apart(|this| {
            if releases && this.overlaps {
                this.release_last(op, last.slot);
            }
        });
        Behind {
            around,
            copies,
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

    /// Whether copies of an iteration of another run start: those of this one, and that one.
    pub(super) fn both(&mut self, runs: Value, other: Option<Value>) -> Value {
        match other {
            Some(other) => self.builder.binary(BinaryOp::And, runs, other),
            None => runs,
        }
    }
}
