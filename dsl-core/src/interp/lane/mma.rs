//! Steps of the tensor cores: a warp gives its fragments and gets its part of the result.

use super::runner::Runner;
use crate::interp::Fault;
use crate::interp::elements::{Elements, dtype};
use crate::interp::mask::Mask;
use crate::ir::operand::{Side, tensor_sum};
use crate::ir::{Inst, Value, op};
use crate::semantics::dot::Factors;

/// The rows of a fragment and its products.
const ROWS: usize = 16;

/// The columns of a fragment.
const COLUMNS: usize = 8;

/// Columns of the accumulator that a lane has side by side.
const SUMS: usize = 2;

impl Runner<'_, '_> {
    pub(super) fn mma(&self, inst: Inst, op: &op::Mma, mask: Mask) -> Result<Elements, Fault> {
        self.converged(inst, mask)?;
        let lanes = self.warp.lanes;
        let [operand, sum] = [op.a, op.accumulator].map(|value| dtype(self.machine.func, value));
        // Elements that lie side by side in a word.
        let packed = (4 / operand.bytes() as usize).max(1);
        let held = |value: Value, (element, lane): (usize, usize)| {
            self.warp.values[value].get(element * lanes + lane)
        };
        let products = 2 * self.machine.func.ty(op.a).shape.elements();
        let rows = (0..ROWS * products).map(|at| (at / products, at % products));
        let columns = (0..COLUMNS * products).map(|at| (at / products, at % products));
        let left = rows.map(|(row, k)| held(op.a, place(row, k, (packed, 2))));
        let right = columns.map(|(column, k)| held(op.b, place(column, k, (packed, 1))));
        let factors = [left.collect(), right.collect()];
        let factors = Factors::of([operand, sum], op.precision, factors);
        let mut result = vec![0; 4 * lanes];
        for at in 0..ROWS * COLUMNS {
            let (row, column) = (at / COLUMNS, at % COLUMNS);
            let (element, lane) = place(row, column, (SUMS, 2));
            let before = held(op.accumulator, (element, lane));
            let pairs = (0..products).map(|k| (row * products + k, column * products + k));
            result[element * lanes + lane] = factors.step(pairs, before);
        }
        Ok(Elements::new(result))
    }
}

/// The rows that a warp of four has of 64.
const OWN_ROWS: usize = 16;

impl Runner<'_, '_> {
    /// The rows of this warp. Lanes read nothing: the tensor core does, until the warp has waited.
    pub(super) fn group_mma(
        &mut self,
        inst: Inst,
        op: &op::GroupMma,
        mask: Mask,
    ) -> Result<Elements, Fault> {
        self.converged(inst, mask)?;
        let (lanes, columns, products) =
            (self.warp.lanes, op.columns as usize, op.products as usize);
        let held = self.machine.func.ty(op.accumulator).shape.elements();
        let blocks = held * 2 / columns;
        let first = self.warp.index % 4 * OWN_ROWS;
        let dtype = self.machine.func.ty(op.b).pointee().map(|(dtype, _)| dtype);
        let dtype = dtype.expect("broken invariant: an operand is in memory");
        let [a, b] = [0, 1].map(|side| Side {
            transposed: op.transposed[side] == 1,
            chunk: op.chunks[side] as usize,
            dtype,
        });
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for k in 0..products {
            let rows =
                (0..blocks * OWN_ROWS).map(|row| row / OWN_ROWS * 64 + first + row % OWN_ROWS);
            ours.extend(rows.map(|row| a.place(row, k) as i64));
            theirs.extend((0..columns).map(|column| b.place(column, k) as i64));
        }
        let in_memory = op.a_offset.map(|offset| ((op.a, offset), &ours[..]));
        let operands = [((op.b, op.b_offset), &theirs[..])]
            .into_iter()
            .chain(in_memory);
        let read = self.read_operands(inst, operands);
        let mut read = read.map_err(|kind| self.fault(inst, kind))?.into_iter();
        let right = read.next().unwrap_or_default();
        let left = read.next().unwrap_or_else(|| {
            let all = (0..products).flat_map(|k| (0..blocks * OWN_ROWS).map(move |row| (row, k)));
            let held = all.map(|(row, k)| {
                let (register, lane) = held_at((row, k), products, 4 / dtype.bytes() as usize);
                self.warp.values[op.a].get(register * lanes + lane)
            });
            held.collect()
        });
        let factors = Factors::of([dtype, tensor_sum(dtype)], op.precision, [left, right]);
        let count = op.precision.step(dtype);
        let mut result = vec![0; held * lanes];
        for at in 0..blocks * OWN_ROWS * columns {
            let (row, column) = (at / columns, at % columns);
            let (register, lane) = held_at((row, column), columns, SUMS);
            let place = register * lanes + lane;
            let mut sum = self.warp.values[op.accumulator].get(place);
            for first in (0..products).step_by(count) {
                let pair = |k| (k * blocks * OWN_ROWS + row, k * columns + column);
                sum = factors.step((first..first + count).map(pair), sum);
            }
            result[place] = sum;
        }
        Ok(Elements::new(result))
    }
}

/// The register and the lane that hold a row, of 16 for each 64 of the block, and a column, of which a lane has `beside`
/// side by side.
fn held_at((row, column): (usize, usize), columns: usize, beside: usize) -> (usize, usize) {
    let (block, row) = (row / OWN_ROWS, row % OWN_ROWS);
    let (lanes, of_lanes) = (column % beside, 4 * beside);
    let register = lanes + (row / 8 + column / of_lanes * 2) * beside + block * columns / 2;
    (register, row % 8 * 4 + column % of_lanes / beside)
}

/// The element and the lane that hold what is at `major` (rows of `a` and of the accumulator, columns of
/// `b`) and `minor`, of which a lane has `packed` side by side; `halves` of 8 majors.
fn place(major: usize, minor: usize, (packed, halves): (usize, usize)) -> (usize, usize) {
    let of_four = 4 * packed;
    let element = minor % packed + (major / 8 + minor / of_four * halves) * packed;
    (element, major % 8 * 4 + minor % of_four / packed)
}
