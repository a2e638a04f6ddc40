//! Boxes of arrays that bulk copies bring to slots of shared memory, and take from there. Each slot that is filled has a barrier whose phases count what
//! has come: the first warp starts a copy, or each of several a part of one, all wait for its phase. Buffers that are filled together
//! share it. Where warps release slots, each has a second barrier, at which they all arrive. Whoever fills the slot anew waits for it first.

mod buffers;

pub(super) use buffers::BoxBuffers;

use std::collections::BTreeMap;

use super::{Lowering, Result};
use crate::ir::operand::chunk_bits;
use crate::ir::{BinaryOp, CompareOp, DType, Func, Op, Value, op};
use crate::layout::group::box_axis;
use crate::passes::groups::GROUP;

/// The most rows of a box that one copy brings (PTX ISA, "Tensor-map").
const MOST_ROWS: u32 = 256;

/// Bytes in which the copies exchange pieces of 16.
const SWIZZLE: i64 = 128;

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
    /// How many warps start the box that has been lowered last, and have waited until its slot is free. Boxes that are filled together are
    /// lowered one directly behind the other.
    shares: u32,
}

/// How a tile in a slot is cut into copies.
struct Cut {
    /// The axis along which elements are contiguous.
    inner: usize,
    /// The rows and the columns of each copy.
    shape: [u32; 2],
    /// The rows of each part of the tile, of one or more copies.
    rows: u32,
    /// How far each copy is from the first element, and its place in the slot.
    steps: Vec<([u32; 2], u32)>,
}

/// The copies of which a box is made.
struct Parts {
    map: Value,
    /// The buffer, and where the slot begins in it.
    memory: Value,
    start: Value,
    /// The index of the first element of each part, of the axis that is not contiguous and of the one that is.
    corners: Vec<[Value; 2]>,
    /// The rows of a part, and the steps, of its [`Cut`].
    rows: u32,
    steps: Vec<([u32; 2], u32)>,
}

