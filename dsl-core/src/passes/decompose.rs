//! Replaces derived ops by their definitions, and approximate ops where a device has none.

use super::rewrite::rewrite;
use crate::ir::{Func, Kind, Op};
use crate::semantics::derived::define;

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
    rewrite(
        func,
        &mut |rewriter, inst| match *rewriter.builder.func().op(inst) {
            Op::Unary { op, x } if op.kind() == kind => {
                Some(vec![define(&mut rewriter.builder, op, x)])
            }
            _ => None,
        },
    );
}
