//! Widens the operands of matrix products in IEEE arithmetic: what both lowerings take.

use super::rewrite::rewrite;
use crate::ir::{Func, Op, Precision, op};

/// Converts the operands of each `dot` with precision `ieee` to the type of its accumulator.
pub fn widen_dots(func: &mut Func) {
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
        if dot.precision != Precision::Ieee {
            return None;
        }
        let sum = builder.ty(dot.accumulator).dtype()?;
        let [a, b] = [dot.a, dot.b].map(|x| builder.cast(x, sum));
        (a != dot.a).then(|| vec![builder.value(Op::Dot(op::Dot { a, b, ..dot }))])
    });
}
