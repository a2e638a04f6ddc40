//! The copies of an iteration ahead: its address arithmetic once more, for other numbers of what the loop carries.

use super::{Now, Pipeliner};
use crate::ir::{Inst, Op, Region, Value, op};
use crate::passes::duplicate::duplicate;

impl Pipeliner {
    /// Starts the copies of one iteration if it runs, those of each group apart; returns the carried values of the next.
    pub(super) fn start_copies(
        &mut self,
        index: Value,
        carried: &[Value],
        runs: Value,
        slot: Value,
    ) -> Vec<Value> {
        let parameters = self.func().region(self.body).parameters.clone();
        let chosen = self.ahead.carried.iter().map(|&at| parameters[1 + at]);
        let mut now: Now = chosen.zip(carried.iter().copied()).collect();
        now.insert(parameters[0], index);
        now.extend(&self.around);
        self.addresses(self.body, &mut now);
        let yielded = self.func().yielded(self.body);
        let next = self.ahead.carried.iter().map(|&at| yielded[at]);
        let next = next.map(|value| now.get(&value).copied().unwrap_or(value));
        let next = next.collect();
        for group in self.groups() {
            let on_true = self.branch(|this| {
                let of_group = (&group[..], slot);
                this.copies(this.body, &mut now.clone(), of_group);
            });
            let on_false = self.branch(|_| {});
            self.builder.emit(
                Op::If(op::If {
                    condition: runs,
                    on_true,
                    on_false,
                }),
                &[],
            );
        }
        if self.copies_lanes() {
            self.builder.emit(Op::GroupCopies(op::GroupCopies {}), &[]);
        }
        next
    }

    pub(super) fn branch(&mut self, fill: impl FnOnce(&mut Self)) -> Region {
        self.yielding(|this| {
            fill(this);
            Vec::new()
        })
    }

    pub(super) fn again(&mut self, inst: Inst, now: &mut Now) {
        let region = self.builder.region();
        let func = self.builder.func_mut();
        let copied = duplicate(func, &[inst], now);
        func.region_mut(region).insts.extend(copied);
    }

    /// The address arithmetic of a region that comes before its copies.
    fn addresses(&mut self, region: Region, now: &mut Now) {
        for inst in self.func().region(region).insts.clone() {
            if self.early.contains(&inst) {
                self.again(inst, now);
            }
        }
    }

    /// The copies of a region that are of a group, to a slot, and the rest of its address arithmetic.
    fn copies(&mut self, region: Region, now: &mut Now, (group, slot): (&[Inst], Value)) {
        for inst in self.func().region(region).insts.clone() {
            if let Some(&buffer) = self.buffers.get(&inst) {
                if group.contains(&inst) {
                    self.copy(inst, buffer, now, slot);
                }
            } else if let &Op::If(op::If {
                condition,
                on_true,
                on_false,
            }) = self.func().op(inst)
                && self.ahead.slice.contains(&inst)
            {
                let condition = now.get(&condition).copied().unwrap_or(condition);
                let [on_true, on_false] = [on_true, on_false].map(|branch| {
                    let mut now = now.clone();
                    self.branch(|this| {
                        this.addresses(branch, &mut now);
                        this.copies(branch, &mut now, (group, slot));
                    })
                });
                let op = Op::If(op::If {
                    condition,
                    on_true,
                    on_false,
                });
                self.builder.emit(op, &[]);
            } else if self.ahead.slice.contains(&inst) && !self.early.contains(&inst) {
                self.again(inst, now);
            }
        }
    }

    fn copy(&mut self, load: Inst, buffer: Value, now: &Now, slot: Value) {
        let data = self.func().inst(load).clone();
        let now = |value: Value| now.get(&value).copied().unwrap_or(value);
        let copy = if let Op::CopyBox(mut op) = data.op {
            let released = self
                .released
                .filter(|_| self.released_buffers().contains(&buffer));
            (op.buffer, op.slot, op.released) = (buffer, slot, released);
            for value in op.origin.iter_mut().chain(&mut op.extents) {
                *value = now(*value);
            }
            op.strides.iter_mut().for_each(|it| *it = now(*it));
            Op::CopyBox(op)
        } else if let Op::Load(op) = &data.op
            && let Some(run) = self.rings[&load].run
        {
            let [start, count] = run.map(now);
            Op::CopyRun(op::CopyRun {
                base: op.base,
                offsets: now(op.offsets),
                mask: op.mask.map(now),
                start,
                count,
                buffer,
                slot,
            })
        } else if let Op::Load(op) = data.op {
            Op::CopyLanes(op::CopyLanes {
                base: op.base,
                offsets: now(op.offsets),
                mask: op.mask.map(now),
                buffer,
                slot,
                count: self.rings[&load].slots.count,
            })
        } else {
            return;
        };
        let copy = self.builder.emit(copy, &[]);
        let copy = self.builder.func_mut().inst_mut(copy);
        (copy.site, copy.loc) = (data.site, data.loc);
    }

    pub(super) fn is_box(&self, load: Inst) -> bool {
        matches!(self.func().op(load), Op::CopyBox(_))
    }

    /// Whether some copies are of boxes.
    pub(super) fn copies_boxes(&self) -> bool {
        self.ahead.loads.iter().any(|&load| self.is_box(load))
    }

    /// Whether some copies are those of lanes.
    pub(super) fn copies_lanes(&self) -> bool {
        self.ahead.loads.iter().any(|&load| !self.is_box(load))
    }

    /// Whether lanes or products read what other lanes have copied, or boxes.
    pub(super) fn shares(&self) -> bool {
        let mut loads = self.ahead.loads.iter();
        loads.any(|load| self.rings[load].is_shared())
    }

    /// Whether products read what runs ahead.
    pub(super) fn feeds(&self) -> bool {
        let mut loads = self.ahead.loads.iter();
        loads.any(|load| self.rings[load].fed.is_some())
    }

    /// Whether products read what lanes copy.
    pub(super) fn feeds_by_lanes(&self) -> bool {
        let mut loads = self.ahead.loads.iter();
        loads.any(|load| !self.is_box(*load) && self.rings[load].fed.is_some())
    }
}
