//! Buffers in a worker's scratch memory, and which of them share bytes.

use crate::ir::{DType, Func, Inst, Op, Shape, Value, op};

/// A tile in scratch memory, row-major.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Buffer {
    /// The pointer that `alloc` gives.
    pub pointer: Value,
    /// The type of an element.
    pub dtype: DType,
    /// The extents.
    pub shape: Shape,
    /// The record in [`Scratch`].
    pub id: usize,
}

/// From when to when a buffer holds something.
#[derive(Clone, Debug)]
struct Lifetime {
    alloc: Inst,
    bytes: u64,
    first: u32,
    last: u32,
}

/// All buffers of a function, with a clock that ticks once for each statement lowered.
#[derive(Clone, Debug, Default)]
pub(super) struct Scratch {
    lifetimes: Vec<Lifetime>,
    clock: u32,
}

impl Scratch {
    /// Starts the next statement; returns its time.
    pub(super) fn tick(&mut self) -> u32 {
        self.clock += 1;
        self.clock
    }

    /// Records a buffer that is written now.
    pub(super) fn add(&mut self, alloc: Inst, bytes: u64) -> usize {
        self.lifetimes.push(Lifetime {
            alloc,
            bytes,
            first: self.clock,
            last: self.clock,
        });
        self.lifetimes.len() - 1
    }

    /// Notes that a buffer is read or written now.
    pub(super) fn touch(&mut self, id: usize) {
        self.lifetimes[id].last = self.clock;
    }

    /// Ends a loop that began at time `start`: what existed before and was used in it lives until
    /// now, for the next iteration uses it again.
    pub(super) fn end_loop(&mut self, start: u32) {
        let now = self.tick();
        for lifetime in &mut self.lifetimes {
            if lifetime.first <= start && lifetime.last >= start {
                lifetime.last = now;
            }
        }
    }

    /// Gives each buffer its bytes: the lowest that no buffer alive at the same time has, from the start of
    /// a line on.
    pub(super) fn place(&self, func: &mut Func, line_bytes: u32) {
        let mut placed: Vec<(u64, &Lifetime)> = Vec::new();
        for lifetime in &self.lifetimes {
            // Later buffers begin later.
            placed.retain(|(_, other)| lifetime.first <= other.last);
            let mut taken: Vec<(u64, u64)> = placed
                .iter()
                .map(|(offset, other)| (*offset, offset + other.bytes))
                .collect();
            taken.sort_unstable();
            let mut offset = 0;
            for (start, end) in taken {
                if offset + lifetime.bytes <= start {
                    break;
                }
                offset = offset.max(end.next_multiple_of(line_bytes.into()));
            }
            if let Op::Alloc(op::Alloc { offset: slot, .. }) = &mut func.inst_mut(lifetime.alloc).op
            {
                *slot = offset as i64;
            }
            placed.push((offset, lifetime));
        }
    }

    /// The instructions that make the buffers.
    pub(super) fn allocs(&self) -> impl Iterator<Item = Inst> {
        self.lifetimes.iter().map(|lifetime| lifetime.alloc)
    }
}
