//! Minima and maxima of floats, which differ between machines in what they do with NaN and zeros.

use crate::builder::Builder;
use crate::ir::{BinaryOp, CompareOp, DType, Value};
use crate::target::Native;

/// Whether the machine has `op` of floats of type `dtype`, or `op` is no minimum or maximum.
pub(super) fn is_legal(op: BinaryOp, dtype: DType, native: &Native) -> bool {
    match op {
        BinaryOp::Minimum | BinaryOp::Maximum => native.extrema.contains(&dtype),
        BinaryOp::Minnum | BinaryOp::Maxnum => native.number_extrema.contains(&dtype),
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem => true,
        BinaryOp::And | BinaryOp::Or | BinaryOp::Xor | BinaryOp::Shl | BinaryOp::Shr => true,
    }
}

/// The smaller or the larger number, by comparisons.
///
/// Scalars take the machine's `minimum` for the numbers of a `minnum` where it has one: in vectors
/// that is as many instructions as two comparisons.
pub(super) fn extremum(
    builder: &mut Builder,
    op: BinaryOp,
    (x, y): (Value, Value),
    native: &Native,
) -> Value {
    let Some(dtype) = builder.ty(x).dtype() else {
        return x;
    };
    let is_less = matches!(op, BinaryOp::Minimum | BinaryOp::Minnum);
    let propagates = matches!(op, BinaryOp::Minimum | BinaryOp::Maximum);
    let order = if is_less {
        CompareOp::Lt
    } else {
        CompareOp::Gt
    };
    let native_op = if is_less {
        BinaryOp::Minimum
    } else {
        BinaryOp::Maximum
    };
    let both = match builder.ty(x).is_scalar() && is_legal(native_op, dtype, native) {
        true => builder.binary(native_op, x, y),
        false => of_numbers(builder, order, (x, y)),
    };
    let (if_x, if_y) = if propagates { (x, y) } else { (y, x) };
    let y_is_nan = builder.compare(CompareOp::Ne, y, y);
    let without_y = builder.select(y_is_nan, if_y, both);
    let x_is_nan = builder.compare(CompareOp::Ne, x, x);
    builder.select(x_is_nan, if_x, without_y)
}

/// The first of two numbers in `order`. For equal operands the two choices are both operands, which
/// have the same bits or are zeros: `or` (`and`) of the bits gives the smaller (larger) one.
fn of_numbers(builder: &mut Builder, order: CompareOp, (x, y): (Value, Value)) -> Value {
    let Some(dtype) = builder.ty(x).dtype() else {
        return x;
    };
    let bits = [(x, y), (y, x)].map(|(x, y)| {
        let is_first = builder.compare(order, x, y);
        let first = builder.select(is_first, x, y);
        builder.bitcast(first, dtype.unsigned())
    });
    let merged = match order == CompareOp::Lt {
        true => builder.or(bits[0], bits[1]),
        false => builder.and(bits[0], bits[1]),
    };
    builder.bitcast(merged, dtype)
}
