//! Buffers in shared memory, and those in which pipelines keep what lanes have copied.

use std::collections::BTreeMap;

use super::registers::Registers;
use super::{Lowering, Result};
use crate::ir::{BinaryOp, DType, Inst, Op, Space, Type, Value, op};
use crate::layout::{LinearLayout, ThreadMap};
use crate::target::{LANE_BITS, WARP_LANES};

/// What pipelines have in shared memory.
#[derive(Debug)]
pub(super) struct Buffers {
    /// The most stages of a loop.
    pub(super) most: i64,
    /// The buffers of loops inside loops, which begin before the outermost: every byte belongs to one
    /// lane, so that nobody waits between iterations.
    pub(super) rings: Vec<Inst>,
    /// Where the loads of the current loop read.
    pub(super) staged: BTreeMap<Inst, Staged>,
}

impl Buffers {
    pub(super) fn new(most: i64) -> Self {
        Self {
            most,
            rings: Vec::new(),
            staged: BTreeMap::new(),
        }
    }
}

/// Where a lane finds what it copied for the current iteration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Staged {
    pub(super) base: Value,
    /// The first element of the lane (`i64`).
    pub(super) offset: Value,
    pub(super) place: Place,
}

/// The shape of the buffers of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    dtype: DType,
    /// Elements of one copy.
    pub(super) width: i64,
    /// Copies of a lane.
    copies: i64,
    /// Lanes of the thread block.
    threads: i64,
}

impl Place {
    /// Elements from one copy of a lane to its next.
    pub(super) fn step(self) -> i64 {
        self.width * self.threads
    }

    /// Elements of the buffer of one stage.
    fn elements(self) -> i64 {
        self.step() * self.copies
    }
}

impl Lowering<'_> {
    /// The shape of the buffers of a load; `None` where its accesses are too narrow for copies.
    pub(super) fn copy_place(&self, load: Inst) -> Option<Place> {
        let tile = self.block.op(load).access()?;
        let result = self.block.inst(load).results[0];
        let (dtype, _) = self.block.ty(tile.base).pointee()?;
        if self.block.ty(result).is_scalar() {
            return None;
        }
        let vectors = self.copied_vectors(&tile, &self.layout(result));
        let width = vectors.first()?.len() as i64;
        let place = Place {
            dtype,
            width,
            copies: vectors.len() as i64,
            threads: i64::from(WARP_LANES << self.warp_bits),
        };
        let sizes = self.target.gpu.copy_bytes;
        sizes
            .contains(&(width * i64::from(dtype.bytes())))
            .then_some(place)
    }

    /// A new buffer of `stages` times what a load copies.
    pub(super) fn ring(&mut self, place: Place, stages: i64) -> Value {
        let count = place.elements() * stages;
        if self.depth == 0 {
            return self.shared(place.dtype, count);
        }
        let op = Op::Alloc(op::Alloc { offset: 0, count });
        let ty = Type::pointer(place.dtype, Space::Shared);
        let loc = self.builder.loc().clone();
        let inst = self.builder.func_mut().add_inst(op, &[ty], loc);
        self.buffers.rings.push(inst);
        self.builder.results(inst)[0]
    }

    /// A buffer in shared memory that begins here. [`crate::passes::allocate`] gives it its bytes.
    pub(super) fn shared(&mut self, dtype: DType, count: i64) -> Value {
        let op = Op::Alloc(op::Alloc { offset: 0, count });
        let ty = Type::pointer(dtype, Space::Shared);
        self.builder.declared(op, ty)
    }

    /// The first element of this lane in the buffer of a stage.
    pub(super) fn lane_start(&mut self, place: Place, slot: Value) -> Value {
        let width = place.width as u32;
        let map = ThreadMap {
            lane: (0..LANE_BITS).map(|bit| width << bit).collect(),
            warp: (0..self.warp_bits)
                .map(|bit| width << (LANE_BITS + bit))
                .collect(),
        };
        let own = self.thread_value(&map);
        let elements = self.builder.int32(place.elements() as i32);
        let start = self.builder.binary(BinaryOp::Mul, slot, elements);
        let sum = self.builder.binary(BinaryOp::Add, start, own);
        self.builder.cast(sum, DType::I64)
    }

    /// Where the copies of a lane lie, from the first element of the lane on.
    pub(super) fn copy_offsets(&mut self, place: Place, start: Value, copies: usize) -> Value {
        let steps: Vec<u32> = (0..copies as u32)
            .map(|number| number * place.step() as u32)
            .collect();
        let start = self.repeated(start, copies);
        let steps = self.literals(DType::I64, &steps);
        self.builder.add(start, steps)
    }

    /// Where the copies of a load are, in a loop that runs ahead.
    pub(super) fn staged(&self, load: Inst) -> Option<Staged> {
        self.buffers.staged.get(&load).copied()
    }

    /// Reads back what a lane has copied. Masked elements are zero, which becomes `other`.
    pub(super) fn load_staged(
        &mut self,
        load: Inst,
        staged: Staged,
        layout: &LinearLayout,
        other: Option<(Registers, Registers)>,
    ) -> Result<()> {
        let Staged {
            base,
            offset,
            place,
        } = staged;
        let result = self.block.inst(load).results[0];
        let tile = self
            .block
            .op(load)
            .access()
            .ok_or_else(|| self.error("only loads can run ahead"))?;
        let vectors = self.copied_vectors(&tile, layout);
        let op = Op::LaneLoad(op::LaneLoad {
            base,
            offset: self.copy_offsets(place, offset, vectors.len()),
            mask: None,
            other: None,
            align: place.width * i64::from(place.dtype.bytes()),
        });
        let all = vectors.concat();
        let loaded = self
            .builder
            .declared(op, Type::vector(place.dtype, all.len()));
        let mut places = vec![0; all.len()];
        for (&register, at) in all.iter().zip(0..) {
            places[register as usize] = at;
        }
        let mut registers = Registers::new(loaded, places);
        if let Some((mask, other)) = &other {
            registers = self.map(&[mask, &registers, other], |builder, values| {
                builder.select(values[0], values[1], values[2])
            });
        }
        self.bind(result, registers);
        Ok(())
    }
}
