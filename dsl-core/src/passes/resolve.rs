//! Turns the determinism level into ops and attributes. Nothing after this pass reads a level.

use super::rewrite::{Rewriter, rewrite};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ir::{BinaryOp, DType, Func, Inst, Kind, Op, Order, UnaryOp, Value};
use crate::target::Determinism;

/// Applies `determinism` to a block function, or names each op that cannot honour it.
///
/// `NotGuaranteed` leaves the order of reductions and scans open and uses the device's approximate
/// instructions for f32 and narrower functions. Every other level keeps the exact functions and
/// the orders written and refuses atomic sums of floats; from `ScheduleInvariant` on `order=any` is
/// an error, and under `Exact` so is an approximate op.
pub fn resolve(func: &mut Func, determinism: Determinism) -> Result<(), Diagnostics> {
    if determinism == Determinism::NotGuaranteed {
        relax(func);
        return Ok(());
    }
    let mut diagnostics = Diagnostics::new();
    for inst in func.all_insts() {
        let Some(Violation { reason, note }) = violation(func, func.op(inst), determinism) else {
            continue;
        };
        let message = format!(
            "`{}` {reason}, but the determinism level is `{}`",
            func.op(inst).mnemonic(),
            determinism.name()
        );
        let diagnostic = Diagnostic::new(func.inst(inst).loc.clone(), message);
        diagnostics.push(match note {
            Some(note) => diagnostic.note(note),
            None => diagnostic,
        });
    }
    diagnostics.into_result(())
}

/// Why an op cannot honour a level, and what to do instead.
struct Violation {
    reason: &'static str,
    note: Option<&'static str>,
}

impl Violation {
    fn because(reason: &'static str) -> Option<Self> {
        Some(Self { reason, note: None })
    }
}

fn violation(func: &Func, op: &Op, determinism: Determinism) -> Option<Violation> {
    match op {
        Op::Reduce {
            order: Order::Any, ..
        }
        | Op::Scan {
            order: Order::Any, ..
        } if determinism >= Determinism::ScheduleInvariant => {
            Violation::because("leaves its order to the schedule")
        }
        Op::Unary { op, .. }
            if op.kind() == Kind::Approximate && determinism == Determinism::Exact =>
        {
            Violation::because("differs between devices")
        }
        Op::AtomicReduce { value, .. } if func.ty(*value).dtype().is_some_and(DType::is_float) => {
            Some(Violation {
                reason: "adds floats in the order of arrival",
                note: Some(
                    "store partial sums and add them in a second kernel, use integers, or ask for \
                     `Determinism::NotGuaranteed`",
                ),
            })
        }
        _ => None,
    }
}

fn relax(func: &mut Func) {
    for inst in func.all_insts() {
        if let Op::Reduce { order, .. } | Op::Scan { order, .. } = &mut func.inst_mut(inst).op {
            *order = Order::Any;
        }
    }
    rewrite(func, &mut |rewriter, inst| {
        approximate(rewriter, inst).map(|value| vec![value])
    });
}

/// The device's way to compute a derived function, if it has one that is good to about 1e-6.
fn approximate(rewriter: &mut Rewriter, inst: Inst) -> Option<Value> {
    let Op::Unary { op, x } = *rewriter.builder.func().op(inst) else {
        return None;
    };
    let dtype = rewriter.builder.ty(x).dtype()?;
    if dtype.compute() != DType::F32 || !has_approximation(op) {
        return None;
    }
    let builder = &mut rewriter.builder;
    let wide = builder.cast(x, DType::F32);
    let log2_e = builder.constant_like(wide, std::f64::consts::LOG2_E);
    let result = match op {
        UnaryOp::Exp => {
            let scaled = builder.binary(BinaryOp::Mul, wide, log2_e);
            builder.approx_exp2(scaled)
        }
        UnaryOp::Exp2 => builder.approx_exp2(wide),
        UnaryOp::Log => {
            let ln_2 = builder.constant_like(wide, std::f64::consts::LN_2);
            let log2 = builder.approx_log2(wide);
            builder.binary(BinaryOp::Mul, log2, ln_2)
        }
        UnaryOp::Log2 => builder.approx_log2(wide),
        UnaryOp::Rsqrt => builder.approx_rsqrt(wide),
        UnaryOp::Sigmoid => {
            let negated = builder.neg(wide);
            let scaled = builder.binary(BinaryOp::Mul, negated, log2_e);
            let power = builder.approx_exp2(scaled);
            let one = builder.constant_like(wide, 1.0);
            let sum = builder.binary(BinaryOp::Add, power, one);
            builder.approx_reciprocal(sum)
        }
        UnaryOp::Tanh
        | UnaryOp::Erf
        | UnaryOp::Neg
        | UnaryOp::Abs
        | UnaryOp::Not
        | UnaryOp::Sqrt
        | UnaryOp::Floor
        | UnaryOp::Ceil
        | UnaryOp::ApproxExp2
        | UnaryOp::ApproxLog2
        | UnaryOp::ApproxReciprocal
        | UnaryOp::ApproxRsqrt => unreachable!("broken invariant: see `has_approximation`"),
    };
    Some(builder.cast(result, dtype))
}

const fn has_approximation(op: UnaryOp) -> bool {
    match op {
        UnaryOp::Exp
        | UnaryOp::Exp2
        | UnaryOp::Log
        | UnaryOp::Log2
        | UnaryOp::Rsqrt
        | UnaryOp::Sigmoid => true,
        // By exp2 tanh would lose all digits near zero.
        UnaryOp::Tanh
        | UnaryOp::Erf
        | UnaryOp::Neg
        | UnaryOp::Abs
        | UnaryOp::Not
        | UnaryOp::Sqrt
        | UnaryOp::Floor
        | UnaryOp::Ceil
        | UnaryOp::ApproxExp2
        | UnaryOp::ApproxLog2
        | UnaryOp::ApproxReciprocal
        | UnaryOp::ApproxRsqrt => false,
    }
}
