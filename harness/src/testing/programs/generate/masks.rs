//! Masks as authors write them: bounds of coordinates, scalars that let all or nothing through, and what is made of both.

use exactile_core::builder::Builder;
use exactile_core::ir::{CompareOp, DType, Literal, Shape, Value};

use super::Generator;

/// Comparisons of a coordinate with a bound.
const ORDERED: &[CompareOp] = &[CompareOp::Lt, CompareOp::Le, CompareOp::Gt, CompareOp::Ge];

impl Generator {
    /// A mask of an access; `depth` bounds how deep its operands nest.
    pub(super) fn mask(&mut self, shape: Shape, depth: u32) -> Value {
        if shape.is_scalar() || self.combiner.is_some() || self.random.one_in(3) {
            return self.make(DType::Bool, shape, depth);
        }
        self.composed_mask(shape, 2)
    }

    fn composed_mask(&mut self, shape: Shape, depth: u32) -> Value {
        let kinds = if depth == 0 { 3 } else { 8 };
        match self.random.below(kinds) {
            0 | 1 => self.bound(shape),
            2 => self.scalar_splat(DType::Bool, shape),
            3 | 4 => self.both(shape, depth, |builder, lhs, rhs| builder.and(lhs, rhs)),
            5 => self.both(shape, depth, |builder, lhs, rhs| builder.or(lhs, rhs)),
            6 => {
                let mask = self.composed_mask(shape, depth - 1);
                self.builder.not(mask)
            }
            _ => {
                let condition = self.make(DType::Bool, shape, 0);
                self.both(shape, depth, |builder, lhs, rhs| {
                    builder.select(condition, lhs, rhs)
                })
            }
        }
    }

    fn both(
        &mut self,
        shape: Shape,
        depth: u32,
        join: impl FnOnce(&mut Builder, Value, Value) -> Value,
    ) -> Value {
        let [lhs, rhs] = [0; 2].map(|_| self.composed_mask(shape, depth - 1));
        join(&mut self.builder, lhs, rhs)
    }

    /// A coordinate, of the program's tile or of all tiles in a row, beside a parameter near the extent.
    fn bound(&mut self, shape: Shape) -> Value {
        let axis = self.random.below(shape.rank());
        let extent = shape.extent(axis) as i64;
        let mut along = self.along_axis(shape, axis, 1);
        let mut most = extent + 1;
        if self.random.one_in(2) {
            let extent = self.builder.index(extent);
            let first = self.builder.mul(self.program, extent);
            let first = self.builder.splat(first, shape);
            along = self.builder.add(first, along);
            most *= self.programs() as i64;
        }
        let end = self.random.between(-1, most).cast_unsigned();
        let end = self.scalar_parameter(Literal::from_bits(DType::I64, end));
        let end = self.builder.splat(end, shape);
        let op = self.random.pick(ORDERED);
        match self.random.one_in(2) {
            true => self.builder.compare(op, end, along),
            false => self.builder.compare(op, along, end),
        }
    }
}
