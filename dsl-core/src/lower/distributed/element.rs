//! Ops that act on each element alone, and tiles that are made where they are used.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::tile::{Registers, Tile};
use super::{Lowering, Result};
use crate::ir::{DType, Op, Trait, Type, Value, op};
use crate::layout::LinearLayout;

impl Lowering<'_> {
    /// The registers of a cheap tile.
    pub(super) fn cheap(&mut self, value: Value, layout: &Rc<LinearLayout>) -> Result<Registers> {
        let op = self.definition(value)?;
        let registers = layout.registers() as usize;
        if let Op::Constant(op::Constant { value: literal }) = op {
            let constant = self.builder.filled(literal, crate::ir::Shape::SCALAR);
            return Ok(vec![constant; registers].into());
        }
        if let Op::Splat(op::Splat { x }) = op {
            return Ok(vec![self.scalar(x)?; registers].into());
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
        let mask = (1_u64 << layout.tile_bits()) - 1;
        let mut known: BTreeMap<Value, Value> = BTreeMap::new();
        let first = (start != 0).then(|| self.builder.index(start));
        let mut registers = Vec::new();
        for index in self.indices(layout, mask) {
            let number = known
                .get(&index)
                .copied()
                .unwrap_or_else(|| first.map_or(index, |first| self.builder.add(index, first)));
            known.insert(index, number);
            registers.push(number);
        }
        registers.into()
    }

    /// An elementwise op, register by register; registers with equal operands share one result.
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
        let mut known: BTreeMap<Vec<Value>, Value> = BTreeMap::new();
        let mut registers = Vec::new();
        for register in 0..layout.registers() as usize {
            let inputs: Vec<Value> = operands.iter().map(|operand| operand[register]).collect();
            let result = known.get(&inputs).copied().unwrap_or_else(|| {
                let mut next = inputs.iter().copied();
                let mut op = op.clone();
                op.map_operands(&mut |value| next.next().unwrap_or(value));
                let inst = self.builder.emit_unchecked(op, &[Type::scalar(dtype)]);
                self.builder.results(inst)[0]
            });
            known.insert(inputs, result);
            registers.push(result);
        }
        Ok(registers.into())
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
