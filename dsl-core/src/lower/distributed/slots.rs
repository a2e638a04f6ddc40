//! Tiles in shared memory: buffers, the slots that lanes copy to and read.

use std::collections::BTreeMap;

use super::order::Touch;
use super::registers::Registers;
use super::{Lowering, Result};
use crate::ir::op::SlotOp;
use crate::ir::{BinaryOp, DType, Effect, Func, Op, Space, Type, Value, op};
use crate::layout::slots::SlotPlaces;
use crate::passes::allocate::slot_elements;

/// For each buffer the one whose slots lie behind its own.
pub(super) fn behind(block: &Func) -> BTreeMap<Value, Value> {
    let insts = block.all_insts().into_iter();
    let pairs = insts.filter_map(|inst| {
        let Op::Buffer(op) = block.op(inst) else {
            return None;
        };
        Some((op.behind?, block.inst(inst).results[0]))
    });
    pairs.collect()
}

impl Lowering<'_> {
    pub(super) fn slot_op(&mut self, results: &[Value], op: SlotOp<'_>) -> Result<()> {
        match op {
            SlotOp::Buffer(op) => self.buffer(results[0], op),
            SlotOp::CopyLanes(op) => self.copy_lanes(op),
            SlotOp::CopyRun(op) => self.copy_run(op),
            SlotOp::CopyBox(op) => self.copy_box(op),
            SlotOp::WaitBox(op) => self.wait_box(op),
            SlotOp::ReleaseSlot(op) => self.release_slot(op),
            SlotOp::CopySlot(op) => self.copy_slot(op),
            SlotOp::WaitSlots(op) => self.wait_slots(op),
            SlotOp::WaitWritten(op::WaitWritten {}) => self.wait_written(),
            SlotOp::CopyRow(op) => self.copy_row(results[0], op),
            SlotOp::WaitRow(op) => self.wait_row(op),
            SlotOp::RowLoad(op) => self.row_load(results[0], op),
            SlotOp::SlotLoad(op) => self.slot_load(results[0], op),
            SlotOp::SlotStore(op) => self.slot_store(op),
            SlotOp::DotSlots(op) => self.dot_slots(results[0], op),
        }
    }

    /// A buffer in shared memory that begins here. [`crate::passes::allocate`] gives it its bytes.
    pub(super) fn shared(&mut self, dtype: DType, count: i64) -> Value {
        self.uses_shared = true;
        self.in_shared(dtype, count)
    }

    /// [`Self::shared`], for what bulk copies alone write.
    pub(super) fn in_shared(&mut self, dtype: DType, count: i64) -> Value {
        let op = Op::Alloc(op::Alloc { offset: 0, count });
        let ty = Type::pointer(dtype, Space::Shared);
        self.builder.declared(op, ty)
    }

    fn buffer(&mut self, result: Value, op: &op::Buffer) -> Result<()> {
        let (dtype, slots) = self.of_buffer(result);
        if let Some(front) = op.behind {
            self.uses_shared = true;
            let base = self.scalar(front);
            self.bind(result, Registers::uniform(base, 1));
            return Ok(());
        }
        let (_, distance) = self.slot_places(result);
        let count = i64::from(slots) * i64::from(distance);
        let base = if self.takes_boxes(result) {
            self.before_boxes(result)?;
            self.in_shared(dtype, count)
        } else {
            self.shared(dtype, count)
        };
        self.ring_bytes = self.ring_bytes.max(count * i64::from(dtype.bytes()));
        self.bind(result, Registers::uniform(base, 1));
        Ok(())
    }

    /// Where the first slot of a buffer begins, from its base on, and the next one from there on.
    pub(super) fn slot_places(&self, buffer: Value) -> (u32, u32) {
        let own = slot_elements(self.block, buffer, &self.run_buffers) as u32;
        let made = self.definitions[buffer].map(|inst| self.block.op(inst));
        if let Some(&Op::Buffer(op::Buffer {
            behind: Some(front),
        })) = made
        {
            let first = self.layout(front).registers();
            return (first, first + own);
        }
        let behind = self.behind.get(&buffer).copied();
        (
            0,
            own + behind.map_or(0, |behind| self.layout(behind).registers()),
        )
    }

    /// The offset of a slot in its buffer.
    pub(super) fn slot_start(&mut self, buffer: Value, slot: Value) -> Value {
        let (first, distance) = self.slot_places(buffer);
        let (slot, distance) = (self.scalar(slot), self.builder.int32(distance as i32));
        let start = self.builder.binary(BinaryOp::Mul, slot, distance);
        match first {
            0 => start,
            first => {
                let first = self.builder.int32(first as i32);
                self.builder.add(start, first)
            }
        }
    }

    pub(super) fn of_buffer(&self, buffer: Value) -> (DType, u8) {
        let of = self.block.ty(buffer).buffer();
        of.expect("broken invariant: a slot is of a buffer")
    }

    /// The offsets in a buffer of the tile that lies at `places` of a slot: of these registers, in one of the copies that the
    /// slot has of each element.
    fn slot_offsets(
        &mut self,
        (buffer, slot): (Value, Value),
        places: &SlotPlaces,
        (registers, copy): (&[u32], u32),
    ) -> Value {
        let start = self.slot_start(buffer, slot);
        self.placed_offsets(start, places, (registers, copy))
    }

    /// The same of what begins at `start` (`i32`) of its buffer.
    pub(super) fn placed_offsets(
        &mut self,
        start: Value,
        places: &SlotPlaces,
        (registers, copy): (&[u32], u32),
    ) -> Value {
        let own: Vec<u32> = registers.iter().map(|&it| places.of(it) ^ copy).collect();
        let apart = own.iter().all(|it| it & places.thread.support() == 0);
        if !apart {
            let start = self.builder.cast(start, DType::I64);
            let start = self.repeated(start, own.len());
            let offsets = self.thread_offsets(&places.thread, &own);
            return self.builder.add(start, offsets);
        }
        let thread = self.thread_value(&places.thread);
        let start = self.builder.add(start, thread);
        let start = self.builder.cast(start, DType::I64);
        let start = self.repeated(start, own.len());
        let own = self.literals(DType::I64, &own);
        self.builder.add(start, own)
    }

    fn copy_lanes(&mut self, op: &op::CopyLanes) -> Result<()> {
        let (tile, layout) = (op.access(), self.layout(op.offsets));
        let access = self.access(&tile, &layout)?;
        let touch = Touch {
            owned: None,
            effect: Effect::Reads,
        };
        self.order_access(access.argument(), touch);
        let copied = SlotPlaces::copied(&self.layout(op.buffer), &layout, op.count);
        let (places, vectors) = copied.expect("broken invariant: copies lie together in a slot");
        let starts: Vec<u32> = vectors.iter().map(|vector| vector[0]).collect();
        let read = access.masks().map(|masks| {
            let mask = self.pick(masks, &starts);
            let ends = [op.count as u32, 0];
            let [all, none] = ends.map(|read| self.literals(DType::I32, &vec![read; starts.len()]));
            self.builder.select(mask, all, none)
        });
        let copy = Op::StartCopy(op::StartCopy {
            target: self.scalar(op.buffer),
            offset: self.slot_offsets((op.buffer, op.slot), &places, (&starts, 0)),
            source: access.base(),
            source_offset: self.pick(access.offsets(), &starts),
            read,
            count: op.count,
        });
        self.builder.emit(copy, &[]);
        Ok(())
    }

    fn slot_store(&mut self, op: &op::SlotStore) -> Result<()> {
        let (dtype, _) = self.of_buffer(op.buffer);
        let (layout, values) = (self.layout(op.value), self.get(op.value));
        let places = SlotPlaces::of_elements(&self.layout(op.buffer), &layout);
        let most = (self.target.vector_bytes / dtype.bytes()).ilog2();
        let free = layout.free_bits().register;
        let mut vectors = places.vectors(most);
        vectors.retain(|vector| vector[0] & free == 0);
        let starts: Vec<u32> = vectors.iter().map(|vector| vector[0]).collect();
        let owner = self.all_zero(layout.free_bits());
        let value = self.pick(&values, &vectors.concat());
        let mask = self.owned_mask(None, owner, starts.len());
        for copy in places.copies(&self.layout(op.buffer)) {
            let store = Op::LaneStore(op::LaneStore {
                base: self.scalar(op.buffer),
                offset: self.slot_offsets((op.buffer, op.slot), &places, (&starts, copy)),
                value,
                mask,
                align: (vectors[0].len() as i64) * i64::from(dtype.bytes()),
                cache: None,
            });
            self.builder.emit(store, &[]);
        }
        Ok(())
    }

    fn slot_load(&mut self, result: Value, op: &op::SlotLoad) -> Result<()> {
        let (dtype, _) = self.of_buffer(op.buffer);
        let layout = self.layout(result);
        let places = SlotPlaces::new(&self.layout(op.buffer), &layout);
        let most = match op.start {
            Some(_) => 0,
            None => (self.target.vector_bytes / dtype.bytes()).ilog2(),
        };
        let vectors = places.vectors(most);
        let starts: Vec<u32> = vectors.iter().map(|vector| vector[0]).collect();
        let mut first = self.slot_start(op.buffer, op.slot);
        if let Some(start) = op.start {
            let [_, within] = self.in_pieces(start, dtype);
            first = self.builder.add(first, within);
        }
        let load = Op::LaneLoad(op::LaneLoad {
            base: self.scalar(op.buffer),
            offset: self.placed_offsets(first, &places, (&starts, 0)),
            mask: None,
            other: None,
            align: (vectors[0].len() as i64) * i64::from(dtype.bytes()),
            cache: None,
        });
        let all = vectors.concat();
        let ty = Type::vector(dtype, all.len());
        let loaded = self.builder.declared(load, ty);
        let mut places = vec![0; all.len()];
        for (&register, at) in all.iter().zip(0..) {
            places[register as usize] = at;
        }
        self.bind(result, Registers::new(loaded, places));
        Ok(())
    }
}
