//! `dot` by tensor cores: each warp multiplies the fragments that it holds in registers.

use super::registers::Registers;
use super::{Lowering, Result};
use crate::ir::index_map::dim_bits;
use crate::ir::{Op, Value, op};
use crate::layout::fragment::{Fragments, HELD, fragments};

impl Lowering<'_> {
    pub(super) fn tensor_dot(&mut self, result: Value, op: &op::Dot) -> Result<()> {
        let (word, name) = (op.precision.word(), self.target.name);
        if !self.target.gpu.mma.contains(&op.precision) {
            let message =
                format!("`{name}` has no tensor cores that compute `dot` with precision `{word}`");
            let note = "take precision `ieee`, which every machine computes";
            return Err(self.error(message).note(note));
        }
        let layout = self.layout(result);
        let bits = |value: Value| dim_bits(&self.block.ty(value).shape);
        let bits = [bits(result)[0], bits(result)[1], bits(op.a)[1]];
        let found = fragments(bits, layout.warp_bits());
        let [a, b, accumulator] = [op.a, op.b, op.accumulator].map(|value| self.get(value));
        let sums = self.chains(&found, op, [&a, &b, &accumulator]);
        let places: Vec<u32> = (0..layout.registers()).collect();
        let registers = Registers::new(self.joined(&sums), places);
        self.bind(result, registers);
        Ok(())
    }

    /// The accumulator's fragments after all steps.
    fn chains(
        &mut self,
        found: &Fragments,
        op: &op::Dot,
        [a, b, accumulator]: [&Registers; 3],
    ) -> Vec<Value> {
        let mut sums = Vec::new();
        for (fragment, operands) in (0..).zip(&found.operands) {
            let mut sum = self.fragment(accumulator, fragment, HELD[2]);
            for step in 0..1 << found.step_bits {
                sum = {
                    let a = self.fragment(a, operands[0] + step, HELD[0]);
                    let b = self.fragment(b, operands[1] + step, HELD[1]);
                    self.builder.value(Op::Mma(op::Mma {
                        a,
                        b,
                        accumulator: sum,
                        precision: op.precision,
                    }))
                };
            }
            sums.push(sum);
        }
        sums
    }

    fn fragment(&mut self, registers: &Registers, number: u32, count: u32) -> Value {
        let chosen: Vec<u32> = (number * count..(number + 1) * count).collect();
        self.pick(registers, &chosen)
    }
}
