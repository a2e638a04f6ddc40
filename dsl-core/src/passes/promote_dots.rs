//! Writes out products of matrices whose sums are promoted.

use super::rewrite::{Rewriter, rewrite};
use crate::ir::{Axis, Func, Literal, Op, Value, op};

/// Replaces each `dot_promoted` by a `dot` of each part and the additions of those.
pub fn promote_dots(func: &mut Func) {
    let insts = func.all_insts();
    if !insts
        .iter()
        .any(|&inst| matches!(func.op(inst), Op::DotPromoted(_)))
    {
        return;
    }
    rewrite(func, &mut |rewriter, inst| {
        let Op::DotPromoted(op) = rewriter.builder.func().op(inst).clone() else {
            return None;
        };
        Some(vec![promoted(rewriter, &op)])
    });
}

fn promoted(rewriter: &mut Rewriter, op: &op::DotPromoted) -> Value {
    let builder = &mut rewriter.builder;
    let (ty, shape) = (builder.ty(op.accumulator), builder.ty(op.a).shape);
    let dtype = ty
        .dtype()
        .expect("broken invariant: an accumulator is of numbers");
    let accumulator = builder.filled(Literal::from_bits(dtype, 0), ty.shape);
    let column = shape.rank() - 1;
    let products = shape.extent(column) as i64;
    let mut sum = op.accumulator;
    for start in (0..products).step_by(op.count as usize) {
        let mut part = |x, axis: usize| match op.count == products {
            true => x,
            false => builder.value(Op::Slice(op::Slice {
                x,
                axis: Axis(axis as u8),
                start,
                count: op.count,
            })),
        };
        let (a, b) = (part(op.a, column), part(op.b, column - 1));
        let part = builder.value(Op::Dot(op::Dot {
            a,
            b,
            accumulator,
            precision: op.precision,
        }));
        sum = builder.add(sum, part);
    }
    sum
}
