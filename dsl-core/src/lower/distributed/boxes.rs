//! Boxes of arrays that bulk copies bring to slots of shared memory. Each slot has a barrier whose phases count what
//! has come: the first warp starts a copy, all wait for its phase. Where warps release slots, each has a second barrier,
//! at which they all arrive, and for which the first warp waits before it fills the slot anew.

use std::collections::BTreeSet;

use super::{Lowering, Result};
use crate::ir::operand::chunk_bits;
use crate::ir::{Access, BinaryOp, CompareOp, DType, Func, Inst, Op, Value, op};
use crate::launch::inner_axis as contiguous_axis;
use crate::layout::group::inner_axis;

/// The most rows of a box that one copy brings (PTX ISA, "Tensor-map").
const MOST_ROWS: u32 = 256;

/// Bytes in which the copies exchange pieces of 16.
const SWIZZLE: i64 = 128;

/// Whether boxes are copied to a buffer.
fn takes_boxes(block: &Func, buffer: Value) -> bool {
    let mut insts = block.all_insts().into_iter();
    insts.any(|inst| matches!(block.op(inst), Op::CopyBox(op) if op.buffer == buffer))
}

/// Whether warps release the slots of a buffer.
fn is_released(block: &Func, buffer: Value) -> bool {
    let mut insts = block.all_insts().into_iter();
    insts.any(|inst| matches!(block.op(inst), Op::ReleaseSlot(op) if op.buffer == buffer))
}

/// The barriers of the slots of a buffer: words of shared memory, one for each slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phases {
    /// Those that boxes arrive at.
    filled: Value,
    /// Those that warps arrive at.
    released: Option<Value>,
}

/// The buffers for boxes behind which all warps must meet once: the last of those that are made one after the other.
pub(super) fn meeting_behind(block: &Func) -> BTreeSet<Value> {
    let buffer = |inst: Inst| {
        let made = matches!(block.op(inst), Op::Buffer(_));
        let value = made.then(|| block.inst(inst).results[0])?;
        takes_boxes(block, value).then_some(value)
    };
    let mut found = BTreeSet::new();
    for region in block.all_regions() {
        let insts = &block.region(region).insts;
        for (at, &inst) in insts.iter().enumerate() {
            let next = insts.get(at + 1).and_then(|&next| buffer(next));
            found.extend(buffer(inst).filter(|_| next.is_none()));
        }
    }
    found
}

