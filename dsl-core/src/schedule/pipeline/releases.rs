//! Slots that each warp releases once it has read them. Only the warp that fills slots waits for the others then, and groups
//! of warps may be an iteration apart: while one computes, another multiplies.

use super::Pipeliner;
use crate::ir::{BinaryOp, CompareOp, Op, Value, op};

impl Pipeliner {
    /// This warp has read its slots: those of an iteration at its end, or those of the one before where products stay under
    /// way.
    pub(super) fn release(&mut self, op: &op::For, slot: Value) {
        if self.distance == self.stages - 1 {
            self.release_first(slot);
            return;
        }
        let index = self.func().region(self.body).parameters[0];
        let has_before = self.builder.compare(CompareOp::Gt, index, op.lower);
        let before = self.slot_before(slot);
        self.release_if(has_before, before);
    }

    /// This warp has read a slot, if that holds.
    pub(super) fn release_if(&mut self, condition: Value, slot: Value) {
        let on_true = self.branch(|this| this.release_first(slot));
        let on_false = self.branch(|_| {});
        let branch = Op::If(op::If {
            condition,
            on_true,
            on_false,
        });
        self.builder.emit(branch, &[]);
    }

    /// Whoever has released a slot of the buffer that is filled first has read those of the others.
    fn release_first(&mut self, slot: Value) {
        if let Some(buffer) = self.first_filled() {
            let release = op::ReleaseSlot { buffer, slot };
            self.builder.emit(Op::ReleaseSlot(release), &[]);
        }
    }

    /// The buffer that is filled first.
    pub(super) fn first_filled(&self) -> Option<Value> {
        let insts = self.func().region(self.body).insts.iter();
        insts
            .filter_map(|inst| self.buffers.get(inst))
            .next()
            .copied()
    }

    /// The slot of the iteration before that of a slot.
    pub(super) fn slot_before(&mut self, slot: Value) -> Value {
        let last = self.builder.int32(self.stages as i32 - 1);
        let (zero, one) = (self.builder.int32(0), self.builder.int32(1));
        let is_first = self.builder.compare(CompareOp::Eq, slot, zero);
        let before = self.builder.binary(BinaryOp::Sub, slot, one);
        self.builder.select(is_first, last, before)
    }

    /// Whether boxes alone fill the slots, and in every iteration.
    pub(super) fn takes_boxes_alone(&self) -> bool {
        let insts = &self.func().region(self.body).insts;
        let mut loads = self.ahead.loads.iter();
        loads.all(|load| self.is_box(*load) && insts.contains(load))
    }

    /// How often the slot that an iteration fills has been released by then: as often as boxes have filled it before.
    pub(super) fn releases_before(&mut self, slot: Value, turn: Value) -> Value {
        let behind = (self.stages - self.distance) as i32;
        let [behind, one] = [behind, 1].map(|number| self.builder.int32(number));
        let wraps = self.builder.compare(CompareOp::Lt, slot, behind);
        let later = self.builder.add(turn, one);
        self.builder.select(wraps, turn, later)
    }
}
