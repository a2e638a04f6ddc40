//! Counts: one increment in shared memory for each element, a spare counter for those outside.
//!
//! The increments are unconditional and by one, so that the hardware adds equal bins of a warp up.
//! Counters have copies, which lanes take in turns: with a copy for each lane no two lanes want one
//! bank. They cost clearing and adding up, which counters that stay in place over a loop
//! ([`super::resident`]) pay once.

use std::rc::Rc;

use super::registers::{Registers, owners};
use super::{Lowering, Result};
use crate::ir::{AtomicOp, BinaryOp, Class, CompareOp, DType, Literal, Op, Shape, Type, Value, op};
use crate::layout::{LinearLayout, ThreadMap};
use crate::schedule::room::{COUNTER, Copies};
use crate::target::{LANE_BITS, WARP_LANES};

/// Counters in shared memory: those of a bin lie side by side, bin by bin, the spare ones last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counters {
    base: Value,
    copies: Copies,
}

/// The elements of a histogram.
struct Numbers {
    dtype: DType,
    registers: Registers,
    masks: Option<Registers>,
    layout: Rc<LinearLayout>,
}

impl Lowering<'_> {
    /// How many counters one access moves.
    fn counters_of_access(&self) -> i64 {
        i64::from(self.target.vector_bytes) / COUNTER
    }

    fn counters(&mut self, copies: Copies) -> Counters {
        Counters {
            base: self.shared(DType::I32, copies.counters(self.target)),
            copies,
        }
    }

    pub(super) fn histogram(&mut self, result: Value, op: &op::Histogram) -> Result<()> {
        let block = self.block;
        let op::Histogram { x, mask, bins } = *op;
        let numbers = self.numbers(x, mask)?;
        if let Some(root) = self.residents.root(result) {
            let counters = self.counters[&root];
            self.increment(&counters, &numbers);
            return Ok(());
        }
        let elements = block.ty(x).shape.elements() as i64;
        let counters = self.counters(Copies::of_tile(bins, elements, self.target));
        self.clear(&counters);
        self.barrier();
        self.increment(&counters, &numbers);
        self.barrier();
        self.counted(&counters, result, None)
    }

    /// Begins the counters that stay in place while a loop runs, all zero.
    pub(super) fn begin_resident(&mut self, root: Value) {
        let bins = self.block.ty(root).shape.elements() as i64;
        let counters = self.counters(Copies::new(bins, i64::MAX, self.target));
        self.clear(&counters);
        self.barrier();
        self.counters.insert(root, counters);
    }

    /// After the loop: the counts added to what was carried in, as the loop's result.
    pub(super) fn end_resident(&mut self, root: Value, init: Value, result: Value) -> Result<()> {
        self.barrier();
        let counters = self.counters[&root];
        self.counted(&counters, result, Some(init))
    }

    /// Sets all counters to zero, the lanes of the block taking vectors in turns.
    fn clear(&mut self, counters: &Counters) {
        let vector = self.counters_of_access();
        let warp_bits = self.warp_bits;
        let thread = ThreadMap {
            lane: (0..LANE_BITS)
                .map(|bit| vector as u32 * (1 << bit))
                .collect(),
            warp: (0..warp_bits)
                .map(|bit| vector as u32 * (WARP_LANES << bit))
                .collect(),
        };
        let shape = Shape::new(&[vector as usize]).expect("broken invariant: a power of two");
        let value = self
            .builder
            .filled(Literal::from_bits(DType::I32, 0), shape);
        let step = vector * i64::from(WARP_LANES << warp_bits);
        let count = counters.copies.counters(self.target);
        for first in (0..count).step_by(step as usize) {
            let offset = self.thread_offset(&thread, first as u32);
            let mask = (first + step > count).then(|| {
                let limit = self.builder.index(count);
                self.builder.compare(CompareOp::Lt, offset, limit)
            });
            let op = Op::LaneStore(op::LaneStore {
                base: counters.base,
                offset,
                value,
                mask,
                align: 16,
                cache: None,
            });
            self.builder.emit(op, &[]);
        }
    }

    /// The elements to count, where they are.
    fn numbers(&mut self, x: Value, mask: Option<Value>) -> Result<Numbers> {
        Ok(Numbers {
            dtype: self.dtype(x)?,
            registers: self.get(x),
            masks: mask.map(|mask| self.get(mask)),
            layout: self.layout(x),
        })
    }

    /// One increment for each element, by the owner of its copies; the others count as outside.
    fn increment(&mut self, counters: &Counters, numbers: &Numbers) {
        let layout = &numbers.layout;
        let registers = owners(layout);
        let owner = self.all_zero(layout.free_bits());
        let masks = numbers.masks.as_ref();
        let mask = masks.map(|masks| self.pick(masks, &registers));
        let mask = self.owned_mask(mask, owner, registers.len());
        let number = self.pick(&numbers.registers, &registers);
        let mut offset = self.bin(counters, number, numbers.dtype, mask);
        if counters.copies.bits > 0 {
            let amount = u64::from(counters.copies.bits);
            let amount = self.builder.bits_like(offset, DType::I32, amount);
            offset = self.builder.shl(offset, amount);
            let copy = self.copy_of_lane(counters.copies.bits);
            let copy = self.repeated(copy, registers.len());
            offset = self.builder.or(offset, copy);
        }
        let op = Op::LaneAtomic(op::LaneAtomic {
            base: counters.base,
            offset,
            value: self.builder.bits_like(offset, DType::I32, 1),
            mask: None,
            op: AtomicOp::Add,
            order: None,
            scope: None,
        });
        self.builder.emit(op, &[]);
    }

    /// The copy that a lane counts in.
    fn copy_of_lane(&mut self, copy_bits: u32) -> Value {
        let bit = |bit: u32| if bit < copy_bits { 1 << bit } else { 0 };
        let map = ThreadMap {
            lane: (0..LANE_BITS).map(bit).collect(),
            warp: vec![0; self.warp_bits as usize],
        };
        self.thread_value(&map)
    }

    /// The bins of numbers (`i32`), the spare one where it is outside or masked off. Compared as
    /// unsigned numbers, so that negative ones are large.
    fn bin(&mut self, counters: &Counters, x: Value, dtype: DType, mask: Option<Value>) -> Value {
        let (signed, unsigned) = match dtype.bits() {
            64 => (DType::I64, DType::U64),
            _ => (DType::I32, DType::U32),
        };
        let x = self.builder.cast(x, signed);
        let mut bin = self.builder.bitcast(x, unsigned);
        let spare = self
            .builder
            .bits_like(x, unsigned, counters.copies.bins as u64);
        let always = dtype.class() == Class::Unsigned
            && u128::from(dtype.mask()) < counters.copies.bins as u128;
        if !always {
            bin = self.builder.binary(BinaryOp::Minimum, bin, spare);
        }
        if let Some(mask) = mask {
            bin = self.builder.select(mask, bin, spare);
        }
        self.builder.cast(bin, DType::I32)
    }

    /// Binds `result` to the sums of the copies of every counter, and of `init`.
    fn counted(&mut self, counters: &Counters, result: Value, init: Option<Value>) -> Result<()> {
        let layout = self.layout(result);
        let init = init.map(|init| self.get(init));
        let places = self.indices(&layout, (1 << layout.tile_bits()) - 1);
        let places = self.distinct(&places, &layout);
        let amount = u64::from(counters.copies.bits);
        let amount = self.builder.bits_like(places, DType::I64, amount);
        let first = self.builder.shl(places, amount);
        let width = (1_u32 << counters.copies.bits).min(self.counters_of_access() as u32);
        let count = self.builder.ty(places).shape.elements() as u32;
        let mut sum = init.map(|init| self.distinct(&init, &layout));
        for copy in (0..1_u64 << counters.copies.bits).step_by(width as usize) {
            let distance = self.builder.bits_like(first, DType::I64, copy);
            let op = Op::LaneLoad(op::LaneLoad {
                base: counters.base,
                offset: self.builder.add(first, distance),
                mask: None,
                other: None,
                align: 4 * i64::from(width),
                cache: None,
            });
            let ty = Type::vector(DType::I32, (count * width) as usize);
            let loaded = self.builder.declared(op, ty);
            for part in 0..width {
                let own: Vec<u32> = (0..count).map(|at| at * width + part).collect();
                let own = self.elements(loaded, &own);
                sum = Some(match sum {
                    Some(sum) => self.builder.add(sum, own),
                    None => own,
                });
            }
        }
        let sum = sum.expect("broken invariant: a counter has a copy");
        let registers = Registers::of(sum, &layout);
        self.bind(result, registers);
        Ok(())
    }
}
