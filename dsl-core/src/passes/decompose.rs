//! Replaces functions by their definitions, and approximate ones where a device has none.

use super::float_range;
use super::rewrite::rewrite;
use crate::entity::EntityMap;
use crate::ir::{Func, Inst, Op, op};
use crate::semantics::derived::{Domain, define, define_exact, define_native};

/// Replaces each function by its definition over primitives: what both backends compute.
pub fn decompose(func: &mut Func) {
    let domain = domains(func);
    rewrite(func, &mut |rewriter, inst| {
        let Op::Function(op::Function { op, x }) = *rewriter.builder.func().op(inst) else {
            return None;
        };
        let domain = domain(rewriter.builder.func(), inst);
        Some(vec![define(&mut rewriter.builder, op, x, domain)])
    });
}

/// Replaces each function whose bits the device's approximate ones give too: for devices that have these.
pub fn decompose_native(func: &mut Func) {
    rewrite(func, &mut |rewriter, inst| {
        let Op::Function(op::Function { op, x }) = *rewriter.builder.func().op(inst) else {
            return None;
        };
        define_native(&mut rewriter.builder, op, x).map(|value| vec![value])
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
        let domain = domain(rewriter.builder.func(), inst);
        let exact = define_exact(&mut rewriter.builder, op, x, domain);
        Some(vec![exact])
    });
}

/// What is known of the arguments of the instructions that `func` has now.
fn domains(func: &Func) -> impl Fn(&Func, Inst) -> Domain + use<> {
    let known = float_range::domains(func);
    let mut domains = EntityMap::filled(func.value_count(), Domain::ANYTHING);
    for inst in func.all_insts() {
        let operands = func.op(inst).operands();
        if let (&[x], &[result]) = (&operands[..], &func.inst(inst).results[..]) {
            domains[result] = known[x];
        }
    }
    move |func, inst| {
        let result = func.inst(inst).results[0];
        domains.get(result).copied().unwrap_or(Domain::ANYTHING)
    }
}
