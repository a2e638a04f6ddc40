//! One element of a tile as a scalar, where arithmetic on positions and scalars gives it.

use std::collections::BTreeMap;

use super::{Lowering, Result};
use crate::ir::index_map::Position;
use crate::ir::{BinaryOp, DType, IndexMap, Op, Shape, Trait, Type, Value, op};

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
            return Ok(self.scalar(tile));
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
            self.scalar(x)
        } else if let Some((x, map)) = self.view(tile) {
            let before = self.coordinates_before(&map, coordinates);
            self.element_at(x, &before, known)?
        } else if op.is(Trait::elementwise) {
            self.computed_at(tile, &op, coordinates, known)?
        } else {
            return Err(self.error(format!(
                "broken invariant: an element of `{}` is unknown",
                op.mnemonic()
            )));
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

    /// Where the element at `coordinates` is in the tile that a map leads to.
    fn coordinates_before(&mut self, map: &IndexMap, coordinates: &[Value]) -> Vec<Value> {
        let positions = map.positions().into_iter();
        let position = |position: Position| {
            let mut sum = None;
            for digit in position.digits {
                let mut part = coordinates[digit.axis];
                if digit.count < map.from_bits()[digit.axis] {
                    part = self.bits_of(part, digit.low, digit.count);
                }
                if digit.at > 0 {
                    let stride = self.builder.index(1 << digit.at);
                    part = self.builder.mul(part, stride);
                }
                sum = Some(match sum {
                    Some(sum) => self.builder.add(sum, part),
                    None => part,
                });
            }
            // Bits that no digit is are one, those of digits are turned round.
            let offset = position.fixed | position.flipped;
            match sum {
                Some(sum) if offset == 0 => sum,
                Some(sum) => {
                    let offset = self.builder.index(offset.cast_signed());
                    self.builder.binary(BinaryOp::Xor, sum, offset)
                }
                None => self.builder.index(offset.cast_signed()),
            }
        };
        positions.map(position).collect()
    }

    /// Bits `low .. low + count` of an index.
    fn bits_of(&mut self, index: Value, low: u32, count: u32) -> Value {
        let distance = self.builder.index(i64::from(low));
        let moved = self.builder.shr(index, distance);
        let last = self.builder.index((1 << count) - 1);
        self.builder.and(moved, last)
    }

    /// The coordinates of the element with a row-major index.
    pub(super) fn split_index(&mut self, shape: &Shape, flat: Value) -> Vec<Value> {
        debug_assert_eq!(self.builder.ty(flat), Type::scalar(DType::I64));
        let axes = (0..shape.rank()).zip(shape.strides());
        axes.map(|(axis, stride)| {
            let count = shape.extent(axis).trailing_zeros();
            self.bits_of(flat, stride.trailing_zeros(), count)
        })
        .collect()
    }
}
