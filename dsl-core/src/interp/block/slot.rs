//! Tiles in slots of shared memory, and the copies that are under way to them.

use std::collections::{BTreeMap, VecDeque};

use super::{Fault, FaultKind, Machine};
use crate::interp::elements::Elements;
use crate::interp::fault::SlotFault;
use crate::ir::op::{OrderOp, SlotOp};
use crate::ir::{Inst, Value, op};

/// A copy that is under way.
struct Copy {
    inst: Inst,
    place: (Value, i64),
    elements: Elements,
}

/// What a program has in shared memory.
#[derive(Default)]
pub(super) struct Shared {
    slots: BTreeMap<(Value, i64), Elements>,
    /// The copies of no group yet.
    started: Vec<Copy>,
    groups: VecDeque<Vec<Copy>>,
    /// The slots that each product under way may still read.
    products: VecDeque<(Inst, [(Value, i64); 2])>,
}

impl Shared {
    /// The copies that are under way.
    fn under_way(&self) -> impl Iterator<Item = &Copy> {
        self.groups.iter().flatten().chain(&self.started)
    }
}

impl Machine<'_> {
    pub(super) fn slot_op(&mut self, inst: Inst, op: SlotOp<'_>) -> Result<Vec<Elements>, Fault> {
        match op {
            // A buffer is the value that names it.
            SlotOp::Buffer(op::Buffer {}) => Ok(vec![Elements::uniform(0)]),
            SlotOp::CopyLanes(op) => {
                let place = self.slot(inst, op.buffer, op.slot)?;
                self.free(inst, place)?;
                let count = self.shape(op.offsets).elements();
                let (offsets, mask) = (self.read(op.offsets), self.read_or(op.mask, 1));
                let at =
                    |element| (mask.get(element) != 0).then(|| offsets.get(element).cast_signed());
                let elements = self.gathered(inst, op.base, count, &at, &Elements::uniform(0))?;
                self.shared.started.push(Copy {
                    inst,
                    place,
                    elements,
                });
                Ok(Vec::new())
            }
            SlotOp::SlotLoad(op) => Ok(vec![self.in_slot(inst, op.buffer, op.slot)?]),
            SlotOp::SlotStore(op) => {
                let place = self.slot(inst, op.buffer, op.slot)?;
                self.free(inst, place)?;
                let elements = self.read(op.value);
                self.shared.slots.insert(place, elements);
                Ok(Vec::new())
            }
            SlotOp::DotSlots(op) => {
                let a = self.in_slot(inst, op.a, op.a_slot)?;
                let b = self.in_slot(inst, op.b, op.b_slot)?;
                let types = [op.a, op.b].map(|buffer| self.func.ty(buffer));
                let dtype = types[0].buffer().map(|(dtype, _)| dtype);
                let dtype = dtype.expect("broken invariant: a slot is of a buffer");
                let shapes = types.map(|ty| ty.shape);
                let a_place = self.slot(inst, op.a, op.a_slot)?;
                let b_place = self.slot(inst, op.b, op.b_slot)?;
                self.shared.products.push_back((inst, [a_place, b_place]));
                Ok(vec![self.product(
                    (op.precision, dtype),
                    shapes,
                    [&a, &b],
                    op.accumulator,
                )])
            }
        }
    }

    /// What lies in a slot.
    fn in_slot(&self, inst: Inst, buffer: Value, slot: Value) -> Result<Elements, Fault> {
        let place = self.slot(inst, buffer, slot)?;
        self.settled(inst, place)?;
        let found = self.shared.slots.get(&place).cloned();
        found.ok_or_else(|| self.fault(inst, SlotFault::Empty { slot: place.1 }.into()))
    }

    /// A slot, which must be one of the buffer.
    fn slot(&self, inst: Inst, buffer: Value, slot: Value) -> Result<(Value, i64), Fault> {
        let found = i64::from(self.index(slot) as i32);
        let slots = self.func.ty(buffer).buffer().map_or(0, |(_, slots)| slots);
        match (0..i64::from(slots)).contains(&found) {
            true => Ok((buffer, found)),
            false => Err(self.fault(inst, SlotFault::NoSlot { slot: found, slots }.into())),
        }
    }

    /// Whether no copy to a slot is under way.
    fn settled(&self, inst: Inst, place: (Value, i64)) -> Result<(), Fault> {
        match self.shared.under_way().any(|copy| copy.place == place) {
            true => Err(self.fault(inst, SlotFault::Copying { slot: place.1 }.into())),
            false => Ok(()),
        }
    }

    /// Whether a slot may be written: no copy to it is under way, and no product reads it.
    fn free(&self, inst: Inst, place: (Value, i64)) -> Result<(), Fault> {
        self.settled(inst, place)?;
        let mut products = self.shared.products.iter();
        match products.any(|(_, slots)| slots.contains(&place)) {
            true => Err(self.fault(inst, SlotFault::Multiplying { slot: place.1 }.into())),
            false => Ok(()),
        }
    }

    pub(super) fn order(&mut self, op: OrderOp<'_>) -> Vec<Elements> {
        let shared = &mut self.shared;
        match op {
            OrderOp::Pend(op::Pend { x }) => return vec![self.read(*x)],
            OrderOp::Settle(op::Settle { x }) => {
                shared.products.clear();
                return vec![self.read(*x)];
            }
            OrderOp::WaitProducts(op::WaitProducts { pending }) => {
                while shared.products.len() as i64 > *pending {
                    shared.products.pop_front();
                }
            }
            OrderOp::Barrier(op::Barrier {}) | OrderOp::ProxyFence(op::ProxyFence {}) => {}
            OrderOp::GroupCopies(op::GroupCopies {}) => {
                let group = std::mem::take(&mut shared.started);
                shared.groups.push_back(group);
            }
            OrderOp::WaitCopies(op::WaitCopies { pending }) => {
                while shared.groups.len() as i64 > *pending {
                    for copy in shared.groups.pop_front().into_iter().flatten() {
                        shared.slots.insert(copy.place, copy.elements);
                    }
                }
            }
        }
        Vec::new()
    }

    /// Whether a program that ends has waited for what it copies and multiplies.
    pub(super) fn ended(&self) -> Result<(), Fault> {
        let copies = self.shared.under_way().map(|copy| copy.inst);
        let mut left = copies.chain(self.shared.products.iter().map(|&(inst, _)| inst));
        match left.next() {
            Some(inst) => Err(self.fault(inst, FaultKind::Unfinished { lane: 0 })),
            None => Ok(()),
        }
    }
}
