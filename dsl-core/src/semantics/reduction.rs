//! The order in which a reduction or a scan combines, which the interpreter follows, and what the
//! lowerings ask of a combiner: its op, its identity, and in which order it is evaluated.

use crate::ir::{BinaryOp, DType, Func, Literal, Op, Order, Region, op};

/// The levels of a reduction along one axis.
///
/// Every level halves the axis: it combines the elements whose indices differ in one bit alone, the
/// lower index on the left. Each aligned power-of-two range of the axis is a complete subtree, so
/// an axis may be cut at such places without changing a bit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReductionPlan {
    /// The bit of the index that each level combines, first level first.
    pub bits: Vec<u32>,
    /// Whether the levels may be taken in another order.
    pub freedom: Freedom,
}

/// What a schedule may change about a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Freedom {
    /// Nothing: the result depends on the order.
    None,
    /// The order of the levels: the combine is associative and commutative on bits.
    AnyOrder,
}

impl ReductionPlan {
    /// The plan for an axis of `extent` elements, a power of two: bit 0 first.
    pub fn new(order: Order, extent: usize) -> Self {
        Self {
            bits: (0..extent.ilog2()).collect(),
            freedom: match order {
                Order::Tree => Freedom::None,
                Order::Any => Freedom::AnyOrder,
            },
        }
    }
}

/// The order in which a reduction or a scan may be evaluated: any, if the combine is one op that gives the
/// same bits in any order.
#[must_use]
pub fn evaluation_order(func: &Func, order: Order, combine: Region, dtype: DType) -> Order {
    match only_op(func, combine) {
        Some(op) if is_associative(op, dtype) => Order::Any,
        Some(_) | None => order,
    }
}

/// The one op of a combine of one source that is no more than that op on its two operands, lower
/// operand left.
#[must_use]
pub fn only_op(func: &Func, combine: Region) -> Option<BinaryOp> {
    let data = func.region(combine);
    let [first, second] = data.parameters.as_slice() else {
        return None;
    };
    let [inst, _] = data.insts.as_slice() else {
        return None;
    };
    let inst = func.inst(*inst);
    let Op::Binary(op::Binary { op, lhs, rhs }) = &inst.op else {
        return None;
    };
    let is_only = (lhs, rhs) == (first, second) && func.yielded(combine) == inst.results.as_slice();
    is_only.then_some(*op)
}

/// Whether any order of combining with `op` gives the same bits, NaN payloads aside.
fn is_associative(op: BinaryOp, dtype: DType) -> bool {
    match op {
        BinaryOp::Add | BinaryOp::Mul => !dtype.is_float(),
        BinaryOp::Minimum | BinaryOp::Maximum | BinaryOp::Minnum | BinaryOp::Maxnum => true,
        BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => true,
        BinaryOp::Sub | BinaryOp::Div | BinaryOp::Rem | BinaryOp::Shl | BinaryOp::Shr => false,
    }
}

/// The number that leaves every other one alone as the left operand of `op`, NaN payloads aside.
#[must_use]
pub fn identity(op: BinaryOp, dtype: DType) -> Option<Literal> {
    let float = dtype.is_float();
    let least = Literal::from_f64(dtype, f64::NEG_INFINITY);
    let greatest = Literal::from_f64(dtype, f64::INFINITY);
    match op {
        BinaryOp::Add => Some(Literal::from_f64(dtype, -0.0)),
        BinaryOp::Mul => Some(Literal::from_f64(dtype, 1.0)),
        BinaryOp::Minimum => Some(greatest),
        BinaryOp::Maximum => Some(least),
        BinaryOp::Minnum | BinaryOp::Maxnum if float => Some(Literal::from_f64(dtype, f64::NAN)),
        BinaryOp::And => Some(Literal::from_bits(dtype, u64::MAX)),
        BinaryOp::Or | BinaryOp::Xor => Some(Literal::from_bits(dtype, 0)),
        BinaryOp::Minnum
        | BinaryOp::Maxnum
        | BinaryOp::Sub
        | BinaryOp::Div
        | BinaryOp::Rem
        | BinaryOp::Shl
        | BinaryOp::Shr => None,
    }
}
