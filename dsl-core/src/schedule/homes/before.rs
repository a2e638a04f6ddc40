//! Operands that are brought to shared memory once, before the loops whose products read them.

use super::super::nest::loops_around;
use super::copied::{buffer_of, copy_of};
use super::{Housing, Stored};
use crate::ir::operand::may_be_transposed;
use crate::ir::{Inst, Op, Region, Value, op};
use crate::layout::group::Multiplied;

impl Housing<'_, '_> {
    /// The buffer to which an operand has been stored in a region, before an instruction of it.
    pub(super) fn stored_before(
        &self,
        (value, of): (Value, Multiplied),
        region: Region,
        at: usize,
    ) -> Option<Value> {
        let is = |stored: &Stored| stored.value == value;
        self.find_stored(of, region, at, &is)
    }

    /// The buffer to which the constant that an operand is has been stored in the region of the product.
    pub(super) fn stored_constant(&self, value: Value, of: Multiplied) -> Option<Value> {
        let definitions = self.at.func.definitions();
        let constant = |value: Value| {
            let made = definitions[value].map(|inst| self.at.func.op(inst));
            let made = made.filter(|op| matches!(op, Op::Constant(_)))?;
            Some((made, self.at.func.ty(value), self.at.func.layout(value)))
        };
        let own = constant(value)?;
        let is = |stored: &Stored| constant(stored.value).as_ref() == Some(&own);
        self.find_stored(of, self.at.region, usize::MAX, &is)
    }

    fn find_stored(
        &self,
        of: Multiplied,
        region: Region,
        at: usize,
        is: &dyn Fn(&Stored) -> bool,
    ) -> Option<Value> {
        let insts = &self.at.func.region(region).insts;
        let before = &insts[..at.min(insts.len())];
        let mut found = self.homes.stored.iter();
        let found = found.find(|it| {
            let alike = it.of == of || may_be_transposed(of.dtype);
            is(it) && alike && it.region == region && before.contains(&it.barrier)
        });
        found.map(|found| found.buffer)
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

    /// Stores an operand that the loop around does not change to a slot of its own before that loop; returns its buffer.
    pub(super) fn housed_before(&mut self, value: Value, of: Multiplied) -> Value {
        let (region, at) = self.outside(false);
        if let Some(buffer) = self.stored_before((value, of), region, at) {
            return buffer;
        }
        let own = self.at.func.region(self.at.region).insts.iter().copied();
        let mut made = own.filter(|&inst| self.at.func.inst(inst).results.contains(&value));
        let constant = made.next();
        let at = constant.map_or(at, |_| self.first_wait(region, at));
        let buffer = self.buffer(buffer_of(self.at.func, value, of), region, at);
        let inner = std::mem::replace(&mut self.at.region, self.at.func.add_region());
        let value = match constant {
            Some(inst) => {
                let layout = self.at.func.layout(value);
                let again = self
                    .at
                    .value(self.at.func.op(inst).clone(), self.at.func.ty(value));
                self.at.func.set_layout(again, layout);
                again
            }
            None => value,
        };
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

    /// Where a region in no loop first waits for a box, behind its last loop before this place, or that: before it lanes have time to
    /// store what depends on nothing.
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
