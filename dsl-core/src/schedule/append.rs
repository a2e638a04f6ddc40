//! What passes put in the place of an instruction.

use crate::ir::{BinaryOp, DType, Func, Inst, Literal, Op, Region, Type, Value, op};

/// Appends to a region what stands at the place of an instruction.
pub(super) struct Appender<'a> {
    pub(super) func: &'a mut Func,
    pub(super) region: Region,
    pub(super) inst: Inst,
}

impl Appender<'_> {
    pub(super) fn append(&mut self, op: Op, types: &[Type]) -> Option<Value> {
        let loc = self.func.inst(self.inst).loc.clone();
        let made = self.func.add_inst(op, types, loc);
        self.func.region_mut(self.region).insts.push(made);
        self.func.inst(made).results.first().copied()
    }

    pub(super) fn value(&mut self, op: Op, ty: Type) -> Value {
        let made = self.append(op, &[ty]);
        made.expect("broken invariant: the op has a result")
    }

    pub(super) fn int32(&mut self, number: i32) -> Value {
        let value = Literal::from_bits(DType::I32, u64::from(number as u32));
        self.value(
            Op::Constant(op::Constant { value }),
            Type::scalar(DType::I32),
        )
    }

    pub(super) fn index(&mut self, number: i64) -> Value {
        let value = Literal::from_bits(DType::I64, number.cast_unsigned());
        self.value(Op::Constant(op::Constant { value }), Type::INDEX)
    }

    /// The sum of two scalars.
    pub(super) fn sum(&mut self, lhs: Value, rhs: Value) -> Value {
        let ty = self.func.ty(lhs);
        let op = BinaryOp::Add;
        self.value(Op::Binary(op::Binary { op, lhs, rhs }), ty)
    }
}
