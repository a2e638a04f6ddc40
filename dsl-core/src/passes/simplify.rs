//! Local rewrites that keep every bit of every result. `x + 0.0` stays: it turns -0 into +0.

use super::rewrite::{Rewriter, rewrite};
use crate::ir::{BinaryOp, DType, Func, Inst, Literal, Op, Type, Value, op};

/// Applies the rules below once to each instruction, operands first.
pub fn simplify(func: &mut Func) {
    rewrite(func, &mut |rewriter, inst| {
        access(rewriter, inst).or_else(|| rule(rewriter, inst).map(|value| vec![value]))
    });
}

/// An access whose mask is the same everywhere.
fn access(rewriter: &mut Rewriter, inst: Inst) -> Option<Vec<Value>> {
    let data = rewriter.builder.func().inst(inst);
    let ty = data
        .results
        .first()
        .map(|&result| rewriter.builder.ty(result));
    match data.op.clone() {
        Op::Load(op::Load {
            base,
            offsets,
            mask: Some(mask),
            other,
        }) => {
            let ty = ty?;
            if rewriter.constant(mask)?.bits != 0 {
                let op = Op::Load(op::Load {
                    base,
                    offsets,
                    mask: None,
                    other: None,
                });
                return Some(vec![rewriter.builder.value(op)]);
            }
            let zero = Literal::from_bits(ty.dtype()?, 0);
            Some(vec![
                other.unwrap_or_else(|| rewriter.builder.filled(zero, ty.shape)),
            ])
        }
        Op::Store(op::Store {
            base,
            offsets,
            value,
            mask: Some(mask),
        }) => {
            if rewriter.constant(mask)?.bits != 0 {
                rewriter.builder.emit(
                    Op::Store(op::Store {
                        base,
                        offsets,
                        value,
                        mask: None,
                    }),
                    &[],
                );
            }
            Some(Vec::new())
        }
        Op::AtomicReduce(op::AtomicReduce {
            base,
            offsets,
            value,
            mask: Some(mask),
            op,
        }) => {
            if rewriter.constant(mask)?.bits != 0 {
                let op = Op::AtomicReduce(op::AtomicReduce {
                    base,
                    offsets,
                    value,
                    mask: None,
                    op,
                });
                rewriter.builder.emit(op, &[]);
            }
            Some(Vec::new())
        }
        _ => None,
    }
}

fn rule(rewriter: &mut Rewriter, inst: Inst) -> Option<Value> {
    let data = rewriter.builder.func().inst(inst).clone();
    let &[result] = &data.results[..] else {
        return None;
    };
    let ty = rewriter.builder.ty(result);
    match data.op {
        Op::Splat(op::Splat { x })
        | Op::Broadcast(op::Broadcast { x })
        | Op::Reshape(op::Reshape { x }) => repeat(rewriter, x, ty),
        Op::ExpandDims(op::ExpandDims { x, .. }) => uniform(rewriter, x, ty),
        Op::Transpose(op::Transpose { x, permutation }) => {
            if permutation.iter().copied().eq(0..permutation.len() as u32) {
                return Some(x);
            }
            uniform(rewriter, x, ty)
        }
        Op::Cast(op::Cast { x }) if rewriter.builder.ty(x) == ty => Some(x),
        Op::Bitcast(op::Bitcast { x }) if rewriter.builder.ty(x) == ty && !is_float(ty) => Some(x),
        Op::Binary(op::Binary { op, lhs, rhs }) => binary(rewriter, op, lhs, rhs),
        Op::Select(op::Select {
            condition,
            on_true,
            on_false,
        }) => {
            if on_true == on_false {
                return Some(on_true);
            }
            let condition = rewriter.constant(condition)?;
            Some(if condition.bits != 0 {
                on_true
            } else {
                on_false
            })
        }
        _ => None,
    }
}

fn is_float(ty: Type) -> bool {
    ty.dtype().is_some_and(DType::is_float)
}

/// A value with the same element everywhere, in another shape.
fn uniform(rewriter: &mut Rewriter, x: Value, ty: Type) -> Option<Value> {
    match rewriter.definition(x)?.clone() {
        Op::Constant(op::Constant { value }) => Some(rewriter.builder.filled(value, ty.shape)),
        Op::Splat(op::Splat { x }) => Some(rewriter.builder.splat(x, ty.shape)),
        _ => None,
    }
}

fn repeat(rewriter: &mut Rewriter, x: Value, ty: Type) -> Option<Value> {
    if rewriter.builder.ty(x) == ty {
        return Some(x);
    }
    uniform(rewriter, x, ty)
}

/// Laws of integers and `bool`, and `x * 1`, which is exact for floats too.
fn binary(rewriter: &mut Rewriter, op: BinaryOp, lhs: Value, rhs: Value) -> Option<Value> {
    let (left, right) = (rewriter.constant(lhs), rewriter.constant(rhs));
    let dtype = rewriter.builder.ty(lhs).dtype()?;
    let one = |literal: Option<Literal>| {
        literal.is_some_and(|literal| literal == Literal::from_f64(dtype, 1.0))
    };
    if op == BinaryOp::Mul {
        if one(right) {
            return Some(lhs);
        }
        if one(left) {
            return Some(rhs);
        }
    }
    if dtype.is_float() {
        return None;
    }
    let zero = |literal: Option<Literal>| literal.is_some_and(|literal| literal.bits == 0);
    let ones =
        |literal: Option<Literal>| literal.is_some_and(|literal| literal.bits == dtype.mask());
    match op {
        BinaryOp::Add | BinaryOp::Or | BinaryOp::Xor if zero(right) => Some(lhs),
        BinaryOp::Add | BinaryOp::Or | BinaryOp::Xor if zero(left) => Some(rhs),
        BinaryOp::Sub | BinaryOp::Shl | BinaryOp::Shr if zero(right) => Some(lhs),
        BinaryOp::Mul | BinaryOp::And if zero(right) => Some(rhs),
        BinaryOp::Mul | BinaryOp::And if zero(left) => Some(lhs),
        BinaryOp::And if ones(right) || lhs == rhs => Some(lhs),
        BinaryOp::And if ones(left) => Some(rhs),
        BinaryOp::Or if ones(right) || lhs == rhs => Some(rhs),
        BinaryOp::Or if ones(left) => Some(lhs),
        BinaryOp::Div if one(right) => Some(lhs),
        _ => None,
    }
}
