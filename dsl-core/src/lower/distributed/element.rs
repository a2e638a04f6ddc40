//! Ops that act on each element alone, sources of elements, and tiles in other places.

use super::registers::Registers;
use super::{Lowering, Result};
use crate::ir::op::ShapeOp;
use crate::ir::{DType, Op, Shape, Value, op};

impl Lowering<'_> {
    /// The same literal everywhere.
    pub(super) fn constant(&mut self, result: Value, op: &op::Constant) {
        let constant = self.builder.filled(op.value, Shape::SCALAR);
        self.bind_repeated(result, constant);
    }

    /// The same scalar everywhere.
    pub(super) fn splat(&mut self, result: Value, op: &op::Splat) {
        let x = self.scalar(op.x);
        self.bind_repeated(result, x);
    }

    fn bind_repeated(&mut self, result: Value, x: Value) {
        let count = self.layout(result).registers();
        self.bind(result, Registers::uniform(x, count as usize));
    }

    /// The integers from `start`, one for each element.
    pub(super) fn arange(&mut self, result: Value, start: i64) {
        let layout = self.layout(result);
        let indices = self.indices(&layout, (1_u64 << layout.tile_bits()) - 1);
        if start == 0 {
            return self.bind(result, indices);
        }
        let registers = self.map(&[&indices], |builder, operands| {
            let first = builder.bits_like(operands[0], DType::I64, start.cast_unsigned());
            builder.add(operands[0], first)
        });
        self.bind(result, registers);
    }

    /// A shape op renames registers, and a conversion moves what they hold.
    pub(super) fn rearranged(&mut self, result: Value, op: ShapeOp<'_>) -> Result<()> {
        let tile = self.tile(op.x());
        let layout = self.layout(result);
        let registers = if let ShapeOp::Convert(_) = op {
            self.convert(&tile, self.dtype(result)?, &layout)?
        } else {
            let map = op.map(&self.block.ty(op.x()).shape, &self.block.ty(result).shape);
            let pushed = map.push(&layout);
            let (_, merged) = pushed.map_err(|error| self.layout_error(&error))?;
            tile.registers.renamed(&merged)
        };
        self.bind(result, registers);
        Ok(())
    }

    /// An elementwise op on all registers.
    pub(super) fn elementwise(&mut self, op: &Op, result: Value) -> Result<()> {
        let dtype = self.dtype(result)?;
        let operands: Vec<Registers> = op.operands().iter().map(|&it| self.get(it)).collect();
        if let Some(registers) = self.rescaled(op, &operands) {
            self.bind(result, registers);
            return Ok(());
        }
        let operands: Vec<&Registers> = operands.iter().collect();
        let registers = self.map(&operands, |builder, aligned| {
            let mut next = aligned.iter().copied();
            let mut op = op.clone();
            op.map_operands(&mut |value| next.next().unwrap_or(value));
            let ty = builder.ty(aligned[0]).with_dtype(dtype);
            let inst = builder.emit_unchecked(op, &[ty]);
            builder.results(inst)[0]
        });
        self.bind(result, registers);
        Ok(())
    }
}
