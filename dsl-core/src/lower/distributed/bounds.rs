//! Bounds checks of accesses: vector by vector, and before that the whole tile at once.

use super::affine::Step;
use super::memory::Access;
use super::{Lowering, Result};
use crate::ir::{Op, Type, Value};

impl Lowering<'_> {
    /// The mask of one vector: the tile's mask, the owner's condition, and the bounds check.
    pub(super) fn checked(
        &mut self,
        access: &Access,
        vector: &[u32],
        owner: Option<Value>,
    ) -> Option<Value> {
        let first = vector[0] as usize;
        let mut mask = access.masks.as_ref().map(|masks| masks[first]);
        if let Some(owner) = owner {
            mask = Some(self.both(mask, owner));
        }
        let Some((site, elements)) = &access.check else {
            return mask;
        };
        let op = Op::CheckBounds {
            base: access.base(),
            offset: access.offsets()[first],
            element: elements[first],
            mask,
            count: vector.len() as i64,
            site: *site,
        };
        Some(self.builder.value(op))
    }

    /// Whether a whole tile is in bounds: one comparison of scalars, so that all lanes branch alike.
    /// `None` where the offsets do not count up from a scalar, and where a mask may allow less.
    pub(super) fn inside(&mut self, access: &Access, offsets: Value) -> Result<Option<Value>> {
        if access.check.is_none() || access.masks.is_some() || self.block.ty(offsets).is_scalar() {
            return Ok(None);
        }
        let Some(count) = self.span(offsets) else {
            return Ok(None);
        };
        let Some(offset) = self.first_element(offsets)? else {
            return Ok(None);
        };
        let op = Op::InBounds {
            base: access.base(),
            offset,
            count,
        };
        Ok(Some(self.builder.value(op)))
    }

    /// From the first offset to beyond the last one, if the offsets only count up.
    fn span(&self, offsets: Value) -> Option<i64> {
        let shape = self.block.ty(offsets).shape;
        let steps = self.steps_of(offsets)?;
        let mut last = 0_i64;
        for (axis, step) in steps.into_iter().enumerate() {
            let Step::Known(step @ 0..) = step else {
                return None;
            };
            let reach = step.checked_mul(shape.extent(axis) as i64 - 1)?;
            last = last.checked_add(reach)?;
        }
        last.checked_add(1)
    }

    /// Element 0 of a tile of indices as a scalar. Conversions are not followed: what they convert
    /// may wrap.
    fn first_element(&mut self, tile: Value) -> Result<Option<Value>> {
        if self.block.ty(tile).is_scalar() {
            return self.scalar(tile).map(Some);
        }
        let Some(inst) = self.definitions[tile] else {
            return Ok(None);
        };
        match self.block.op(inst).clone() {
            Op::Arange { start, .. } => Ok(Some(self.builder.index(start))),
            Op::Constant { value } => {
                let scalar = self.builder.filled(value, crate::ir::Shape::SCALAR);
                Ok(Some(scalar))
            }
            Op::Splat { x }
            | Op::Broadcast { x }
            | Op::ExpandDims { x, .. }
            | Op::Reshape { x }
            | Op::Transpose { x, .. } => self.first_element(x),
            Op::Binary { op, lhs, rhs } => {
                let (Some(lhs), Some(rhs)) = (self.first_element(lhs)?, self.first_element(rhs)?)
                else {
                    return Ok(None);
                };
                Ok(Some(self.builder.binary(op, lhs, rhs)))
            }
            _ => Ok(None),
        }
    }

    /// `if condition { emit(true) } else { emit(false) }`.
    pub(super) fn either(
        &mut self,
        condition: Value,
        types: &[Type],
        emit: &mut dyn FnMut(&mut Self, bool) -> Vec<Value>,
    ) -> Vec<Value> {
        let [on_true, on_false] = [true, false].map(|holds| {
            let region = self.builder.new_region(&[]);
            let outer = self.builder.enter(region);
            let values = emit(self, holds);
            self.builder.emit(Op::Yield { values }, &[]);
            self.builder.enter(outer);
            region
        });
        let op = Op::If {
            condition,
            on_true,
            on_false,
        };
        let inst = self.builder.emit_unchecked(op, types);
        self.builder.results(inst).to_vec()
    }
}
