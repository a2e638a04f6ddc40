//! Makes what machines have of what the ops mean: guards around a machine's own division and shift,
//! minima of floats, conversions that round once. The last pass over lane IR, and the only place with
//! such guards: a backend writes down instructions.
//!
//! What a target does itself in the exact meaning is a row of its [`Native`], and stays as it is.

mod conversion;
mod extremum;
mod integer;
mod narrow;
#[cfg(test)]
mod tests;

use super::rewrite::{Rewriter, rewrite};
use crate::builder::Builder;
use crate::ir::op::{Elementwise, LaneOp};
use crate::ir::{BinaryOp, Class, DType, Func, Inst, Literal, Op, RawOp, UnaryOp, Value, op};
use crate::target::Native;

/// Replaces each op that the machine does not have by others that it has.
///
/// It reads bits of floats that may be NaN, whose bits no result depends on: passes that make those
/// canonical come before.
pub fn legalise(func: &mut Func, native: &Native) {
    let insts = func.all_insts();
    if insts.iter().all(|&inst| is_legal(func, inst, native)) {
        return;
    }
    rewrite(func, &mut |rewriter, inst| {
        let func = rewriter.builder.func();
        if is_legal(func, inst, native) {
            return None;
        }
        let op = func.op(inst).clone();
        let to = func.ty(func.inst(inst).results[0]).dtype()?;
        replacement(rewriter, &op, to, native).map(|value| vec![value])
    });
}

/// Whether the machine has this op of a lane function: what is not may stand in no function that a
/// backend is given.
pub fn is_legal(func: &Func, inst: Inst, native: &Native) -> bool {
    let Some(LaneOp::Elementwise(op)) = func.op(inst).lane() else {
        return true;
    };
    let dtype = |value: Value| func.ty(value).dtype();
    let computes = |value: Value| !dtype(value).is_some_and(DType::is_narrow_float);
    match op {
        Elementwise::Unary(op::Unary { op, x }) => match op {
            UnaryOp::Not => true,
            UnaryOp::Neg | UnaryOp::Abs => dtype(*x).is_none_or(|dtype| native.holds(dtype)),
            UnaryOp::Sqrt | UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Trunc | UnaryOp::Round => {
                computes(*x)
            }
        },
        Elementwise::Binary(op::Binary { op, lhs, .. }) => match dtype(*lhs) {
            Some(dtype) if dtype.is_float() => {
                !dtype.is_narrow_float() && extremum::is_legal(*op, dtype, native)
            }
            Some(_) => op.raw().is_none(),
            None => true,
        },
        Elementwise::Ternary(op::Ternary { a: x, .. })
        | Elementwise::Compare(op::Compare { lhs: x, .. }) => computes(*x),
        Elementwise::Cast(op::Cast { x }) => {
            let to = dtype(func.inst(inst).results[0]);
            match (dtype(*x), to) {
                (Some(from), Some(to)) => conversion::is_legal(from, to, native),
                (None, _) | (_, None) => true,
            }
        }
        Elementwise::Approximate(_) | Elementwise::Select(_) | Elementwise::Bitcast(_) => true,
        Elementwise::InlinePtx(_) => true,
    }
}

/// What stands for an op that the machine does not have, whose result is of type `to`.
fn replacement(rewriter: &mut Rewriter, op: &Op, to: DType, native: &Native) -> Option<Value> {
    let builder = &mut rewriter.builder;
    if let Op::Cast(op::Cast { x }) = *op {
        return Some(conversion::convert(builder, x, to, native));
    }
    let dtype = builder.ty(*op.operands().first()?).dtype()?;
    if let Op::Unary(op::Unary { op, x }) = *op
        && matches!(op, UnaryOp::Neg | UnaryOp::Abs)
    {
        return Some(narrow::with_sign(builder, op, x, dtype));
    }
    if dtype.is_narrow_float() {
        return in_compute_type(builder, op, to, native);
    }
    let Op::Binary(op::Binary { op, lhs, rhs }) = *op else {
        return None;
    };
    Some(match op.raw().filter(|_| dtype.is_integer()) {
        Some(raw) => {
            let known = match raw {
                RawOp::Div | RawOp::Rem => rewriter.constant(rhs),
                RawOp::Shl | RawOp::Shr => at_most(rewriter, rhs),
            };
            integer::guarded(&mut rewriter.builder, (raw, dtype), (lhs, rhs), known)
        }
        None => extremum::extremum(builder, op, (lhs, rhs), native),
    })
}

/// A number that `x`, read as unsigned, is not above, where its definition says one.
fn at_most(rewriter: &Rewriter, x: Value) -> Option<Literal> {
    let definition = rewriter.definition(x);
    if let Some(Op::Binary(op::Binary {
        op: BinaryOp::And,
        lhs,
        rhs,
    })) = definition
    {
        return rewriter.constant(*rhs).or_else(|| rewriter.constant(*lhs));
    }
    if let Some(Op::Cast(op::Cast { x })) = definition {
        let from = rewriter.builder.ty(*x).dtype()?;
        let is_unsigned = from.class() == Class::Unsigned;
        return is_unsigned.then(|| at_most(rewriter, *x)).flatten();
    }
    rewriter.constant(x)
}

/// The op on operands in the type in which those of a narrow float are computed, and one rounding.
fn in_compute_type(builder: &mut Builder, op: &Op, to: DType, native: &Native) -> Option<Value> {
    let mut wide = op.clone();
    wide.map_operands(&mut |operand| match builder.ty(operand).dtype() {
        Some(dtype) => conversion::convert(builder, operand, dtype.compute(), native),
        None => operand,
    });
    let result = if let Op::Binary(op::Binary { op, lhs, rhs }) = wide
        && !extremum::is_legal(op, builder.ty(lhs).dtype()?, native)
    {
        extremum::extremum(builder, op, (lhs, rhs), native)
    } else {
        builder.value(wide)
    };
    Some(conversion::convert(builder, result, to, native))
}
