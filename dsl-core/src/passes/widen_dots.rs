//! Widens the operands of matrix products in IEEE arithmetic: what both lowerings take.

use super::rewrite::rewrite;
use crate::ir::operand::is_multiplied_in_fragments;
use crate::ir::{Func, Op, Precision, op};
use crate::target::Distribution;

/// Converts the operands of each `dot` with precision `ieee` to the type of its accumulator, but for those that warps
/// multiply as they are, where the machine has any.
pub fn widen_dots(func: &mut Func, distribution: Distribution) {
    let insts = func.all_insts();
    if !insts
        .iter()
        .any(|&inst| matches!(func.op(inst), Op::Dot(_)))
    {
        return;
    }
    rewrite(func, &mut |rewriter, inst| {
        let builder = &mut rewriter.builder;
        let Op::Dot(dot) = builder.func().op(inst).clone() else {
            return None;
        };
        let sum = builder.ty(dot.accumulator).dtype()?;
        let as_they_are = match distribution {
            Distribution::Sequential => false,
            Distribution::Distributed => is_multiplied_in_fragments(builder.func(), &dot),
        };
        if dot.precision != Precision::Ieee || as_they_are {
            return None;
        }
        let [a, b] = [dot.a, dot.b].map(|x| builder.cast(x, sum));
        (a != dot.a).then(|| vec![builder.value(Op::Dot(op::Dot { a, b, ..dot }))])
    });
}