impl Lowering<'_> {
    /// Whether boxes are copied to a buffer.
    pub(super) fn takes_boxes(&self, buffer: Value) -> bool {
        takes_boxes(self.block, buffer)
    }

    /// Makes the barriers of the slots of a buffer. What was in its memory before is over for copies too.
    pub(super) fn make_phases(&mut self, buffer: Value, slots: u8) -> Result<()> {
        let filled = self.in_shared(DType::U64, slots.into());
        let is_released = is_released(self.block, buffer);
        let released = is_released.then(|| self.in_shared(DType::U64, slots.into()));
        self.phases.insert(buffer, Phases { filled, released });
        let warps = i64::from(self.block.warps);
        self.by_first_warp(|this| {
            let released = released.map(|word| (word, warps));
            for (word, count) in [(filled, 1)].into_iter().chain(released) {
                for slot in 0..slots {
                    let at = this.builder.int32(slot.into());
                    let init = Op::MbarrierInit(op::MbarrierInit { word, at, count });
                    this.builder.emit(init, &[]);
                }
            }
            Ok(())
        })?;
        if self.uses_shared {
            self.builder.emit(Op::ProxyFence(op::ProxyFence {}), &[]);
        }
        if self.meets_behind.contains(&buffer) {
            self.builder.emit(Op::Barrier(op::Barrier {}), &[]);
        }
        Ok(())
    }

    fn by_first_warp(&mut self, fill: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let warp = self.builder.value(Op::WarpId(op::WarpId {}));
        let first = self.builder.int32(0);
        let condition = self.builder.compare(CompareOp::Eq, warp, first);
        let on_true = self.nested(fill)?;
        let on_false = self.nested(|_| Ok(()))?;
        let branch = Op::If(op::If {
            condition,
            on_true,
            on_false,
        });
        self.builder.emit(branch, &[]);
        Ok(())
    }

    fn phases_of(&self, buffer: Value) -> Result<Phases> {
        let phases = self.phases.get(&buffer).copied();
        phases.ok_or_else(|| self.error("broken invariant: no box is copied to this buffer"))
    }

    pub(super) fn wait_box(&mut self, op: &op::WaitBox) -> Result<()> {
        let word = self.phases_of(op.buffer)?.filled;
        let (at, phase) = (self.scalar(op.slot), self.scalar(op.turn));
        let wait = Op::MbarrierWait(op::MbarrierWait { word, at, phase });
        self.builder.emit(wait, &[]);
        Ok(())
    }

    pub(super) fn release_slot(&mut self, op: &op::ReleaseSlot) -> Result<()> {
        let released = self.phases_of(op.buffer)?.released;
        let word = released.expect("broken invariant: this op releases the slots of the buffer");
        let at = self.scalar(op.slot);
        let arrive = Op::MbarrierArrive(op::MbarrierArrive { word, at });
        self.builder.emit(arrive, &[]);
        Ok(())
    }

    /// The barrier and the phase that the first warp waits for before it fills a slot: that of its last release.
    fn last_release(&mut self, op: &op::CopyBox) -> Result<Option<(Value, Value)>> {
        let Some(times) = op.released else {
            return Ok(None);
        };
        let Some(word) = self.phases_of(op.buffer)?.released else {
            return Err(self.error(
                "broken invariant: a box waits for a release of a slot that nobody releases",
            ));
        };
        let (times, one) = (self.scalar(times), self.builder.int32(1));
        let phase = self.builder.binary(BinaryOp::Sub, times, one);
        Ok(Some((word, phase)))
    }

    /// The axis along which a box is contiguous, if it can be copied.
    fn copied_along(&mut self, op: &op::CopyBox) -> Result<usize> {
        let layout = self.layout(op.buffer);
        let (dtype, _) = self.of_buffer(op.buffer)?;
        let Some(inner) = inner_axis(&layout, dtype) else {
            return Err(self.error(
                "broken invariant: a box is copied to a buffer that does not lie in chunks",
            ));
        };
        if contiguous_axis(self.block, &op.strides) != Some(inner) {
            return Err(self
                .error("broken invariant: a box is contiguous along another axis than its slot"));
        }
        let parameter = self.block.parameter_index(op.base);
        let parameter = parameter.map(|index| &self.block.parameters[index]);
        if parameter.is_none_or(|it| it.access != Access::Read) {
            return Err(
                self.error("broken invariant: a box is copied of memory that the kernel may write")
            );
        }
        Ok(inner)
    }

    pub(super) fn copy_box(&mut self, op: &op::CopyBox) -> Result<()> {
        let (dtype, _) = self.of_buffer(op.buffer)?;
        let layout = self.layout(op.buffer);
        let inner = self.copied_along(op)?;
        let order = [1 - inner, inner];
        let [rows, columns] = order.map(|axis| 1_u32 << layout.dim_bits()[axis]);
        let (own_rows, chunk) = (rows.min(MOST_ROWS), 1 << chunk_bits(dtype));
        let [row, column] = order.map(|axis| self.scalar(op.origin[axis]));
        let map = Op::TensorMap(op::TensorMap {
            base: self.scalar(op.base),
            extents: order.map(|axis| self.scalar(op.extents[axis])).to_vec(),
            strides: vec![self.scalar(op.strides[order[0]])],
            shape: vec![own_rows, chunk],
            swizzle: SWIZZLE,
        });
        let map = self.builder.value(map);
        let target = self.scalar(op.buffer);
        let word = self.phases_of(op.buffer)?.filled;
        let at = self.scalar(op.slot);
        let release = self.last_release(op)?;
        let start = self.slot_start(op.buffer, op.slot);
        self.by_first_warp(|this| {
            if let Some((word, phase)) = release {
                let wait = Op::MbarrierWait(op::MbarrierWait { word, at, phase });
                this.builder.emit(wait, &[]);
            }
            let bytes = i64::from(layout.registers()) * i64::from(dtype.bytes());
            let expect = Op::MbarrierExpect(op::MbarrierExpect { word, at, bytes });
            this.builder.emit(expect, &[]);
            for first in (0..columns).step_by(chunk as usize) {
                for part in (0..rows).step_by(own_rows as usize) {
                    let steps = [part, first].map(|step| this.builder.index(step.into()));
                    let origin = [
                        this.builder.add(row, steps[0]),
                        this.builder.add(column, steps[1]),
                    ];
                    let place = this.builder.int32((first * rows + part * chunk) as i32);
                    let offset = this.builder.add(start, place);
                    let origin = origin.to_vec();
                    let copy = Op::CopyIn(op::CopyIn {
                        map,
                        origin,
                        target,
                        offset,
                        word,
                        at,
                    });
                    this.builder.emit(copy, &[]);
                }
            }
            let arrive = Op::MbarrierArrive(op::MbarrierArrive { word, at });
            this.builder.emit(arrive, &[]);
            Ok(())
        })
    }
}
