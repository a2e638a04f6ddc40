//! Writes out products of matrices in parts: those whose sums are promoted, and those that shared memory does not hold.

use super::rewrite::{Rewriter, rewrite};
use crate::builder::Builder;
use crate::ir::operand::is_multiplied_in_fragments;
use crate::ir::{Axis, Func, Literal, Op, Precision, Value, op};
use crate::target::{Distribution, Target};

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
    let products = shape.extent(shape.rank() - 1) as i64;
    let mut sum = op.accumulator;
    for start in (0..products).step_by(op.count as usize) {
        let [a, b] = part(builder, [op.a, op.b], start, op.count);
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

/// Makes a chain of each `dot` that lanes multiply and whose operands take more than half of a GPU's shared memory.
pub fn part_dots(func: &mut Func, target: &Target) {
    if target.distribution == Distribution::Sequential {
        return;
    }
    let most = u64::from(target.gpu.shared_bytes) / 2;
    rewrite(func, &mut |rewriter, inst| {
        let builder = &mut rewriter.builder;
        let func = builder.func();
        let Op::Dot(dot) = func.op(inst).clone() else {
            return None;
        };
        if dot.precision != Precision::Ieee || is_multiplied_in_fragments(func, &dot) {
            return None;
        }
        let shape = func.ty(dot.a).shape;
        let products = shape.extent(shape.rank() - 1) as i64;
        let bytes = |value: Value| {
            let ty = func.ty(value);
            let bytes = ty.dtype().map_or(0, |dtype| u64::from(dtype.bytes()));
            ty.shape.elements() as u64 * bytes
        };
        let parts = (bytes(dot.a) + bytes(dot.b)).div_ceil(most);
        let count = products / (parts.next_power_of_two() as i64).min(products);
        (count < products).then(|| {
            let mut accumulator = dot.accumulator;
            for start in (0..products).step_by(count as usize) {
                let [a, b] = part(builder, [dot.a, dot.b], start, count);
                accumulator = builder.value(Op::Dot(op::Dot {
                    a,
                    b,
                    accumulator,
                    precision: dot.precision,
                }));
            }
            vec![accumulator]
        })
    });
}

/// So many products of two operands, from `start` on.
fn part(builder: &mut Builder, [a, b]: [Value; 2], start: i64, count: i64) -> [Value; 2] {
    let column = builder.ty(a).shape.rank() - 1;
    [(a, column), (b, column - 1)].map(|(x, axis)| {
        match builder.ty(x).shape.extent(axis) as i64 == count {
            true => x,
            false => builder.value(Op::Slice(op::Slice {
                x,
                axis: Axis(axis as u8),
                start,
                count,
            })),
        }
    })
}
