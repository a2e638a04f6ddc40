//! Turns the determinism level into ops and attributes. Nothing after this pass reads a level.

use super::rewrite::rewrite;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ir::{Effect, Func, MemoryAccess, Op, Order, op};
use crate::semantics::derived::define_approximate;
use crate::target::Determinism;

/// Applies `determinism` to a block function, or names each op that cannot honour it.
///
/// `NotGuaranteed` leaves the order of reductions and scans open and uses the device's approximate
/// instructions for f32 and narrower functions. Every other level keeps the exact functions and
/// the orders written and refuses atomic sums of floats, which round, and atomics that give what memory held; from
/// `ScheduleInvariant` on `order=any` is an error, and under `Exact` so is an approximate op.
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
    let orders_floats = |access: MemoryAccess| {
        let dtype = access.value.and_then(|value| func.ty(value).dtype());
        matches!(access.effect, Effect::Combines(op) if dtype.is_some_and(|dtype| op.rounds(dtype)))
    };
    if let Op::Reduce(op::Reduce { order, .. }) | Op::Scan(op::Scan { order, .. }) = op
        && *order == Order::Any
        && determinism >= Determinism::ScheduleInvariant
    {
        return Violation::because("leaves its order to the schedule");
    }
    if matches!(op, Op::Approximate(_)) && determinism == Determinism::Exact {
        return Some(Violation {
            reason: "differs between devices",
            note: Some(
                "write the exact one (`exp2`, `sin`, `1 / x` and their like), or ask for `Determinism::ScheduleInvariant` \
                 or `Determinism::NotGuaranteed`",
            ),
        });
    }
    if let Op::AtomicFetch(_) = op {
        return Some(Violation {
            reason: "gives what memory holds when its turn comes",
            note: Some(
                "combine without a result (`atomic_add` and its like), count in one launch, scan the counts and \
             write in a second one, or ask for `Determinism::NotGuaranteed`",
            ),
        });
    }
    op.access()
        .filter(|&access| orders_floats(access))
        .map(|_| Violation {
            reason: "adds floats in the order of arrival",
            note: Some(
                "sums by key are exact in `exactile_kernels::segment_sum`; else store partial sums and add them in a \
                 second kernel, use integers, or ask for `Determinism::NotGuaranteed`",
            ),
        })
}

fn relax(func: &mut Func) {
    for inst in func.all_insts() {
        if let Op::Reduce(op::Reduce { order, .. }) | Op::Scan(op::Scan { order, .. }) =
            &mut func.inst_mut(inst).op
        {
            *order = Order::Any;
        }
    }
    rewrite(func, &mut |rewriter, inst| {
        let Op::Function(op::Function { op, x }) = *rewriter.builder.func().op(inst) else {
            return None;
        };
        define_approximate(&mut rewriter.builder, op, x).map(|value| vec![value])
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse;
    use crate::verify;

    fn read(source: &str) -> Func {
        let func = parse(source, "test.bir").expect("parses");
        verify::block(func).expect("is valid").into_inner()
    }

    const SUM: &str = "func @f block (%x: ptr<f32>, %y: ptr<f32> write) {
      %i = arange start=0, end=8 : tile<8xi64>
      %a = load %x, %i : tile<8xf32>
      %s = reduce [%a], axis=0, order=ORDER (%l: f32, %r: f32) {
        %t = add %l, %r : f32
        yield [%t]
      } : f32
      %z = constant value=i64(0) : i64
      store %y, %z, %s
    }";

    #[test]
    fn orders_follow_the_level() {
        let mut func = read(&SUM.replace("ORDER", "tree"));
        resolve(&mut func, Determinism::NotGuaranteed).expect("relaxes");
        assert!(func.to_string().contains("order=any"));

        let mut func = read(&SUM.replace("ORDER", "any"));
        resolve(&mut func, Determinism::BatchInvariant).expect("is allowed");
        let errors = resolve(&mut func, Determinism::Exact).expect_err("is not exact");
        let messages: Vec<&str> = errors.iter().map(|error| error.message.as_str()).collect();
        assert_eq!(
            messages,
            ["`reduce` leaves its order to the schedule, but the determinism level is `exact`"]
        );
    }

    #[test]
    fn approximations_are_refused_only_when_exact() {
        let source = "func @f block (%x: f32, %y: ptr<f32> write) {
      %a = approx_exp2 %x : f32
      %z = constant value=i64(0) : i64
      store %y, %z, %a
    }";
        let mut func = read(source);
        resolve(&mut func, Determinism::ScheduleInvariant).expect("is allowed");
        let errors = resolve(&mut func, Determinism::Exact).expect_err("is not exact");
        let errors: Vec<_> = errors.iter().collect();
        assert_eq!(errors.len(), 1);
        assert!(errors[0].notes[0].contains("`exp2`"), "{errors:?}");
    }

    #[test]
    fn atomics_that_round_are_refused() {
        let source = |dtype: &str, op: &str| {
            format!(
                "func @f block (%x: {dtype}, %y: ptr<{dtype}> write) {{
                   %z = constant value=i64(0) : i64
                   atomic_reduce %y, %z, %x, op={op}
                 }}"
            )
        };
        for dtype in ["f16", "bf16", "f32", "f64"] {
            let mut func = read(&source(dtype, "add"));
            let errors = resolve(&mut func, Determinism::BatchInvariant).expect_err("rounds");
            let note = errors.iter().next().map(|error| error.notes[0].clone());
            assert!(note.is_some_and(|note| {
                note.contains("sums by key are exact in `exactile_kernels::segment_sum`")
            }));
            resolve(&mut func, Determinism::NotGuaranteed).expect("is allowed");
        }
        for (dtype, op) in [("f32", "min"), ("f64", "max"), ("i32", "add")] {
            resolve(&mut read(&source(dtype, op)), Determinism::Exact).expect("is exact");
        }
    }
}
