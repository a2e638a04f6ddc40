//! Replaces functions by their definitions, and approximate ones where a device has none.

use super::float_range;
use super::rewrite::rewrite;
use crate::ir::{Func, Op, Value, op};
use crate::semantics::derived::{Domain, define, define_exact};

/// Replaces each function by its definition over primitives: what both backends compute.
pub fn decompose(func: &mut Func) {
    let domain = domains(func);
    rewrite(func, &mut |rewriter, inst| {
        let Op::Function(op::Function { op, x }) = *rewriter.builder.func().op(inst) else {
            return None;
        };
        Some(vec![define(&mut rewriter.builder, op, x, domain(x))])
    });
}

/// Replaces each approximate function by the exact one that it approximates: for devices without
/// instructions of their own.
pub fn decompose_approximate(func: &mut Func) {
    let domain = domains(func);
    rewrite(func, &mut |rewriter, inst| {
        let Op::Approximate(op::Approximate { op, x }) = *rewriter.builder.func().op(inst) else {
            return None;
        };
        let exact = define_exact(&mut rewriter.builder, op, x, domain(x));
        Some(vec![exact])
    });
}

/// What is known of the values that `func` has now.
fn domains(func: &Func) -> impl Fn(Value) -> Domain + use<> {
    let not_positive = float_range::not_positive(func);
    move |x| match not_positive.get(x) {
        Some(true) => Domain::NotPositive,
        Some(false) | None => Domain::Anything,
    }
}
