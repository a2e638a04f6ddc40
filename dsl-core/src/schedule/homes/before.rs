//! Operands that are brought to shared memory once, before the loops whose products read them.

use std::collections::BTreeSet;

use super::super::nest::loops_around;
use super::copied::{buffer_of, copy_of};
use super::{Housing, Stored};
use crate::entity::EntityMap;
use crate::ir::operand::may_be_transposed;
use crate::ir::{Inst, Op, Region, Value, op};
use crate::layout::group::Multiplied;

impl Housing<'_, '_> {
    /// The buffer to which an operand, or what is made alike, has been stored in a region, before an instruction of it.
    pub(super) fn stored_before(
        &self,
        (value, of): (Value, Multiplied),
        region: Region,
        at: usize,
    ) -> Option<Value> {
        let definitions = self.at.func.definitions();
        let insts = &self.at.func.region(region).insts;
        let before = &insts[..at.min(insts.len())];
        let mut found = self.homes.stored.iter();
        let found = found.find(|it| {
            let fits = it.of == of || may_be_transposed(of.dtype);
            let shown = it.region == region && before.contains(&it.barrier);
            fits && shown && self.alike(&definitions, it.value, value)
        });
        found.map(|found| found.buffer)
    }

    /// Whether two tiles are each the one result of the same pure op of the same values, and lie alike.
    fn alike(
        &self,
        definitions: &EntityMap<Value, Option<Inst>>,
        first: Value,
        second: Value,
    ) -> bool {
        let func = &*self.at.func;
        let made = [first, second].map(|value| {
            let made = definitions[value].filter(|&inst| {
                let is_one = func.inst(inst).results.len() == 1;
                is_one && func.op(inst).regions().is_empty() && func.is_pure(inst)
            });
            made.map(|inst| (func.op(inst), func.ty(value), func.layout(value)))
        });
        first == second || made[0].is_some() && made[0] == made[1]
    }

    /// Moves what makes an operand before the loop around, where nothing in it follows the iteration.
    pub(super) fn hoist(&mut self, operand: Value) {
        if self.around().is_none() {
            return;
        }
        let func = &*self.at.func;
        let (mut needed, mut makers) = (BTreeSet::from([operand]), Vec::new());
        for &inst in func.region(self.at.region).insts.iter().rev() {
            let results = &func.inst(inst).results;
            if !results.iter().any(|it| needed.contains(it)) {
                continue;
            }
            if !func.is_pure(inst) || !func.op(inst).regions().is_empty() {
                return;
            }
            func.op(inst).visit_operands(&mut |value| {
                needed.insert(value);
            });
            makers.push(inst);
        }
        let parameters = &func.region(self.at.region).parameters;
        if makers.is_empty() || parameters.iter().any(|it| needed.contains(it)) {
            return;
        }
        let (region, at) = self.before_loop(operand);
        let body = &mut self.at.func.region_mut(self.at.region).insts;
        body.retain(|it| !makers.contains(it));
        makers.reverse();
        let outer = &mut self.at.func.region_mut(region).insts;
        outer.splice(at..at, makers);
    }

    /// Copies an operand that is loaded in no loop, and waits for it before all loops around; returns its buffer. The copy starts
    /// where it is loaded, or where the region of the loops begins, unless the program may end between.
    pub(super) fn boxed_before(
        &mut self,
        (load, value): (Inst, Value),
        boxed: &op::LoadBox,
        of: Multiplied,
    ) -> Value {
        let (region, at) = self.outside(true);
        if let Some(buffer) = self.stored_before((value, of), region, at) {
            return buffer;
        }
        let inner = std::mem::replace(&mut self.at.region, self.at.func.add_region());
        let made = buffer_of(self.at.func, value, of);
        let buffer = self.buffer(made, self.at.region, usize::MAX);
        let slot = self.at.int32(0);
        self.at.append(copy_of(boxed, buffer, slot), &[]);
        let apart = std::mem::replace(&mut self.at.region, inner);
        let copy = std::mem::take(&mut self.at.func.region_mut(apart).insts);
        let loc = self.at.func.inst(self.at.inst).loc.clone();
        let wait = op::WaitBox {
            buffer,
            slot,
            turn: slot,
        };
        let wait = self.at.func.add_inst(Op::WaitBox(wait), &[], loc);
        let outer = &self.at.func.region(region).insts;
        let at = at.min(outer.len());
        let loaded = outer[..at].iter().position(|&inst| inst == load);
        let start = loaded.map_or(0, |place| place + 1);
        let ends = self.may_end_in(&self.at.func.region(region).insts[start..at]);
        let start = if ends { at } else { start };
        let outer = &mut self.at.func.region_mut(region).insts;
        outer.insert(at, wait);
        outer.splice(start..start, copy);
        self.homes.stored.push(Stored {
            value,
            of,
            buffer,
            region,
            barrier: wait,
        });
        buffer
    }

    /// Stores an operand that the loop around does not change to a slot before that loop; returns its buffer. A constant has one of
    /// its own, which may come to lie behind those of another operand of the loop.
    pub(super) fn housed_before(&mut self, value: Value, of: Multiplied) -> Value {
        let (region, at) = self.before_loop(value);
        let stored = self.stored_before((value, of), region, at);
        if let Some(buffer) = stored.filter(|_| self.constant(value).is_none()) {
            return buffer;
        }
        let buffer = self.buffer(buffer_of(self.at.func, value, of), region, at);
        let inner = std::mem::replace(&mut self.at.region, self.at.func.add_region());
        let slot = self.at.int32(0);
        let store = op::SlotStore {
            value,
            buffer,
            slot,
        };
        self.at.append(Op::SlotStore(store), &[]);
        self.show(vec![(value, of, buffer)]);
        let apart = std::mem::replace(&mut self.at.region, inner);
        let insts = std::mem::take(&mut self.at.func.region_mut(apart).insts);
        let outer = &mut self.at.func.region_mut(region).insts;
        let after = (at + 1).min(outer.len());
        outer.splice(after..after, insts);
        let stored = self.homes.stored.last_mut();
        stored.expect("broken invariant: it was shown").region = region;
        buffer
    }

    /// Before the loop around; a constant, which depends on nothing, is there as soon as lanes have time to store it.
    fn before_loop(&self, operand: Value) -> (Region, usize) {
        let (region, at) = self.outside(false);
        let Some(made) = self.constant(operand) else {
            return (region, at);
        };
        let insts = &self.at.func.region(region).insts;
        let behind = insts.iter().position(|&it| it == made);
        let first = behind.map_or(0, |behind| behind + 1);
        (region, self.first_wait(region, at).max(first))
    }

    /// What makes a value, if that is a constant.
    fn constant(&self, value: Value) -> Option<Inst> {
        let made = self.at.func.definitions()[value];
        made.filter(|&inst| matches!(self.at.func.op(inst), Op::Constant(_)))
    }

    /// Where a region in no loop first waits for a box, behind its last loop before this place, or that.
    fn first_wait(&self, region: Region, at: usize) -> usize {
        let func = &*self.at.func;
        let insts = &func.region(region).insts;
        let in_loop = insts
            .get(at)
            .is_some_and(|&it| !loops_around(func, it).is_empty());
        let is_loop = |&it: &Inst| matches!(func.op(it), Op::For(_) | Op::While(_));
        let last = insts[..at].iter().rposition(is_loop);
        let behind = last.map_or(0, |last| last + 1);
        let mut between = insts[behind..at].iter();
        let wait = between.position(|&it| matches!(func.op(it), Op::WaitBox(_)));
        wait.filter(|_| !in_loop).map_or(at, |wait| behind + wait)
    }
}
