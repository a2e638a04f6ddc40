//! Bounds checks of programs at an edge, whose masks end axes before a tile does: what is left of the tile begins with it, so that
//! scalars know its last element.

use std::collections::BTreeMap;

use super::point::Known;
use super::{Lowering, Result};
use crate::ir::{CompareOp, MemoryAccess, Op, Value, op};
use crate::passes::linear::Linear;
use crate::passes::mask_axes::MaskAxes;

impl Lowering<'_> {
    /// Whether scalars show the elements of a tile that a mask lets through to be in bounds: the first element of the tile is, and so is
    /// the last one that the ends of all axes leave, where each axis keeps one index at least. `None` where the
    /// mask ends no axis, or offsets decrease along one.
    pub(super) fn inside_below(&mut self, tile: &MemoryAccess) -> Result<Option<Value>> {
        let steps = self.indices.fact(tile.offsets).steps();
        let steps = steps.filter(|_| self.reach(tile.offsets).is_some());
        let Some((mask, steps)) = tile.mask.zip(steps) else {
            return Ok(None);
        };
        let steps: Vec<Linear> = steps.into_iter().cloned().collect();
        let goes_on = |step: &Linear| {
            let factor = step
                .constant()
                .or(step.multiple().map(|(_, factor)| factor));
            factor.is_some_and(|it| it >= 0)
        };
        if !steps.iter().all(goes_on) {
            return Ok(None);
        }
        let ends = self.mask_ends(mask)?;
        if ends.is_empty() {
            return Ok(None);
        }
        let shape = self.block.ty(tile.offsets).shape;
        let origin = vec![self.builder.index(0); shape.rank()];
        let first = self.element_at(tile.offsets, &origin, &mut Known::new())?;
        let (mut last, mut inside) = (first, self.is_at(tile.base, first));
        for (axis, step) in steps.iter().enumerate() {
            let most = self.builder.index(shape.extent(axis) as i64 - 1);
            let index = ends.get(&axis).copied().unwrap_or(most);
            let factor = match step.multiple() {
                Some((scalar, factor)) => {
                    let scalar = self.scalar(scalar);
                    let short = self.is_short(scalar);
                    inside = self.builder.and(inside, short);
                    let factor = self.builder.index(factor);
                    self.builder.mul(scalar, factor)
                }
                None => self.builder.index(step.constant().unwrap_or_default()),
            };
            let distance = self.builder.mul(index, factor);
            last = self.builder.add(last, distance);
        }
        let is_last = self.is_at(tile.base, last);
        Ok(Some(self.builder.and(inside, is_last)))
    }

    fn is_at(&mut self, base: Value, offset: Value) -> Value {
        let base = self.scalar(base);
        self.builder.value(Op::InBounds(op::InBounds {
            base,
            offset,
            count: 1,
        }))
    }

    /// The last index of each axis that a mask ends, from 0 to the last of the tile: it compares numbers that go on by one from
    /// a number which is not negative, so that none wraps.
    fn mask_ends(&mut self, mask: Value) -> Result<BTreeMap<usize, Value>> {
        let shape = self.block.ty(mask).shape;
        let masks = MaskAxes {
            func: self.block,
            definitions: &self.definitions,
            indices: &self.indices,
        };
        let mut compared = Vec::new();
        for (leaf, bits) in masks.leaves(mask, &shape) {
            let op = self.definitions[leaf].map(|inst| self.block.op(inst));
            let Some(&Op::Compare(op::Compare { op, lhs, rhs })) = op else {
                continue;
            };
            let (index, end) = match op {
                CompareOp::Lt => (lhs, rhs),
                CompareOp::Gt => (rhs, lhs),
                CompareOp::Le | CompareOp::Ge | CompareOp::Eq | CompareOp::Ne => continue,
            };
            let range = self.indices.fact(index).range;
            let counts = range.is_some_and(|it| it.low >= 0) && self.is_ready(index);
            let axis = masks.axis_of(index, &bits, &shape).filter(|_| counts);
            compared.extend(axis.map(|axis| (axis, index, end)));
        }
        let mut ends = BTreeMap::new();
        for (axis, index, end) in compared {
            let Some(end) = self.one_number(end) else {
                continue;
            };
            let origin = vec![self.builder.index(0); self.block.ty(index).shape.rank()];
            let first = self.element_at(index, &origin, &mut Known::new())?;
            let count = self.builder.sub(end, first);
            let [one, none, most] =
                [1, 0, shape.extent(axis) as i64 - 1].map(|it| self.builder.index(it));
            let last = self.builder.sub(count, one);
            let last = self.builder.minimum(last, most);
            let last = self.builder.maximum(last, none);
            let before = ends.get(&axis).copied();
            let last = before.map_or(last, |before| self.builder.minimum(before, last));
            ends.insert(axis, last);
        }
        Ok(ends)
    }

    /// The number that all elements of a tile are, as a scalar.
    fn one_number(&mut self, tile: Value) -> Option<Value> {
        let op = self.block.op(self.definitions[tile]?);
        if let Op::Constant(op::Constant { value }) = op {
            let number = i64::try_from(value.integer()?).ok()?;
            return Some(self.builder.index(number));
        }
        let Op::Splat(op::Splat { x }) = *op else {
            return None;
        };
        self.is_bound(x).then(|| self.scalar(x))
    }
}
