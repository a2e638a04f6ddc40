//! Integers: division by 0, quotients that overflow, shifts by the width and beyond.

use crate::builder::Builder;
use crate::ir::{BinaryOp, CompareOp, DType, Literal, RawOp, Value};

/// `op` by the machine's own instruction, with guards around it unless `known`, the number that fills the
/// second operand, makes them needless.
pub(super) fn guarded(
    builder: &mut Builder,
    (op, dtype): (RawOp, DType),
    operands: (Value, Value),
    known: Option<Literal>,
) -> Value {
    match op {
        RawOp::Div | RawOp::Rem => divide(builder, (op, dtype), operands, known),
        RawOp::Shl | RawOp::Shr => shift(builder, (op, dtype), operands, known),
    }
}

/// The integers of a range that holds 0 nearest to those of `x`.
pub(super) fn clamp(builder: &mut Builder, x: Value, (least, greatest): (i64, i64)) -> Value {
    let Some(dtype) = builder.ty(x).dtype() else {
        return x;
    };
    let raised = match dtype.is_signed() {
        true => {
            let least = builder.bits_like(x, dtype, least.cast_unsigned());
            builder.binary(BinaryOp::Maximum, x, least)
        }
        false => x,
    };
    let greatest = builder.bits_like(x, dtype, greatest.cast_unsigned());
    builder.binary(BinaryOp::Minimum, raised, greatest)
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
    let unsigned = dtype.unsigned();
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
