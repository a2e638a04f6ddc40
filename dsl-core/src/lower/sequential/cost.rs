//! What elements cost to compute: rough counts, which decide speed and never bits.

use super::plan::Planner;
use crate::ir::op::Elementwise;
use crate::ir::{BinaryOp, DType, Op, Type, UnaryOp, Value, op};

impl Planner<'_> {
    pub(super) fn is_affine(&self, op: &Op, ty: Type) -> bool {
        let known = |value: &Value| self.affine.contains(value);
        if matches!(op, Op::Constant(_) | Op::Arange(_) | Op::Splat(_)) {
            return true;
        }
        if let Some(shape) = op.shape() {
            return known(&shape.x());
        }
        if let Op::Compare(op::Compare { lhs, rhs, .. }) = op {
            return self.func.ty(*lhs).dtype() == Some(DType::I64) && known(lhs) && known(rhs);
        }
        let Op::Binary(op::Binary { op, lhs, rhs }) = op else {
            return false;
        };
        let of = if matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul) {
            DType::I64
        } else if matches!(op, BinaryOp::And | BinaryOp::Or) {
            DType::Bool
        } else {
            return false;
        };
        ty.dtype() == Some(of) && known(lhs) && known(rhs)
    }

    /// Whether a scalar says of the mask that the op makes whether it holds everywhere.
    pub(super) fn is_stated(&self, op: &Op) -> bool {
        let known = |value: &Value| self.stated.contains(value);
        if let Some(shape) = op.shape() {
            return known(&shape.x());
        }
        let Op::Binary(op::Binary { op, lhs, rhs }) = op else {
            return false;
        };
        let lhs_op = self.definitions[*lhs].map(|inst| self.func.op(inst));
        let is_splat = || matches!(lhs_op, Some(Op::Splat(_)));
        *op == BinaryOp::And && known(lhs) && known(rhs) || *op == BinaryOp::Or && is_splat()
    }

    /// Whether a mask is more than what a scalar says.
    pub(super) fn is_masked(&self, mask: Option<Value>) -> bool {
        mask.is_some_and(|mask| !self.stated.contains(&mask))
    }

    /// Whether the op itself has a branch for each lane.
    pub(super) fn has_branches(&self, op: &Op) -> bool {
        if let Op::Load(load) = op {
            self.is_masked(load.mask)
        } else {
            matches!(op, Op::Gather(_))
        }
    }

    /// About how many instructions one element of the op itself takes.
    pub(super) fn own_cost(&self, op: &Op) -> u64 {
        let operand = op.operands().first().and_then(|&x| self.func.ty(x).dtype());
        let half = operand.is_some_and(DType::is_narrow_float);
        let cost = if op.rearranged().is_some() {
            0
        } else if let Op::Gather(_) = op {
            16
        } else if let Op::Load(op::Load { offsets, mask, .. }) = op {
            let gather = if self.affine.contains(offsets) { 2 } else { 16 };
            gather + if self.is_masked(*mask) { 2 } else { 0 }
        } else {
            let cost = |op| elementwise_cost(op, operand);
            op.elementwise().map_or(1, cost)
        };
        if half { cost + 6 } else { cost }
    }
}

fn elementwise_cost(op: Elementwise<'_>, operand: Option<DType>) -> u64 {
    let float = operand.is_some_and(DType::is_float);
    let half = operand.is_some_and(DType::is_narrow_float);
    match op {
        Elementwise::Unary(op::Unary { op, .. }) => match op {
            UnaryOp::Neg
            | UnaryOp::Abs
            | UnaryOp::Not
            | UnaryOp::Floor
            | UnaryOp::Ceil
            | UnaryOp::Trunc
            | UnaryOp::Round => 1,
            UnaryOp::Sqrt => 8,
        },
        Elementwise::Binary(op::Binary { op, .. }) => match op {
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul => 1,
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => 1,
            BinaryOp::Div if float => 6,
            BinaryOp::Div | BinaryOp::Rem => 20,
            BinaryOp::Minimum | BinaryOp::Maximum if float => 6,
            BinaryOp::Minnum | BinaryOp::Maxnum => 6,
            BinaryOp::Minimum | BinaryOp::Maximum => 1,
            BinaryOp::Shl | BinaryOp::Shr => 3,
        },
        Elementwise::Cast(_) if half => 4,
        Elementwise::Ternary(_) | Elementwise::Compare(_) | Elementwise::Approximate(_) => 1,
        Elementwise::Cast(_) | Elementwise::Bitcast(_) | Elementwise::Select(_) => 1,
        Elementwise::InlinePtx(_) => 0,
    }
}
