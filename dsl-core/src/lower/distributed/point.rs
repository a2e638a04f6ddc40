//! One element of a tile as a scalar, where arithmetic on positions and scalars gives it.

use std::collections::BTreeMap;

use super::{Lowering, Result};
use crate::ir::op::ShapeOp;
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
        let element = if let Op::Constant(op::Constant { value }) = op {
            self.builder.filled(value, Shape::SCALAR)
        } else if let Op::Arange(op::Arange { start, .. }) = op {
            let start = self.builder.index(start);
            self.builder.add(coordinates[0], start)
        } else if let Op::Splat(op::Splat { x }) = op {
            self.scalar(x)?
        } else if let Some(shape) = op.shape() {
            let before = self.coordinates_before(shape, tile, coordinates);
            self.element_at(shape.x(), &before, known)?
        } else if op.is(Trait::elementwise) {
            self.computed_at(tile, &op, coordinates, known)?
        } else {
            return Err(self.error(format!("an element of `{}` is unknown", op.mnemonic())));
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

    /// Where the element is in the operand of a shape op.
    fn coordinates_before(
        &mut self,
        op: ShapeOp<'_>,
        tile: Value,
        coordinates: &[Value],
    ) -> Vec<Value> {
        let from = self.block.ty(op.x()).shape;
        let mut before = coordinates.to_vec();
        match op {
            ShapeOp::Broadcast(_) => {
                let zero = self.builder.index(0);
                for (axis, at) in before.iter_mut().enumerate() {
                    if from.extent(axis) == 1 {
                        *at = zero;
                    }
                }
            }
            ShapeOp::ExpandDims(op) => {
                before.remove(op.axis.index());
            }
            ShapeOp::Transpose(op) => {
                for (&from, &at) in op.permutation.iter().zip(coordinates) {
                    before[from as usize] = at;
                }
            }
            ShapeOp::Reshape(_) => {
                let flat = self.flat_index(&self.block.ty(tile).shape, coordinates);
                before = self.split_index(&from, flat);
            }
        }
        before
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
