//! Tiles in slots of shared memory, and the copies that are under way to them.

mod row;

use std::collections::{BTreeMap, VecDeque};

use super::{Fault, FaultKind, Machine};
use crate::interp::elements::Elements;
use crate::interp::fault::SlotFault;
use crate::ir::op::{OrderOp, SlotOp};
use crate::ir::operand::piece_bits;
use crate::ir::{Inst, Value, op};
use row::Row;

/// A copy that is under way.
struct Copy {
    inst: Inst,
    place: (Value, i64),
    elements: Elements,
}

/// A copy to memory that is under way.
struct Leaving {
    inst: Inst,
    place: (Value, i64),
    base: Value,
    /// The offset of each element; `None` outside of the array.
    to: Vec<Option<i64>>,
    elements: Elements,
}

/// What a program has in shared memory.
#[derive(Default)]
pub(super) struct Shared {
    slots: BTreeMap<(Value, i64), Elements>,
    /// Where in memory the last run begins that was copied to each slot.
    starts: BTreeMap<(Value, i64), i64>,
    /// The copies of no group yet.
    started: Vec<Copy>,
    groups: VecDeque<Vec<Copy>>,
    boxes: Vec<Copy>,
    /// How many boxes have been copied to each slot.
    turns: BTreeMap<(Value, i64), i64>,
    /// How often each slot has been released.
    released: BTreeMap<(Value, i64), i64>,
    /// The slots that each product under way may still read.
    products: VecDeque<(Inst, Vec<(Value, i64)>)>,
    leaving: VecDeque<Leaving>,
    rows: BTreeMap<Value, Row>,
}

impl Shared {
    /// The copies that are under way.
    fn under_way(&self) -> impl Iterator<Item = &Copy> {
        let lanes = self.groups.iter().flatten().chain(&self.started);
        lanes.chain(&self.boxes)
    }

    /// Waits until no more products than these are under way.
    fn wait_products(&mut self, pending: i64) {
        while self.products.len() as i64 > pending {
            self.products.pop_front();
        }
    }
}

