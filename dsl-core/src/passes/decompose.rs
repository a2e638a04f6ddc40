//! Replaces derived ops by their definitions, and approximate ops where a device has none.

use super::float_range;
use super::rewrite::rewrite;
use crate::ir::{Func, Kind, Op};
use crate::semantics::derived::{Domain, define};

/// Replaces each derived op by its definition over primitives: what both backends compute.
pub fn decompose(func: &mut Func) {
    replace(func, Kind::Derived);
}

/// Replaces each approximate op by the exact function that it approximates: for devices without
/// instructions of their own.
pub fn decompose_approximate(func: &mut Func) {
    replace(func, Kind::Approximate);
}

fn replace(func: &mut Func, kind: Kind) {
    let not_positive = float_range::not_positive(func);
    rewrite(
        func,
        &mut |rewriter, inst| match *rewriter.builder.func().op(inst) {
            Op::Unary { op, x } if op.kind() == kind => {
                let domain = match not_positive.get(x) {
                    Some(true) => Domain::NotPositive,
                    Some(false) | None => Domain::Anything,
                };
                Some(vec![define(&mut rewriter.builder, op, x, domain)])
            }
            _ => None,
        },
    );
}
