//! Ops that act on each element alone, and tiles that are made where they are used.

use std::rc::Rc;

use super::registers::Registers;
use super::tile::Tile;
use super::{Lowering, Result};
use crate::ir::{DType, Op, Trait, Value, op};
use crate::layout::LinearLayout;

impl Lowering<'_> {
    /// The registers of a cheap tile.
    pub(super) fn cheap(&mut self, value: Value, layout: &Rc<LinearLayout>) -> Result<Registers> {
        let op = self.definition(value)?;
        let count = layout.registers() as usize;
        if let Op::Constant(op::Constant { value: literal }) = op {
            let constant = self.builder.filled(literal, crate::ir::Shape::SCALAR);
            return Ok(Registers::uniform(constant, count));
        }
        if let Op::Splat(op::Splat { x }) = op {
            return Ok(Registers::uniform(self.scalar(x)?, count));
        }
        if let Op::Arange(op::Arange { start, .. }) = op {
            return Ok(self.arange(start, layout));
        }
        if op.is(Trait::elementwise) {
            let dtype = self.dtype(value)?;
            return self.elementwise(&op, dtype, layout);
        }
        self.viewed(value, layout)
    }

    /// The integers from `start`, one for each element.
    fn arange(&mut self, start: i64, layout: &LinearLayout) -> Registers {
        let indices = self.indices(layout, (1_u64 << layout.tile_bits()) - 1);
        if start == 0 {
            return indices;
        }
        self.map(&[&indices], |builder, operands| {
            let first = builder.bits_like(operands[0], DType::I64, start.cast_unsigned());
            builder.add(operands[0], first)
        })
    }

    /// An elementwise op on all registers.
    pub(super) fn elementwise(
        &mut self,
        op: &Op,
        dtype: DType,
        layout: &Rc<LinearLayout>,
    ) -> Result<Registers> {
        let mut operands = Vec::new();
        for operand in op.operands() {
            operands.push(self.get(operand, layout)?);
        }
        let operands: Vec<&Registers> = operands.iter().collect();
        Ok(self.map(&operands, |builder, aligned| {
            let mut next = aligned.iter().copied();
            let mut op = op.clone();
            op.map_operands(&mut |value| next.next().unwrap_or(value));
            let ty = builder.ty(aligned[0]).with_dtype(dtype);
            let inst = builder.emit_unchecked(op, &[ty]);
            builder.results(inst)[0]
        }))
    }

    /// A computed elementwise op, in the layout that was chosen for it.
    pub(super) fn computed(&mut self, op: &Op, result: Value) -> Result<()> {
        let layout = self.assigned(result);
        let dtype = self.dtype(result)?;
        let registers = self.elementwise(op, dtype, &layout)?;
        self.bind(result, Tile { layout, registers });
        Ok(())
    }
}