impl Machine<'_> {
    pub(super) fn slot_op(&mut self, inst: Inst, op: SlotOp<'_>) -> Result<Vec<Elements>, Fault> {
        match op {
            // A buffer is the value that names it.
            SlotOp::Buffer(_) => {
                let made = self.func.inst(inst).results[0];
                let shared = &mut self.shared;
                for counts in [&mut shared.turns, &mut shared.released] {
                    counts.retain(|&(buffer, _), _| buffer != made);
                }
                Ok(vec![Elements::uniform(0)])
            }
            SlotOp::CopyLanes(op) => self.copy_lanes(inst, op).map(|()| Vec::new()),
            SlotOp::CopyRun(op) => self.copy_run(inst, op).map(|()| Vec::new()),
            SlotOp::CopyBox(op) => self.copy_box(inst, op).map(|()| Vec::new()),
            SlotOp::WaitBox(op) => {
                let place = self.slot(inst, op.buffer, op.slot)?;
                self.wait_box(inst, place, i64::from(self.index(op.turn) as i32))?;
                Ok(Vec::new())
            }
            SlotOp::ReleaseSlot(op) => {
                let place = self.slot(inst, op.buffer, op.slot)?;
                self.free(inst, place)?;
                *self.shared.released.entry(place).or_default() += 1;
                Ok(Vec::new())
            }
            SlotOp::CopySlot(op) => self.copy_slot(inst, op).map(|()| Vec::new()),
            SlotOp::WaitSlots(op) => self.wait_slots(op.pending).map(|()| Vec::new()),
            SlotOp::WaitWritten(op::WaitWritten {}) => self.wait_slots(0).map(|()| Vec::new()),
            SlotOp::CopyRow(op) => self.copy_row(inst, op),
            SlotOp::WaitRow(op) => Ok(self.wait_row(op)),
            SlotOp::RowLoad(op) => self.row_load(inst, op),
            SlotOp::SlotLoad(op) => Ok(vec![self.slot_load(inst, op)?]),
            SlotOp::SlotStore(op) => self.slot_store(inst, op).map(|()| Vec::new()),
            SlotOp::DotSlots(op) => {
                let mut places = vec![self.slot(inst, op.b, op.b_slot)?];
                let b = self.in_slot(inst, op.b, op.b_slot)?;
                let a = match op.a_slot {
                    Some(slot) => {
                        places.push(self.slot(inst, op.a, slot)?);
                        self.in_slot(inst, op.a, slot)?
                    }
                    None => self.read(op.a),
                };
                let dtype = self.func.ty(op.b).buffer().map(|(dtype, _)| dtype);
                let dtype = dtype.expect("broken invariant: a slot is of a buffer");
                let shapes = [op.a, op.b].map(|value| self.shape(value));
                self.shared.products.push_back((inst, places));
                Ok(vec![self.product(
                    (op.precision, dtype),
                    shapes,
                    [&a, &b],
                    op.accumulator,
                )])
            }
        }
    }

    fn slot_store(&mut self, inst: Inst, op: &op::SlotStore) -> Result<(), Fault> {
        let place = self.slot(inst, op.buffer, op.slot)?;
        self.free(inst, place)?;
        let elements = self.read(op.value);
        self.shared.slots.insert(place, elements);
        Ok(())
    }

    fn copy_lanes(&mut self, inst: Inst, op: &op::CopyLanes) -> Result<(), Fault> {
        let place = self.slot(inst, op.buffer, op.slot)?;
        self.free(inst, place)?;
        let count = self.shape(op.offsets).elements();
        let (offsets, mask) = (self.read(op.offsets), self.read_or(op.mask, 1));
        let at = |element| (mask.get(element) != 0).then(|| offsets.get(element).cast_signed());
        let elements = self.gathered(inst, op.base, count, &at, &Elements::uniform(0))?;
        self.shared.started.push(Copy {
            inst,
            place,
            elements,
        });
        Ok(())
    }

    fn copy_run(&mut self, inst: Inst, op: &op::CopyRun) -> Result<(), Fault> {
        let place = self.slot(inst, op.buffer, op.slot)?;
        self.free(inst, place)?;
        let (start, count) = (self.index(op.start), self.index(op.count));
        let room = self.shape(op.offsets).elements() as i64;
        let elements = self.run(inst, &op.access(), (start, count, room))?;
        self.shared.starts.insert(place, start);
        self.shared.started.push(Copy {
            inst,
            place,
            elements,
        });
        Ok(())
    }

    fn slot_load(&self, inst: Inst, op: &op::SlotLoad) -> Result<Elements, Fault> {
        op.start
            .map_or(Ok(()), |start| self.begins(inst, op, start))?;
        self.in_slot(inst, op.buffer, op.slot)
    }

    /// Whether the run in a slot lies where one from `start` on does.
    fn begins(&self, inst: Inst, op: &op::SlotLoad, start: Value) -> Result<(), Fault> {
        let place = self.slot(inst, op.buffer, op.slot)?;
        let dtype = self.func.ty(op.buffer).buffer().map(|(dtype, _)| dtype);
        let piece = dtype.map_or(1, |dtype| 1 << piece_bits(dtype));
        let within = |start: i64| start & (piece - 1);
        let read = within(self.index(start));
        let begins = self.shared.starts.get(&place).map_or(0, |&it| within(it));
        if begins == read {
            return Ok(());
        }
        let slot = place.1;
        let fault = SlotFault::Begins { slot, begins, read };
        Err(self.fault(inst, fault.into()))
    }

    fn copy_box(&mut self, inst: Inst, op: &op::CopyBox) -> Result<(), Fault> {
        let place = self.slot(inst, op.buffer, op.slot)?;
        self.free(inst, place)?;
        if let Some(wanted) = op.released {
            let wanted = i64::from(self.index(wanted) as i32);
            let released = self.shared.released.get(&place).copied().unwrap_or(0);
            if released != wanted {
                let slot = place.1;
                let fault = SlotFault::Released {
                    slot,
                    wanted,
                    released,
                };
                return Err(self.fault(inst, fault.into()));
            }
        }
        let numbers = [&op.origin[..], &op.extents, &op.strides];
        let elements = self.in_box(inst, op.base, numbers, (op.along, self.shape(op.buffer)))?;
        *self.shared.turns.entry(place).or_default() += 1;
        self.shared.boxes.push(Copy {
            inst,
            place,
            elements,
        });
        Ok(())
    }

    /// Lets the last box of a slot arrive, which must be that of this turn.
    fn wait_box(&mut self, inst: Inst, place: (Value, i64), turn: i64) -> Result<(), Fault> {
        let shared = &mut self.shared;
        let boxes = shared.turns.get(&place).copied().unwrap_or(0);
        if boxes != turn + 1 {
            let slot = place.1;
            return Err(self.fault(inst, SlotFault::Turn { slot, turn, boxes }.into()));
        }
        let last = shared.boxes.iter().position(|copy| copy.place == place);
        if let Some(last) = last {
            let copy = shared.boxes.remove(last);
            shared.slots.insert(copy.place, copy.elements);
        }
        Ok(())
    }

    fn copy_slot(&mut self, inst: Inst, op: &op::CopySlot) -> Result<(), Fault> {
        let place = self.slot(inst, op.buffer, op.slot)?;
        let elements = self.in_slot(inst, op.buffer, op.slot)?;
        let numbers = [&op.origin[..], &op.extents, &op.strides];
        let to = self.box_places(numbers, (None, self.shape(op.buffer)));
        self.shared.leaving.push_back(Leaving {
            inst,
            place,
            base: op.base,
            to,
            elements,
        });
        Ok(())
    }

    /// Writes what has been copied from slots, but the last copies.
    fn wait_slots(&mut self, pending: i64) -> Result<(), Fault> {
        while self.shared.leaving.len() as i64 > pending
            && let Some(copy) = self.shared.leaving.pop_front()
        {
            self.put(copy.inst, copy.base, &copy.to, &copy.elements)?;
        }
        Ok(())
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

    /// Whether a slot may be written: no copy to it or from it is under way, and no product reads it.
    fn free(&self, inst: Inst, place: (Value, i64)) -> Result<(), Fault> {
        self.settled(inst, place)?;
        if self.shared.leaving.iter().any(|copy| copy.place == place) {
            return Err(self.fault(inst, SlotFault::Leaving { slot: place.1 }.into()));
        }
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
            OrderOp::Settle(op::Settle { x, pending }) => {
                shared.wait_products(*pending);
                return vec![self.read(*x)];
            }
            OrderOp::WaitProducts(op::WaitProducts { pending }) => shared.wait_products(*pending),
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
        let copies = copies.chain(self.shared.leaving.iter().map(|copy| copy.inst));
        let rows = self.shared.rows.values().filter(|row| row.is_under_way());
        let copies = copies.chain(rows.map(|row| row.inst));
        let mut left = copies.chain(self.shared.products.iter().map(|&(inst, _)| inst));
        match left.next() {
            Some(inst) => Err(self.fault(inst, FaultKind::Unfinished { lane: 0 })),
            None => Ok(()),
        }
    }
}
