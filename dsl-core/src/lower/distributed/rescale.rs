//! Sums of products that a loop multiplies by a few factors for each lane, which keep them in range: mostly all are one.

use super::Lowering;
use super::registers::Registers;
use crate::ir::numbers::filling;
use crate::ir::{AtomicOp, BinaryOp, CompareOp, DType, Literal, Op, Value, op};

/// How many sums a factor must have for its comparison to cost little beside their multiplications.
const LEAST_SUMS: usize = 16;

impl Lowering<'_> {
    /// A multiplication of what tensor cores have summed, which a warp leaves out where all of its factors are one; `None` for
    /// other ops. One times a number is that number, and NaN is NaN.
    pub(super) fn rescaled(&mut self, op: &Op, operands: &[Registers]) -> Option<Registers> {
        let (
            Op::Binary(op::Binary {
                op: BinaryOp::Mul,
                lhs,
                rhs,
            }),
            [a, b],
        ) = (op, operands)
        else {
            return None;
        };
        let (sums, factors) = match [*lhs, *rhs].map(|it| self.is_added_up(it)) {
            [true, false] => (a, b),
            [false, true] => (b, a),
            [true, true] | [false, false] => return None,
        };
        let each = factors.first_of_each();
        if self.loops == 0 || each.len() * LEAST_SUMS > sums.count() {
            return None;
        }
        let moved = self.differ_from_one(factors, &each);
        let registers: Vec<u32> = (0..sums.count() as u32).collect();
        let unchanged = self.pick(sums, &registers);
        let region = self.builder.new_region(&[]);
        let outer = self.builder.enter(region);
        let factors = self.pick(factors, &registers);
        let product = self.builder.mul(unchanged, factors);
        let values = vec![product];
        self.builder.emit(Op::Yield(op::Yield { values }), &[]);
        self.builder.enter(outer);
        let kept = self.builder.region_with(&[], |_, _| vec![unchanged]);
        let inst = self.builder.emit(
            Op::If(op::If {
                condition: moved,
                on_true: region,
                on_false: kept,
            }),
            &[],
        );
        Some(Registers::new(self.builder.results(inst)[0], registers))
    }

    /// Whether a lane of the warp has a factor that is not one.
    fn differ_from_one(&mut self, factors: &Registers, each: &[u32]) -> Value {
        let factors = self.pick(factors, each);
        let ty = self.builder.ty(factors);
        let one = Literal::from_f64(ty.dtype().unwrap_or(DType::F32), 1.0);
        let one = self.builder.filled(one, ty.shape);
        let differs = self.builder.compare(CompareOp::Ne, factors, one);
        self.vote(differs)
    }

    /// Whether a lane of the warp has a flag that is set.
    pub(super) fn vote(&mut self, flags: Value) -> Value {
        let (x, op) = (self.any(flags), AtomicOp::Or);
        self.builder.value(Op::WarpReduce(op::WarpReduce { x, op }))
    }

    /// Whether a value is sums that a product has added to others, which may have been multiplied before.
    fn is_added_up(&self, value: Value) -> bool {
        let op = |value: Value| Some(self.block.op(self.definitions[value]?));
        let Some(&Op::Settle(op::Settle { x, .. })) = op(value) else {
            return false;
        };
        let Some(Op::DotSlots(product)) = op(x) else {
            return true;
        };
        let begun = match op(product.accumulator) {
            Some(&Op::Pend(op::Pend { x })) => x,
            Some(_) | None => return true,
        };
        !filling(begun, op).is_some_and(Literal::is_positive_zero)
    }
}
