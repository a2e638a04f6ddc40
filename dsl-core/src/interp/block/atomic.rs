//! Atomics, which combine in ascending order, and what prints write.

use std::cell::RefCell;

use super::Machine;
use crate::interp::Fault;
use crate::interp::FaultKind;
use crate::interp::elements::Elements;
use crate::interp::elements::dtype;
use crate::interp::memory::{Buffer, Update};
use crate::ir::prints::{COUNTERS, HEADER};
use crate::ir::{AtomicOp, Inst, Value, op};
use crate::semantics;

impl Machine<'_> {
    pub(super) fn atomic_reduce(&mut self, inst: Inst, op: &op::AtomicReduce) -> Result<(), Fault> {
        let update = |_, bits| Update::reduce(op.op, bits).ordered(op.order, op.scope);
        let (offsets, mask) = (self.read(op.offsets), self.read_or(op.mask, 1));
        let place = |element| (mask.get(element) != 0).then(|| offsets.get(element).cast_signed());
        let old = self.updated(inst, (op.base, op.value), &place, &update);
        old.map(|_| ())
    }

    /// What memory held; zero bits where the mask does not hold.
    pub(super) fn atomic_fetch(
        &mut self,
        inst: Inst,
        op: &op::AtomicFetch,
    ) -> Result<Elements, Fault> {
        let expected = op.expected.map(|expected| self.read(expected));
        let update = |element: u64, bits| {
            let expected = expected.as_ref().map(|it| it.get(element as usize));
            Update::fetch(op.op, bits, expected).ordered(op.order, op.scope)
        };
        let (offsets, mask) = (self.read(op.offsets), self.read_or(op.mask, 1));
        let place = |element| (mask.get(element) != 0).then(|| offsets.get(element).cast_signed());
        self.updated(inst, (op.base, op.value), &place, &update)
    }

    /// Does what `update` says of an element and the bits of `value` to each that has a place; what was there.
    pub(super) fn updated(
        &mut self,
        inst: Inst,
        (base, value): (Value, Value),
        place: &dyn Fn(usize) -> Option<i64>,
        update: &dyn Fn(u64, u64) -> Update,
    ) -> Result<Elements, Fault> {
        let old = RefCell::new(vec![0; self.shape(value).elements()]);
        let program = self.program;
        let write = |buffer: &mut Buffer<'_>, index, element: u64, bits| {
            let found = buffer.combine((program, element), index, &update(element, bits))?;
            old.borrow_mut()[element as usize] = found;
            Ok(())
        };
        let (count, value) = (self.shape(value).elements(), self.read(value));
        self.scatter(inst, base, (count, &value), place, &write)?;
        Ok(Elements::new(old.into_inner()))
    }

    pub(super) fn print(&mut self, inst: Inst, op: &op::Print) -> Result<(), Fault> {
        let elements = self.shape(op.x).elements();
        let mask = op.mask.map(|mask| self.read(mask));
        let mask: Option<Vec<u64>> =
            mask.map(|mask| (0..elements).map(|it| mask.get(it)).collect());
        if mask
            .as_ref()
            .is_some_and(|mask| mask.iter().all(|&holds| holds == 0))
        {
            return Ok(());
        }
        let (x, from) = (self.read(op.x), dtype(self.func, op.x));
        let bits = (0..elements).map(|it| semantics::bitcast(from, from, x.get(it)));
        let header: [u64; HEADER as usize] = [op.number.cast_unsigned() + 1, self.program];
        let words = header
            .into_iter()
            .chain(bits)
            .chain(mask.into_iter().flatten());
        let words: Vec<u64> = words.collect();
        let room = op.words - COUNTERS - words.len() as i64;
        let program = self.program;
        let buffer = self.buffer(op.record);
        let mut write = || -> Result<(), FaultKind> {
            let take = Update::fetch(AtomicOp::Add, words.len() as u64, None);
            let at = buffer.combine((program, 0), 0, &take)?;
            if room < 0 || at > room.cast_unsigned() {
                let one_more = Update::reduce(AtomicOp::Add, 1);
                return buffer.combine((program, 0), 1, &one_more).map(|_| ());
            }
            let places = (at.cast_signed() + COUNTERS)..;
            for (element, (place, &word)) in (0..).zip(places.zip(&words)) {
                buffer.store(program, place, element, word)?;
            }
            Ok(())
        };
        write().map_err(|kind| self.fault(inst, kind))
    }
}
