//! `dot` by tensor cores: each warp multiplies the fragments that it holds in registers, or each group of four its
//! part of what is in shared memory.

use super::registers::Registers;
use super::{Lowering, Result};
use crate::ir::index_map::dim_offset;
use crate::ir::operand::chunk_bits;
use crate::ir::{DType, Op, Precision, Value, op};
use crate::layout::fragment::Fragments;
use crate::layout::group::{Side, inner_axis};
use crate::layout::{LinearLayout, Span, ThreadMap};
use crate::schedule::{groups_of, product_fragments};

/// An operand that lanes hold lies in no chunks.
const HELD: Side = Side {
    transposed: false,
    chunk: 0,
    dtype: DType::F16,
};

impl Lowering<'_> {
    pub(super) fn tensor_dot(&mut self, result: Value, op: &op::Dot) -> Result<()> {
        self.check_precision(op.precision)?;
        let layout = self.layout(result);
        let found = product_fragments(self.block, op, layout.warp_bits());
        let places = [op.a, op.b, op.accumulator].map(|value| self.layout(value));
        if places
            .iter()
            .zip(&found.layouts)
            .any(|(place, asked)| **place != *asked)
        {
            return Err(self.error("broken invariant: the tiles of `dot` are not in fragments"));
        }
        let [a, b, accumulator] = [op.a, op.b, op.accumulator].map(|value| self.get(value));
        let sums = self.chains(&found, op, [&a, &b, &accumulator])?;
        let places: Vec<u32> = (0..layout.registers()).collect();
        let registers = Registers::new(self.joined(&sums), places);
        self.bind(result, registers);
        Ok(())
    }

    /// The accumulator's fragments after all steps.
    fn chains(
        &mut self,
        found: &Fragments,
        op: &op::Dot,
        [a, b, accumulator]: [&Registers; 3],
    ) -> Result<Vec<Value>> {
        let [of_a, of_b, of_sum] = found.held;
        let mut sums = Vec::new();
        for (fragment, operands) in (0..).zip(&found.operands) {
            let mut sum = self.fragment(accumulator, fragment, of_sum);
            for step in 0..1 << found.step_bits {
                sum = {
                    let a = self.fragment(a, operands[0] + step, of_a);
                    let b = self.fragment(b, operands[1] + step, of_b);
                    self.builder.value(Op::Mma(op::Mma {
                        a,
                        b,
                        accumulator: sum,
                        precision: op.precision,
                    }))
                };
            }
            sums.push(sum);
        }
        Ok(sums)
    }

    /// Each group of warps multiplies what is in shared memory for its part of the result.
    pub(super) fn dot_slots(&mut self, result: Value, op: &op::DotSlots) -> Result<()> {
        self.check_precision(op.precision)?;
        let layout = self.layout(result);
        let found = groups_of(self.block, op).filter(|found| found.layout == *layout);
        let found = found.expect("broken invariant: groups of warps have the sums of `dot_slots`");
        let products = self.block.ty(op.a).shape.extent(1) as i64;
        let (a, a_offset, a_side) = match op.a_slot {
            Some(slot) => {
                let (base, first, side) = self.side(&found.layout, (op.a, slot, 0));
                (base, Some(first), side)
            }
            None => (self.all_of(op.a), None, HELD),
        };
        let (b, b_offset, b_side) = self.side(&found.layout, (op.b, op.b_slot, 1));
        let accumulator = self.all_of(op.accumulator);
        let transposed = [a_side, b_side].map(|side| u32::from(side.transposed));
        let sums = self.builder.value(Op::GroupMma(op::GroupMma {
            a,
            a_offset,
            b,
            b_offset,
            accumulator,
            columns: 1 << found.column_bits,
            products,
            transposed: transposed.to_vec(),
            chunks: [a_side, b_side].map(|side| side.chunk as u32).to_vec(),
            precision: op.precision,
        }));
        self.bind(result, Registers::of(sums, &layout));
        Ok(())
    }

    /// The memory of an operand, where a group's part of it begins, and how it lies; `axis` is that of the
    /// result along which groups have parts of their own.
    fn side(
        &mut self,
        result: &LinearLayout,
        (buffer, slot, axis): (Value, Value, usize),
    ) -> (Value, Value, Side) {
        let (layout, base) = (self.layout(buffer), self.scalar(buffer));
        let (dtype, _) = self.of_buffer(buffer);
        let inner = inner_axis(&layout, dtype);
        let inner = inner.expect("broken invariant: an operand of `dot_slots` lies in chunks");
        let side = Side {
            transposed: inner == axis,
            chunk: 1 << (chunk_bits(dtype) + layout.dim_bits()[1 - inner]),
            dtype,
        };
        // Parts are so large that no pieces of 16 bytes are mixed between them.
        let span = Span::of(layout.register_columns());
        let place = |column: &u64| {
            let along = dim_offset(result.dim_bits(), axis);
            let index = column >> along & ((1 << result.dim_bits()[axis]) - 1);
            let own = index << dim_offset(layout.dim_bits(), axis);
            span.solve(own).map_or(0, |place| place as u32)
        };
        let mut warp: Vec<u32> = result.warp_columns().iter().map(place).collect();
        // The warps of a group begin where it does.
        warp.iter_mut().take(2).for_each(|place| *place = 0);
        let lane = vec![0; result.lane_columns().len()];
        let first = self.thread_value(&ThreadMap { lane, warp });
        let start = self.slot_start(buffer, slot);
        (base, self.builder.add(start, first), side)
    }

    pub(super) fn check_precision(&self, precision: Precision) -> Result<()> {
        let (word, name) = (precision.word(), self.target.name);
        if precision == Precision::Ieee || self.target.gpu.mma.contains(&precision) {
            return Ok(());
        }
        let message =
            format!("`{name}` has no tensor cores that compute `dot` with precision `{word}`");
        let note =
            "take precision `ieee`, `dot_with(Precision::Ieee, ..)`, which every machine computes";
        Err(self.error(message).note(note))
    }

    fn fragment(&mut self, registers: &Registers, number: u32, count: u32) -> Value {
        let chosen: Vec<u32> = (number * count..(number + 1) * count).collect();
        self.pick(registers, &chosen)
    }
}
