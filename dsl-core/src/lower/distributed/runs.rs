//! Runs of elements that lanes copy to slots. Their pieces of 16 bytes lie there as in memory, and the last one is read as far
//! as the run goes, so a run may begin and end anywhere.

use super::order::Touch;
use super::{Lowering, Result};
use crate::ir::operand::piece_bits;
use crate::ir::{DType, Effect, Op, Value, op};
use crate::layout::convert::ThreadMap;
use crate::target::LANE_BITS;

/// A run, of which places (`i32`) count from where the piece begins in which it does.
#[derive(Clone, Copy)]
struct Placed {
    /// That place in memory (`i64`).
    base: Value,
    /// That place in the buffer.
    slot: Value,
    /// The first place behind the run; 0 where it has no element.
    end: Value,
}

impl Lowering<'_> {
    pub(super) fn copy_run(&mut self, op: &op::CopyRun) -> Result<()> {
        let (dtype, _) = self.of_buffer(op.buffer);
        let layout = self.layout(op.offsets);
        let argument = self.access(&op.access(), &layout)?.argument();
        let touch = Touch {
            owned: None,
            effect: Effect::Reads,
        };
        self.order_access(argument, touch);
        let [base, first] = self.in_pieces(op.start, dtype);
        let (count, zero) = (self.scalar(op.count), self.builder.int32(0));
        let none = self.builder.index(0);
        let some = self.builder.lt(none, count);
        let count = self.builder.cast(count, DType::I32);
        let end = self.builder.add(first, count);
        let run = Placed {
            base,
            slot: self.slot_start(op.buffer, op.slot),
            end: self.builder.select(some, end, zero),
        };
        let piece = 1 << piece_bits(dtype);
        let (elements, step) = (1 << layout.tile_bits(), self.threads() * piece);
        let all: Vec<u32> = (0..elements / step).map(|number| number * step).collect();
        let thread = self.thread_value(&self.pieces_of_threads(piece));
        if !all.is_empty() {
            self.copy_pieces(op, run, thread, &all);
        }
        // The run may reach into one piece more, and has fewer than there are lanes where it is short.
        let rest = all.len() as u32 * step;
        let left = self.builder.int32((elements + piece - rest) as i32);
        let has_piece = self.builder.lt(thread, left);
        self.only_where(has_piece, |this| {
            this.copy_pieces(op, run, thread, &[rest]);
            Ok(())
        })
    }

    fn threads(&self) -> u32 {
        self.block.warps << LANE_BITS
    }

    /// The place of the first piece of each thread.
    fn pieces_of_threads(&self, piece: u32) -> ThreadMap {
        let lane = (0..LANE_BITS).map(|bit| piece << bit);
        let warp = (0..self.block.warps.trailing_zeros()).map(|bit| piece << (LANE_BITS + bit));
        ThreadMap {
            lane: lane.collect(),
            warp: warp.collect(),
        }
    }

    /// Where the piece begins in which an element (`i64`) is, and how far behind that the element is (`i32`).
    pub(super) fn in_pieces(&mut self, element: Value, dtype: DType) -> [Value; 2] {
        let element = self.scalar(element);
        let pieces = self.builder.index(-(1 << piece_bits(dtype)));
        let base = self.builder.and(element, pieces);
        let within = self.builder.sub(element, base);
        [base, self.builder.cast(within, DType::I32)]
    }

    /// Each lane copies the pieces so far behind its place.
    fn copy_pieces(&mut self, op: &op::CopyRun, run: Placed, thread: Value, behind: &[u32]) {
        let (dtype, _) = self.of_buffer(op.buffer);
        let piece = 1 << piece_bits(dtype);
        let thread = self.repeated(thread, behind.len());
        let behind_thread = self.literals(DType::I32, behind);
        let places = self.builder.add(thread, behind_thread);
        let [slot, end] = [run.slot, run.end].map(|it| self.repeated(it, behind.len()));
        let [zero, whole] = [0, piece].map(|it| self.literals(DType::I32, &vec![it; behind.len()]));
        let left = self.builder.sub(end, places);
        let read = self.builder.maximum(left, zero);
        let read = self.builder.minimum(read, whole);
        let target = self.builder.add(slot, places);
        let [target, places] = [target, places].map(|it| self.builder.cast(it, DType::I64));
        let base = self.repeated(run.base, behind.len());
        let copy = Op::StartCopy(op::StartCopy {
            target: self.scalar(op.buffer),
            offset: target,
            source: self.scalar(op.base),
            source_offset: self.builder.add(base, places),
            read: Some(read),
            count: piece.into(),
        });
        self.builder.emit(copy, &[]);
    }
}
