//! One element of a tile as a scalar, where arithmetic on positions and scalars gives it.

use std::collections::BTreeMap;

use super::{Lowering, Result};
use crate::ir::{DType, Op, Shape, Trait, Type, Value, op};

/// The elements that are known already, by tile and coordinates.
pub(super) type Known = BTreeMap<(Value, Vec<Value>), Value>;

impl Lowering<'_> {
    /// The element of a tile at `coordinates`, one index for each axis.
    pub(super) fn element_at(
        &mut self,
        tile: Value,
        coordinates: &[Value],
        known: &mut Known,
    ) -> Result<Value> {
        if self.block.ty(tile).is_scalar() {
            return self.scalar(tile);
        }
        let key = (tile, coordinates.to_vec());
        if let Some(&element) = known.get(&key) {
            return Ok(element);
        }
        let op = self.definition(tile)?;
        let element = match &op {
            Op::Constant(op::Constant { value }) => self.builder.filled(*value, Shape::SCALAR),
            Op::Arange(op::Arange { start, .. }) => {
                let start = self.builder.index(*start);
                self.builder.add(coordinates[0], start)
            }
            Op::Splat(op::Splat { x }) => self.scalar(*x)?,
            op if op.is(Trait::elementwise) => self.computed_at(tile, op, coordinates, known)?,
            op => {
                let before = self.coordinates_before(op, tile, coordinates);
                let (operand, before) = before.ok_or_else(|| {
                    self.error(format!("an element of `{}` is unknown", op.mnemonic()))
                })?;
                self.element_at(operand, &before, known)?
            }
        };
        known.insert(key, element);
        Ok(element)
    }

    fn computed_at(
        &mut self,
        tile: Value,
        op: &Op,
        coordinates: &[Value],
        known: &mut Known,
    ) -> Result<Value> {
        let mut inputs = Vec::new();
        for operand in op.operands() {
            inputs.push(self.element_at(operand, coordinates, known)?);
        }
        let mut next = inputs.into_iter();
        let mut op = op.clone();
        op.map_operands(&mut |value| next.next().unwrap_or(value));
        let ty = Type::scalar(self.dtype(tile)?);
        let inst = self.builder.emit_unchecked(op, &[ty]);
        Ok(self.builder.results(inst)[0])
    }

    /// For a shape op its operand and where the element is there.
    fn coordinates_before(
        &mut self,
        op: &Op,
        tile: Value,
        coordinates: &[Value],
    ) -> Option<(Value, Vec<Value>)> {
        match op {
            Op::Broadcast(op::Broadcast { x }) => {
                let from = self.block.ty(*x).shape;
                let zero = self.builder.index(0);
                let kept = |(axis, &at): (usize, &Value)| {
                    if from.extent(axis) == 1 { zero } else { at }
                };
                Some((*x, coordinates.iter().enumerate().map(kept).collect()))
            }
            Op::ExpandDims(op::ExpandDims { x, axis }) => {
                let mut before = coordinates.to_vec();
                before.remove(axis.index());
                Some((*x, before))
            }
            Op::Transpose(op::Transpose { x, permutation }) => {
                let mut before = coordinates.to_vec();
                for (&from, &at) in permutation.iter().zip(coordinates) {
                    before[from as usize] = at;
                }
                Some((*x, before))
            }
            Op::Reshape(op::Reshape { x }) => {
                let flat = self.flat_index(&self.block.ty(tile).shape, coordinates);
                let before = self.split_index(&self.block.ty(*x).shape, flat);
                Some((*x, before))
            }
            _ => None,
        }
    }

    /// The row-major index of an element.
    fn flat_index(&mut self, shape: &Shape, coordinates: &[Value]) -> Value {
        let mut flat = self.builder.index(0);
        for (&at, stride) in coordinates.iter().zip(shape.strides()) {
            let stride = self.builder.index(stride as i64);
            let part = self.builder.mul(at, stride);
            flat = self.builder.add(flat, part);
        }
        flat
    }

    /// The coordinates of the element with a row-major index.
    pub(super) fn split_index(&mut self, shape: &Shape, flat: Value) -> Vec<Value> {
        debug_assert_eq!(self.builder.ty(flat), Type::scalar(DType::I64));
        let axes = (0..shape.rank()).zip(shape.strides());
        axes.map(|(axis, stride)| {
            let distance = self.builder.index(i64::from(stride.trailing_zeros()));
            let moved = self.builder.shr(flat, distance);
            let last = self.builder.index(shape.extent(axis) as i64 - 1);
            self.builder.and(moved, last)
        })
        .collect()
    }
}
