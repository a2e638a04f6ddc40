//! Guards what machines leave undefined: division by 0, quotients that overflow, shifts by the width
//! and beyond. The last pass over lane IR, and the only place with these guards.
//!
//! What a row defines and every backend's target has as one instruction needs none: conversions of
//! floats to integers saturate natively, and each backend has its own way to a minimum of floats.

use super::rewrite::{Rewriter, rewrite};
use crate::builder::Builder;
use crate::ir::{BinaryOp, CompareOp, DType, Func, Literal, Op, RawOp, Value, op};

/// Replaces each op that a machine leaves undefined for some operands by the machine's own and guards
/// around it.
pub fn legalise(func: &mut Func) {
    let meets = |op: &Op| match op {
        Op::Binary(op::Binary { op, lhs, .. }) => needs_guard(*op, func.ty(*lhs).dtype()),
        _ => false,
    };
    if !func.all_insts().iter().any(|&inst| meets(func.op(inst))) {
        return;
    }
    rewrite(func, &mut |rewriter, inst| {
        let Op::Binary(op::Binary { op, lhs, rhs }) = *rewriter.builder.func().op(inst) else {
            return None;
        };
        let dtype = rewriter.builder.ty(lhs).dtype()?;
        let raw = op.raw().filter(|_| dtype.is_integer())?;
        let known = constant(rewriter, rhs);
        let builder = &mut rewriter.builder;
        let guarded = match raw {
            RawOp::Div | RawOp::Rem => divide(builder, (raw, dtype), (lhs, rhs), known),
            RawOp::Shl | RawOp::Shr => shift(builder, (raw, dtype), (lhs, rhs), known),
        };
        Some(vec![guarded])
    });
}

/// Whether `op` on `dtype` stands in no function that was legalised.
pub fn needs_guard(op: BinaryOp, dtype: Option<DType>) -> bool {
    op.raw().is_some() && dtype.is_some_and(|dtype| dtype.is_integer())
}

/// The number that fills `value`, if it is known.
fn constant(rewriter: &Rewriter, value: Value) -> Option<Literal> {
    match rewriter.definition(value)? {
        Op::Constant(op::Constant { value }) => Some(*value),
        Op::Splat(op::Splat { x }) => constant(rewriter, *x),
        _ => None,
    }
}

/// Divides by 1 where the divisor is 0 or the quotient overflows: the least integer / 1 is itself and
/// its remainder 0, as it should be / -1. Then x / 0 becomes all bits, and x % 0 becomes x.
fn divide(
    builder: &mut Builder,
    (op, dtype): (RawOp, DType),
    (lhs, rhs): (Value, Value),
    known: Option<Literal>,
) -> Value {
    let minus_one = dtype.mask();
    let may_overflow = dtype.is_signed();
    if known.is_some_and(|it| it.bits != 0 && !(may_overflow && it.bits == minus_one)) {
        return builder.raw(op, lhs, rhs);
    }
    let zero = builder.bits_like(rhs, dtype, 0);
    let by_zero = builder.compare(CompareOp::Eq, rhs, zero);
    let mut is_undefined = by_zero;
    if may_overflow {
        let least = builder.bits_like(lhs, dtype, (dtype.mask() >> 1) + 1);
        let is_least = builder.compare(CompareOp::Eq, lhs, least);
        let minus_one = builder.bits_like(rhs, dtype, minus_one);
        let by_minus_one = builder.compare(CompareOp::Eq, rhs, minus_one);
        let overflows = builder.and(is_least, by_minus_one);
        is_undefined = builder.or(by_zero, overflows);
    }
    let one = builder.bits_like(rhs, dtype, 1);
    let divisor = builder.select(is_undefined, one, rhs);
    let value = builder.raw(op, lhs, divisor);
    let of_zero = match op {
        RawOp::Div => builder.bits_like(lhs, dtype, dtype.mask()),
        RawOp::Rem | RawOp::Shl | RawOp::Shr => lhs,
    };
    builder.select(by_zero, of_zero, value)
}

/// Shifts in nothing but zeros, or sign bits, from the width on. Amounts are read as unsigned.
fn shift(
    builder: &mut Builder,
    (op, dtype): (RawOp, DType),
    (lhs, rhs): (Value, Value),
    known: Option<Literal>,
) -> Value {
    let width = u64::from(dtype.bits());
    if known.is_some_and(|it| it.bits < width) {
        return builder.raw(op, lhs, rhs);
    }
    let unsigned = unsigned(dtype);
    let amount = match dtype == unsigned {
        true => rhs,
        false => builder.bitcast(rhs, unsigned),
    };
    let limit = builder.bits_like(amount, unsigned, width);
    let fits = builder.compare(CompareOp::Lt, amount, limit);
    if op == RawOp::Shr && dtype.is_signed() {
        let most = builder.bits_like(rhs, dtype, width - 1);
        let amount = builder.select(fits, rhs, most);
        return builder.raw(op, lhs, amount);
    }
    let shifted = builder.raw(op, lhs, rhs);
    let zero = builder.bits_like(lhs, dtype, 0);
    builder.select(fits, shifted, zero)
}

/// The unsigned integers of the same width.
const fn unsigned(dtype: DType) -> DType {
    match dtype.bits() {
        8 => DType::U8,
        16 => DType::U16,
        32 => DType::U32,
        _ => DType::U64,
    }
}
