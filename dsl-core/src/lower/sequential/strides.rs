//! Steps of offsets along axes, and what they say of a store that reads what it overwrites.

use std::collections::BTreeMap;

use super::plan::{Planner, Use};
use crate::ir::numbers::filling;
use crate::ir::{BinaryOp, DType, Inst, Op, Value, op};
use crate::passes::long_sums::LONGEST_CHAIN;

/// The steps that were found, or that there are none.
type Known = BTreeMap<Value, Option<Vec<i64>>>;

impl Planner<'_> {
    /// Whether a store writes each element only where that same element was read.
    pub(super) fn is_in_place(&self, used: &Use, store: Inst, offsets: Value) -> bool {
        let Op::Store(op::Store {
            offsets: written, ..
        }) = self.func.op(store)
        else {
            return false;
        };
        if !used.same_place || *written != offsets {
            return false;
        }
        let Some(strides) = self.strides(offsets, &mut Known::new()) else {
            return false;
        };
        let shape = self.func.ty(offsets).shape;
        let mut axes: Vec<(u128, usize)> = strides
            .iter()
            .enumerate()
            .map(|(axis, stride)| (u128::from(stride.unsigned_abs()), shape.extent(axis)))
            .filter(|&(_, extent)| extent > 1)
            .collect();
        axes.sort_unstable();
        let mut span = 0u128;
        axes.into_iter().all(|(stride, extent)| {
            let apart = stride > span;
            span += stride * (extent as u128 - 1);
            apart && span < 1 << 62
        })
    }

    /// The constant step of an `i64` tile along each axis; nothing where that takes long to find out.
    fn strides(&self, value: Value, known: &mut Known) -> Option<Vec<i64>> {
        if let Some(strides) = known.get(&value) {
            return strides.clone();
        }
        if known.len() > LONGEST_CHAIN as usize {
            return None;
        }
        known.insert(value, None);
        let strides = self.strides_from(value, known);
        known.insert(value, strides.clone());
        strides
    }

    fn strides_from(&self, value: Value, known: &mut Known) -> Option<Vec<i64>> {
        let shape = self.func.ty(value).shape;
        let inst = self.definitions[value]?;
        let op = self.func.op(inst);
        if matches!(op, Op::Constant(_) | Op::Splat(_)) {
            return Some(vec![0; shape.rank()]);
        }
        if let Op::Arange(_) = op {
            return Some(vec![1]);
        }
        if let Some((x, map)) = self.func.view(inst) {
            let strides = self.strides(x, known)?;
            return map.steps(&strides, &0, |stride, by| stride.checked_mul(by));
        }
        let Op::Binary(op::Binary { op, lhs, rhs }) = op else {
            return None;
        };
        if self.func.ty(value).dtype() != Some(DType::I64) {
            return None;
        }
        let combine: fn(i64, i64) -> Option<i64> = if *op == BinaryOp::Add {
            i64::checked_add
        } else if *op == BinaryOp::Sub {
            i64::checked_sub
        } else {
            return self.scaled_strides(*op, (*lhs, *rhs), known);
        };
        let (lhs, rhs) = (self.strides(*lhs, known)?, self.strides(*rhs, known)?);
        lhs.into_iter()
            .zip(rhs)
            .map(|(a, b)| combine(a, b))
            .collect()
    }

    fn scaled_strides(
        &self,
        op: BinaryOp,
        (lhs, rhs): (Value, Value),
        known: &mut Known,
    ) -> Option<Vec<i64>> {
        let definition = |value: Value| self.definitions[value].map(|inst| self.func.op(inst));
        let constant = |value: Value| filling(value, definition).map(|literal| literal.bits as i64);
        if op != BinaryOp::Mul {
            return None;
        }
        let (tile, by) = match (constant(lhs), constant(rhs)) {
            (_, Some(by)) => (lhs, by),
            (Some(by), None) => (rhs, by),
            (None, None) => return None,
        };
        let strides = self.strides(tile, known)?;
        strides
            .into_iter()
            .map(|stride| stride.checked_mul(by))
            .collect()
    }
}