impl Lowering<'_> {
    /// Whether boxes are copied to a buffer.
    pub(super) fn takes_boxes(&self, buffer: Value) -> bool {
        self.box_buffers.take_boxes(buffer)
    }

    /// What comes before a buffer begins: with the first of a region the barriers of the slots of all of them, and with the first of
    /// those that are made one after the other a meeting of all warps, so that what has been in their memory is over for copies too.
    pub(super) fn before_boxes(&mut self, buffer: Value) -> Result<()> {
        let begun = self.box_buffers.begun_with(buffer);
        let begun = begun.map(<[Value]>::to_vec).unwrap_or_default();
        let mut words: BTreeMap<u8, Vec<(Value, i64)>> = BTreeMap::new();
        for &buffer in &begun {
            let (_, slots) = self.of_buffer(buffer);
            let own = self.words_of(buffer, slots);
            words.entry(slots).or_default().extend(own);
        }
        for (slots, words) in words {
            self.init_words(slots, &words)?;
        }
        if !self.box_buffers.is_first(buffer) {
            return Ok(());
        }
        if self.uses_shared {
            self.builder.emit(Op::ProxyFence(op::ProxyFence {}), &[]);
        }
        if self.uses_shared || !begun.is_empty() {
            self.builder.emit(Op::Barrier(op::Barrier {}), &[]);
        }
        Ok(())
    }

    /// Makes the barriers of so many slots, and says how often who arrives at them: each warp makes its share of the slots,
    /// since one warp takes some 36 clocks for each barrier.
    fn init_words(&mut self, slots: u8, words: &[(Value, i64)]) -> Result<()> {
        let warps = self.block.warps;
        let slots = u32::from(slots);
        for first in (0..slots).step_by(warps as usize) {
            let warp = self.builder.value(Op::WarpId(op::WarpId {}));
            let first_slot = self.builder.int32(first as i32);
            let at = self.builder.add(warp, first_slot);
            let make = |this: &mut Self| {
                for &(word, count) in words {
                    let init = Op::MbarrierInit(op::MbarrierInit { word, at, count });
                    this.builder.emit(init, &[]);
                }
                Ok(())
            };
            if first + warps <= slots {
                make(self)?;
            } else {
                let end = self.builder.int32(slots as i32);
                let condition = self.builder.compare(CompareOp::Lt, at, end);
                self.only_where(condition, make)?;
            }
        }
        Ok(())
    }

    /// The words of the barriers of a buffer's slots that it does not share with one before it, and how often who arrives.
    fn words_of(&mut self, buffer: Value, slots: u8) -> Vec<(Value, i64)> {
        let together = self.box_buffers.filled_with(buffer).iter();
        let shared = together.filter_map(|it| self.phases.get(it)).next();
        let shared = shared.map(|phases| phases.filled);
        let filled = shared.unwrap_or_else(|| self.in_shared(DType::U64, slots.into()));
        let is_released = is_released(self.block, buffer);
        let released = is_released.then(|| self.in_shared(DType::U64, slots.into()));
        self.phases.insert(
            buffer,
            Phases {
                filled,
                released,
                shares: 1,
            },
        );
        let warps = i64::from(self.block.warps);
        let own = shared.is_none().then_some((filled, 1));
        let released = released.map(|word| (word, warps));
        own.into_iter().chain(released).collect()
    }

    pub(super) fn by_first_warp(
        &mut self,
        fill: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        self.by_warp(0, fill)
    }

    fn by_warp(&mut self, number: u32, fill: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let warp = self.builder.value(Op::WarpId(op::WarpId {}));
        let own = self.builder.int32(number.cast_signed());
        let condition = self.builder.compare(CompareOp::Eq, warp, own);
        self.only_where(condition, fill)
    }

    pub(super) fn only_where(
        &mut self,
        condition: Value,
        fill: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
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

    fn phases_of(&self, buffer: Value) -> Phases {
        let phases = self.phases.get(&buffer).copied();
        phases.expect("broken invariant: boxes are copied to this buffer")
    }

    pub(super) fn wait_box(&mut self, op: &op::WaitBox) -> Result<()> {
        if self.box_buffers.is_shown(op) {
            return Ok(());
        }
        let word = self.phases_of(op.buffer).filled;
        let (at, phase) = (self.scalar(op.slot), self.scalar(op.turn));
        let wait = Op::MbarrierWait(op::MbarrierWait { word, at, phase });
        self.builder.emit(wait, &[]);
        Ok(())
    }

    pub(super) fn release_slot(&mut self, op: &op::ReleaseSlot) -> Result<()> {
        let released = self.phases_of(op.buffer).released;
        let word = released.expect("broken invariant: this op releases the slots of the buffer");
        let at = self.scalar(op.slot);
        let arrive = Op::MbarrierArrive(op::MbarrierArrive { word, at });
        self.builder.emit(arrive, &[]);
        Ok(())
    }

    /// The barrier and the phase that a warp waits for before it fills a slot: that of its last release.
    fn last_release(&mut self, op: &op::CopyBox) -> Option<(Value, Value)> {
        let times = op.released?;
        let released = self.phases_of(op.buffer).released;
        let word = released.expect("broken invariant: somebody releases slots of the buffer");
        let (times, one) = (self.scalar(times), self.builder.int32(1));
        let phase = self.builder.binary(BinaryOp::Sub, times, one);
        Some((word, phase))
    }

    /// How many warps of a group start a box, each some parts. Each of them must know that the slot is free: it waits for a release here, or
    /// has done so for the first of the boxes that are filled together; or nobody releases slots, so that barriers of all warps tell it.
    fn shares_of(&mut self, op: &op::CopyBox, parts: &Parts) -> u32 {
        let buffer = op.buffer;
        let together = self.box_buffers.filled_with(buffer).first();
        let first = together.filter(|&&first| first != buffer);
        let mut insts = self.block.all_insts().into_iter();
        let most = if let Some(&first) = first {
            self.phases_of(first).shares
        } else if op.released.is_some()
            || !insts.any(|inst| matches!(self.block.op(inst), Op::ReleaseSlot(_)))
        {
            self.block.warps.min(GROUP)
        } else {
            1
        };
        let shares = most.min(parts.corners.len() as u32);
        if let Some(phases) = self.phases.get_mut(&buffer) {
            phases.shares = shares;
        }
        shares
    }

    /// How the tiles in slots of a buffer are cut, that are put together of so many parts.
    fn cut(&self, buffer: Value, count: u32) -> Cut {
        let (dtype, _) = self.of_buffer(buffer);
        let layout = self.layout(buffer);
        let inner = box_axis(&layout, dtype);
        let inner = inner.expect("broken invariant: a box is copied between memory and chunks");
        let [rows, columns] = [1 - inner, inner].map(|axis| 1_u32 << layout.dim_bits()[axis]);
        let of_part = rows / count;
        let (own_rows, chunk) = (of_part.min(MOST_ROWS), 1 << chunk_bits(dtype));
        let firsts = (0..columns).step_by(chunk as usize);
        let steps = firsts.flat_map(|first| {
            let parts = (0..rows).step_by(own_rows as usize);
            parts.map(move |part| ([part, first], first * rows + part * chunk))
        });
        Cut {
            inner,
            shape: [own_rows, chunk],
            rows: of_part,
            steps: steps.collect(),
        }
    }

    /// The copies of which a box of an array is made, between memory and the slot that begins at `start` of a buffer. Each of its parts
    /// has an origin.
    fn parts(
        &mut self,
        (buffer, start): (Value, Value),
        base: Value,
        [origin, extents, strides]: [&[Value]; 3],
    ) -> Parts {
        let count = origin.len() / extents.len();
        let Cut {
            inner,
            shape,
            rows,
            steps,
        } = self.cut(buffer, count as u32);
        let order = [1 - inner, inner];
        let corners = origin.chunks(extents.len());
        let corners = corners.map(|origin| order.map(|axis| self.scalar(origin[axis])));
        let corners = corners.collect();
        let map = Op::TensorMap(op::TensorMap {
            base: self.scalar(base),
            extents: order.map(|axis| self.scalar(extents[axis])).to_vec(),
            strides: vec![self.scalar(strides[order[0]])],
            shape: shape.to_vec(),
            swizzle: SWIZZLE,
        });
        Parts {
            map: self.builder.value(map),
            memory: self.scalar(buffer),
            start,
            corners,
            rows,
            steps,
        }
    }

    /// Emits each copy of a share of the parts of a box, which is those that leave this rest: from its corner there, and its place in the slot.
    fn each_part(
        &mut self,
        parts: &Parts,
        [share, shares]: [u32; 2],
        mut copy: impl FnMut(&Parts, Vec<Value>, Value) -> Op,
    ) {
        for &([down, across], place) in &parts.steps {
            let part = down / parts.rows;
            if part % shares != share {
                continue;
            }
            let [row, column] = parts.corners[part as usize];
            let steps = [down % parts.rows, across].map(|step| self.builder.index(step.into()));
            let origin = [
                self.builder.add(row, steps[0]),
                self.builder.add(column, steps[1]),
            ];
            let place = self.builder.int32(place as i32);
            let offset = self.builder.add(parts.start, place);
            let copy = copy(parts, origin.to_vec(), offset);
            self.builder.emit(copy, &[]);
        }
    }

    /// The first warp starts to copy a slot, as all warps have shown it.
    pub(super) fn copy_slot(&mut self, op: &op::CopySlot) -> Result<()> {
        let start = self.slot_start(op.buffer, op.slot);
        let numbers = [&op.origin[..], &op.extents, &op.strides];
        let parts = self.parts((op.buffer, start), op.base, numbers);
        self.by_first_warp(|this| {
            this.each_part(&parts, [0, 1], |parts, origin, offset| {
                Op::CopyOut(op::CopyOut {
                    map: parts.map,
                    origin,
                    source: parts.memory,
                    offset,
                })
            });
            Ok(())
        })
    }

    pub(super) fn wait_slots(&mut self, op: &op::WaitSlots) -> Result<()> {
        let insts = self.block.all_insts().into_iter();
        let buffers = insts.filter_map(|inst| {
            let Op::CopySlot(op) = self.block.op(inst) else {
                return None;
            };
            Some(op.buffer)
        });
        let copies = buffers.map(|buffer| self.cut(buffer, 1).steps.len() as i64);
        // The last copies, whichever these are, are at least so many.
        let each = copies.min();
        let pending = op.pending * each.unwrap_or(0);
        self.by_first_warp(|this| {
            let wait = Op::WaitCopiesRead(op::WaitCopiesRead { pending });
            this.builder.emit(wait, &[]);
            Ok(())
        })
    }

    pub(super) fn wait_written(&mut self) -> Result<()> {
        self.by_first_warp(|this| {
            let wait = Op::WaitCopiesOut(op::WaitCopiesOut { pending: 0 });
            this.builder.emit(wait, &[]);
            Ok(())
        })
    }

    pub(super) fn copy_box(&mut self, op: &op::CopyBox) -> Result<()> {
        let together = self.box_buffers.filled_with(op.buffer).to_vec();
        let bytes = together.iter().map(|&it| {
            let (dtype, _) = self.of_buffer(it);
            i64::from(self.layout(it).registers()) * i64::from(dtype.bytes())
        });
        let bytes: i64 = bytes.sum();
        let start = self.slot_start(op.buffer, op.slot);
        let numbers = [&op.origin[..], &op.extents, &op.strides];
        let parts = self.parts((op.buffer, start), op.base, numbers);
        let word = self.phases_of(op.buffer).filled;
        let at = self.scalar(op.slot);
        let release = self.last_release(op);
        let shares = self.shares_of(op, &parts);
        for share in 0..shares {
            self.by_warp(share, |this| {
                if let Some((word, phase)) = release {
                    let wait = Op::MbarrierWait(op::MbarrierWait { word, at, phase });
                    this.builder.emit(wait, &[]);
                }
                if share == 0 && together.first() == Some(&op.buffer) {
                    let expect = Op::MbarrierExpect(op::MbarrierExpect { word, at, bytes });
                    this.builder.emit(expect, &[]);
                }
                this.each_part(&parts, [share, shares], |parts, origin, offset| {
                    Op::CopyIn(op::CopyIn {
                        map: parts.map,
                        origin,
                        target: parts.memory,
                        offset,
                        word,
                        at,
                    })
                });
                if share == 0 && together.last() == Some(&op.buffer) {
                    let arrive = Op::MbarrierArrive(op::MbarrierArrive { word, at });
                    this.builder.emit(arrive, &[]);
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}
