//! Widens the operands of matrix products in IEEE arithmetic, and names the tensor cores that multiply bytes and `f64`:
//! what lowerings take.

use super::rewrite::rewrite;
use crate::ir::operand::is_multiplied_in_fragments;
use crate::ir::{Func, Literal, Op, Precision, Type, op};
use crate::target::{Distribution, Target};

/// The most products of one element that tensor cores take of `f64`: lanes hold the operands of all of them, where they take those
/// of more from shared memory.
const MOST_PRODUCTS: usize = 64;

/// Converts the operands of each `dot` with precision `ieee` to the type of its accumulator, but for those that warps
/// multiply as they are, where the machine has any. A product of bytes that warps multiply has the precision of the machine's
/// tensor cores, and one that they do not has `ieee`: both are the exact sum. One added in `f64` has that of the tensor cores
/// where they compute its chain, with an addition of +0 behind it.
pub fn widen_dots(func: &mut Func, target: &Target) {
    let insts = func.all_insts();
    if !insts
        .iter()
        .any(|&inst| matches!(func.op(inst), Op::Dot(_)))
    {
        return;
    }
    let has_hopper = target.gpu.mma.contains(&Precision::Hopper);
    let in_warps = target.distribution == Distribution::Distributed;
    rewrite(func, &mut |rewriter, inst| {
        let builder = &mut rewriter.builder;
        let Op::Dot(dot) = builder.func().op(inst).clone() else {
            return None;
        };
        let sum = builder.ty(dot.accumulator).dtype()?;
        let as_they_are = in_warps && is_multiplied_in_fragments(builder.func(), &dot);
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
        let named = op::Dot {
            a,
            b,
            precision: Precision::Hopper,
            ..dot
        };
        if dot.precision == Precision::Ieee
            && Precision::Hopper.is_chain(sum)
            && has_hopper
            && in_warps
            && products(builder.ty(a)) <= MOST_PRODUCTS
            && is_multiplied_in_fragments(builder.func(), &named)
        {
            let chain = builder.value(Op::Dot(named));
            let zero = builder.filled(Literal::from_f64(sum, 0.0), builder.ty(chain).shape);
            return Some(vec![builder.add(chain, zero)]);
        }
        let changed = a != dot.a || precision != dot.precision;
        changed.then(|| vec![builder.value(Op::Dot(op::Dot { precision, ..named }))])
    });
}

/// The products of one element of a matrix product whose left operand has this type.
fn products(left: Type) -> usize {
    left.shape.extent(left.shape.rank() - 1)
}
