//! Slots that each warp releases once it has read them. Only the warps that fill slots wait for the others then, and groups
//! of warps may be an iteration apart: while one computes, another multiplies.

use super::Pipeliner;
use crate::ir::{BinaryOp, CompareOp, Inst, Op, Value, op};

impl Pipeliner {
    /// This warp has read its slots: those of an iteration at its end, or those of the one before where products stay under
    /// way.
    pub(super) fn release(&mut self, op: &op::For, slot: Value) {
        if !self.overlaps {
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

    /// Whoever has released a slot of the buffer of a group whose boxes are copied first has read those of the others.
    fn release_first(&mut self, slot: Value) {
        for buffer in self.released_buffers() {
            let release = op::ReleaseSlot { buffer, slot };
            self.builder.emit(Op::ReleaseSlot(release), &[]);
        }
    }

    /// Of each group the buffer whose boxes are copied first.
    pub(super) fn released_buffers(&self) -> Vec<Value> {
        let groups = self.groups().into_iter();
        let first = |group: Vec<Inst>| group.into_iter().find(|&load| self.is_box(load));
        let loads = groups.filter_map(first);
        loads.map(|load| self.buffers[&load]).collect()
    }

    /// The loads whose slots are free at once: those that feed one product, or all where products stay under way together, or
    /// where lanes fill slots that others read.
    pub(super) fn groups(&self) -> Vec<Vec<Inst>> {
        let apart = !self.overlaps && self.shares_boxes_alone();
        let product = |load: Inst| self.rings[&load].fed.map(|fed| fed.dot).filter(|_| apart);
        let mut groups: Vec<Vec<Inst>> = Vec::new();
        for load in self.loads_in(self.body) {
            let mut found = groups.iter_mut();
            match found.find(|group| product(group[0]) == product(load)) {
                Some(group) => group.push(load),
                None => groups.push(vec![load]),
            }
        }
        groups
    }

    /// The slot of the iteration before that of a slot.
    pub(super) fn slot_before(&mut self, slot: Value) -> Value {
        let last = self.builder.int32(self.stages as i32 - 1);
        let (zero, one) = (self.builder.int32(0), self.builder.int32(1));
        let is_first = self.builder.compare(CompareOp::Eq, slot, zero);
        let before = self.builder.binary(BinaryOp::Sub, slot, one);
        self.builder.select(is_first, last, before)
    }

    /// Whether boxes alone fill the slots that others read too, and in every iteration. What a lane copies and no product
    /// takes, it reads itself, unless it is of a run.
    pub(super) fn shares_boxes_alone(&self) -> bool {
        let insts = &self.func().region(self.body).insts;
        let mut loads = self.ahead.loads.iter();
        let own = |load: &Inst| !self.is_box(*load) && !self.rings[load].is_shared();
        let every = |load: &Inst| self.is_box(*load) && insts.contains(load);
        self.copies_boxes() && loads.all(|load| own(load) || every(load))
    }

    /// How often the slot that an iteration fills has been released by then: as often as boxes have filled it before.
    pub(super) fn releases_before(&mut self, slot: Value, turn: Value) -> Value {
        let spare = (self.stages - self.distance) as i32;
        let [spare, one] = [spare, 1].map(|number| self.builder.int32(number));
        let is_first = self.builder.compare(CompareOp::Lt, slot, spare);
        let later = self.builder.add(turn, one);
        self.builder.select(is_first, turn, later)
    }
}
