//! The order of the passes between tracing and lowering.

use super::{decompose, resolve, sort_keys, tidy, uniform_mask};
use crate::diagnostic::Diagnostics;
use crate::ir::Func;
use crate::target::Determinism;
use crate::verify::{self, BlockFunc};

/// What a backend has of its own for the math functions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Approximations {
    /// Instructions for the approximate ops.
    Native,
    /// Nothing: approximate ops mean the exact functions.
    Absent,
}

/// The passes on a traced function, before it is lowered: the same for every backend up to what
/// `approximations` says, which matters only where bits are not guaranteed.
pub fn prepare(
    func: BlockFunc,
    determinism: Determinism,
    approximations: Approximations,
) -> Result<BlockFunc, Diagnostics> {
    prepare_observed(func, determinism, approximations, &mut |_, _| ())
}

/// [`prepare`], which shows the function to `observe` after each pass that it names.
pub fn prepare_observed(
    func: BlockFunc,
    determinism: Determinism,
    approximations: Approximations,
    observe: &mut dyn FnMut(&'static str, &Func),
) -> Result<BlockFunc, Diagnostics> {
    let mut func = func.into_inner();
    resolve::resolve(&mut func, determinism)?;
    observe("resolve", &func);
    match approximations {
        Approximations::Native => {}
        Approximations::Absent => decompose::decompose_approximate(&mut func),
    }
    decompose::decompose(&mut func);
    observe("decompose", &func);
    sort_keys::sort_keys(&mut func);
    observe("sort_keys", &func);
    tidy(&mut func);
    observe("tidy", &func);
    uniform_mask::split_uniform_masks(&mut func);
    observe("split_uniform_masks", &func);
    tidy(&mut func);
    observe("tidy", &func);
    verify::block(func)
}

#[cfg(test)]
mod tests {
    use super::super::fold;
    use super::*;
    use crate::ir::Op;
    use crate::text::parse;

    fn read(source: &str) -> Func {
        let func = parse(source, "test.bir").expect("parses");
        verify::block(func).expect("is valid").into_inner()
    }

    fn holds(func: &Func, wanted: fn(&Op) -> bool) -> bool {
        func.all_insts().iter().any(|&inst| wanted(func.op(inst)))
    }

    fn is_function(op: &Op) -> bool {
        matches!(op, Op::Function { .. })
    }

    fn is_approximate(op: &Op) -> bool {
        matches!(op, Op::Approximate { .. })
    }

    const FUNCTIONS: &str = "func @f block (%x: ptr<f16>, %y: ptr<f16> write) {
      %i = arange start=0, end=8 : tile<8xi64>
      %a = load %x, %i : tile<8xf16>
      %b = exp %a : tile<8xf16>
      %c = tanh %b : tile<8xf16>
      %d = rsqrt %c : tile<8xf16>
      %e = sigmoid %d : tile<8xf16>
      %g = log %e : tile<8xf16>
      store %y, %i, %g
    }";

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
    fn exact_functions_become_primitives() {
        let func = verify::block(read(FUNCTIONS)).expect("is valid");
        let func = prepare(func, Determinism::Exact, Approximations::Native).expect("is exact");
        assert!(!holds(&func, is_function) && !holds(&func, is_approximate));
        assert!(func.to_string().contains("fma"));
    }

    #[test]
    fn without_guarantees_the_device_approximates() {
        let read_block = || verify::block(read(FUNCTIONS)).expect("is valid");
        let level = Determinism::NotGuaranteed;
        let native = prepare(read_block(), level, Approximations::Native).expect("is valid");
        assert!(holds(&native, is_approximate) && !holds(&native, is_function));
        let absent = prepare(read_block(), level, Approximations::Absent).expect("is valid");
        assert!(!holds(&absent, is_approximate));
    }

    #[test]
    fn orders_follow_the_level() {
        let mut func = read(&SUM.replace("ORDER", "tree"));
        resolve::resolve(&mut func, Determinism::NotGuaranteed).expect("relaxes");
        assert!(func.to_string().contains("order=any"));

        let mut func = read(&SUM.replace("ORDER", "any"));
        resolve::resolve(&mut func, Determinism::BatchInvariant).expect("is allowed");
        let errors = resolve::resolve(&mut func, Determinism::Exact).expect_err("is not exact");
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
        resolve::resolve(&mut func, Determinism::ScheduleInvariant).expect("is allowed");
        let errors = resolve::resolve(&mut func, Determinism::Exact).expect_err("is not exact");
        assert_eq!(errors.iter().count(), 1);
    }

    #[test]
    fn constants_fold_to_the_bits_of_the_semantics() {
        let mut func = read(
            "func @f block (%y: ptr<f32> write) {
      %a = constant value=i32(2147483647) : tile<4xi32>
      %b = add %a, %a : tile<4xi32>
      %c = cast %b : tile<4xf32>
      %d = exp %c : tile<4xf32>
      %i = arange start=0, end=4 : tile<4xi64>
      store %y, %i, %d
    }",
        );
        fold::fold(&mut func);
        let text = func.to_string();
        assert!(
            !text.contains(" add ") && !text.contains(" cast ") && !text.contains(" exp "),
            "{text}"
        );
        // e^-2 is 0x1.152aaa3b..p-3.
        assert!(text.contains("value=f32(0x1.152aaap-3)"), "{text}");
    }
}
