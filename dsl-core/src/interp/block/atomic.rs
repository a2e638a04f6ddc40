//! Atomics, which combine in ascending order.

use std::cell::RefCell;

use super::Machine;
use crate::interp::Fault;
use crate::interp::elements::Elements;
use crate::interp::memory::{Buffer, Update};
use crate::ir::{Inst, op};

impl Machine<'_> {
    pub(super) fn atomic_reduce(&mut self, inst: Inst, op: &op::AtomicReduce) -> Result<(), Fault> {
        let program = self.program;
        let write = |buffer: &mut Buffer<'_>, index, element, bits| {
            let combined = buffer.combine((program, element), index, &Update::reduce(op.op, bits));
            combined.map(|_| ())
        };
        self.written(inst, op.base, (op.offsets, op.value, op.mask), &write)
    }

    /// What memory held; zero bits where the mask does not hold.
    pub(super) fn atomic_fetch(
        &mut self,
        inst: Inst,
        op: &op::AtomicFetch,
    ) -> Result<Elements, Fault> {
        let expected = op.expected.map(|expected| self.read(expected));
        let old = RefCell::new(vec![0; self.shape(op.value).elements()]);
        let program = self.program;
        let write = |buffer: &mut Buffer<'_>, index, element: u64, bits| {
            let expected = expected.as_ref().map(|it| it.get(element as usize));
            let update = Update::fetch(op.op, bits, expected);
            let found = buffer.combine((program, element), index, &update)?;
            old.borrow_mut()[element as usize] = found;
            Ok(())
        };
        self.written(inst, op.base, (op.offsets, op.value, op.mask), &write)?;
        Ok(Elements::new(old.into_inner()))
    }
}
