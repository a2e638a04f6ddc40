//! Widens the operands of matrix products in IEEE arithmetic, and names the tensor cores that multiply bytes: what
//! lowerings take.

use super::rewrite::rewrite;
use crate::ir::operand::is_multiplied_in_fragments;
use crate::ir::{Func, Op, Precision, op};
use crate::target::{Distribution, Target};

/// Converts the operands of each `dot` with precision `ieee` to the type of its accumulator, but for those that warps
/// multiply as they are, where the machine has any. A product of bytes that warps multiply has the precision of the machine's
/// tensor cores, and one that they do not has `ieee`: both are the exact sum.
pub fn widen_dots(func: &mut Func, target: &Target) {
    let insts = func.all_insts();
    if !insts
        .iter()
        .any(|&inst| matches!(func.op(inst), Op::Dot(_)))
    {
        return;
    }
    let has_hopper = target.gpu.mma.contains(&Precision::Hopper);
    rewrite(func, &mut |rewriter, inst| {
        let builder = &mut rewriter.builder;
        let Op::Dot(dot) = builder.func().op(inst).clone() else {
            return None;
        };
        let sum = builder.ty(dot.accumulator).dtype()?;
        let as_they_are = match target.distribution {
            Distribution::Sequential => false,
            Distribution::Distributed => is_multiplied_in_fragments(builder.func(), &dot),
        };
        let precision = if sum.is_float() {
            dot.precision
        } else if as_they_are && has_hopper {
            Precision::Hopper
        } else {
            Precision::Ieee
        };
        let [a, b] = match precision == Precision::Ieee && !as_they_are {
            true => [dot.a, dot.b].map(|x| builder.cast(x, sum)),
            false => [dot.a, dot.b],
        };
        let changed = a != dot.a || precision != dot.precision;
        changed.then(|| {
            vec![builder.value(Op::Dot(op::Dot {
                a,
                b,
                precision,
                ..dot
            }))]
        })
    });
}
