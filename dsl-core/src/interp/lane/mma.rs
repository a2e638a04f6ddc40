//! Steps of the tensor cores: a warp gives its fragments and gets its part of the result.

use super::runner::Runner;
use crate::interp::Fault;
use crate::interp::elements::{Elements, dtype};
use crate::interp::mask::Mask;
use crate::ir::{Inst, Value, op};
use crate::semantics::mma;

/// The rows of a fragment and its products.
const ROWS: usize = 16;

/// The columns of a fragment.
const COLUMNS: usize = 8;

impl Runner<'_, '_> {
    pub(super) fn mma(&self, inst: Inst, op: &op::Mma, mask: Mask) -> Result<Elements, Fault> {
        self.converged(inst, mask)?;
        let lanes = self.warp.lanes;
        let dtype = dtype(self.machine.func, op.a);
        let held = |value: Value, (element, lane): (usize, usize)| {
            self.warp.values[value].get(element * lanes + lane)
        };
        let mut result = vec![0; 4 * lanes];
        for at in 0..ROWS * COLUMNS {
            let (row, column) = (at / COLUMNS, at % COLUMNS);
            let pair = |k| {
                let right = place(column, k, false);
                (held(op.a, place(row, k, true)), held(op.b, right))
            };
            let (element, lane) = place(row, column, true);
            let before = held(op.accumulator, (element, lane));
            result[element * lanes + lane] =
                mma::step(dtype, (0..op.precision.step()).map(pair), before);
        }
        Ok(Elements::new(result))
    }
}

/// The element and the lane that hold what is at `major` (rows of `a` and of the accumulator, columns of
/// `b`) and `minor`. Only rows go on beyond the eighth.
fn place(major: usize, minor: usize, rows: bool) -> (usize, usize) {
    let low = 1 + usize::from(rows);
    let element = minor % 2 + (major / 8) * 2 + ((minor / 8) << low);
    (element, major % 8 * 4 + minor % 8 / 2)
}
