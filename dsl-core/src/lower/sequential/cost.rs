//! What elements cost to compute: rough counts, which decide speed and never bits.

use super::plan::Planner;
use crate::ir::{BinaryOp, DType, Op, TernaryOp, Type, UnaryOp, Value, op};

impl Planner<'_> {
    pub(super) fn is_affine(&self, op: &Op, ty: Type) -> bool {
        let known = |value: &Value| self.affine.contains(value);
        match op {
            Op::Constant(_) | Op::Arange(_) | Op::Splat(_) => true,
            Op::Broadcast(op::Broadcast { x })
            | Op::ExpandDims(op::ExpandDims { x, .. })
            | Op::Reshape(op::Reshape { x })
            | Op::Transpose(op::Transpose { x, .. }) => known(x),
            Op::Binary(op::Binary {
                op: BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul,
                lhs,
                rhs,
            }) => ty.dtype() == Some(DType::I64) && known(lhs) && known(rhs),
            Op::Binary(op::Binary {
                op: BinaryOp::And,
                lhs,
                rhs,
            }) => ty.dtype() == Some(DType::Bool) && known(lhs) && known(rhs),
            Op::Compare(op::Compare { lhs, rhs, .. }) => {
                self.func.ty(*lhs).dtype() == Some(DType::I64) && known(lhs) && known(rhs)
            }
            _ => false,
        }
    }

    /// About how many instructions one element of the op itself takes.
    pub(super) fn own_cost(&self, op: &Op) -> u64 {
        let operand = op.operands().first().and_then(|&x| self.func.ty(x).dtype());
        let float = operand.is_some_and(DType::is_float);
        let half = operand.is_some_and(DType::is_narrow_float);
        let cost = match op {
            Op::Unary(op::Unary { op, .. }) => match op {
                UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Not | UnaryOp::Floor | UnaryOp::Ceil => 1,
                UnaryOp::Sqrt => 8,
            },
            Op::Binary(op::Binary { op, .. }) => match op {
                BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul => 1,
                BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => 1,
                BinaryOp::Div if float => 6,
                BinaryOp::Div | BinaryOp::Rem => 20,
                BinaryOp::Minimum | BinaryOp::Maximum if float => 6,
                BinaryOp::Minnum | BinaryOp::Maxnum => 6,
                BinaryOp::Minimum | BinaryOp::Maximum => 1,
                BinaryOp::Shl | BinaryOp::Shr => 3,
            },
            Op::Ternary(op::Ternary {
                op: TernaryOp::Fma, ..
            }) => 1,
            Op::Cast(_) if half => 4,
            Op::Load(op::Load { offsets, mask, .. }) => {
                let gather = if self.affine.contains(offsets) { 2 } else { 16 };
                gather + if mask.is_some() { 2 } else { 0 }
            }
            Op::Gather(_) => 16,
            Op::Splat(_)
            | Op::Broadcast(_)
            | Op::ExpandDims(_)
            | Op::Reshape(_)
            | Op::Transpose(_) => 0,
            _ => 1,
        };
        if half { cost + 6 } else { cost }
    }
}
