//! The stages by name, and what they make.

use std::collections::BTreeSet;

use super::*;
use crate::passes::code_size::instructions;
use crate::target::{Determinism, Schedule};
use crate::text::parse;

#[test]
fn every_stage_has_a_name_of_its_own() {
    let distinct: BTreeSet<&str> = stages().collect();
    assert_eq!(distinct.len(), stages().count());
}

#[test]
fn observers_see_every_stage_in_order() {
    for target in [Target::CPU, Target::SM_90A] {
        let mut seen = Vec::new();
        let func = verify::block(parse(FUNCTIONS, "test.bir").expect("parses"));
        let options = Options::default();
        let observe = &mut |name: &'static str, _: &Func| seen.push(name);
        compile(
            func.expect("is valid"),
            &target,
            &options,
            &Facts::default(),
            observe,
        )
        .expect("compiles");
        let cpu = target.distribution == Distribution::Sequential;
        let expected = stages().filter(|name| !(cpu && SCHEDULE.contains(name)));
        assert_eq!(seen, expected.collect::<Vec<_>>());
    }
}

fn holds(func: &Func, wanted: fn(&Op) -> bool) -> bool {
    func.all_insts().iter().any(|&inst| wanted(func.op(inst)))
}

fn is_function(op: &Op) -> bool {
    matches!(op, Op::Function(_))
}

fn is_approximate(op: &Op) -> bool {
    matches!(op, Op::Approximate(_))
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

fn prepared(target: &Target, determinism: Determinism) -> PreparedFunc {
    let func = verify::block(parse(FUNCTIONS, "test.bir").expect("parses"));
    let options = Options {
        determinism,
        bounds: Bounds::Unchecked,
        ..Options::default()
    };
    let facts = Facts::default();
    prepare(
        func.expect("is valid"),
        target,
        &options,
        &facts,
        &mut unobserved,
    )
    .expect("is allowed")
}

#[test]
fn exact_functions_become_primitives() {
    let func = prepared(&Target::SM_90A, Determinism::Exact);
    assert!(!holds(&func, is_function) && !holds(&func, is_approximate));
    assert!(func.to_string().contains("fma"));
}

#[test]
fn without_guarantees_the_device_approximates() {
    let native = prepared(&Target::SM_90A, Determinism::NotGuaranteed);
    assert!(holds(&native, is_approximate) && !holds(&native, is_function));
    let absent = prepared(&Target::CPU, Determinism::NotGuaranteed);
    assert!(!holds(&absent, is_approximate));
}

/// Sorts of `count` numbers, one after the other.
fn sorts(times: usize, count: usize) -> BlockFunc {
    let sort = |at: usize| {
        let (key, next) = (at, at + 1);
        format!(
            "%v{next} = sort [%n{key}], keys=1, axis=0, direction=ascending, count={count} : tile<{count}xf32>
             %n{next} = neg %v{next} : tile<{count}xf32>\n"
        )
    };
    let steps: String = (0..times).map(sort).collect();
    let source = format!(
        "func @sorts block (%x: ptr<f32> write) {{
           %i = arange start=0, end={count} : tile<{count}xi64>
           %n0 = load %x, %i : tile<{count}xf32>
           {steps}
           store %x, %i, %n{times}
         }}"
    );
    verify::block(parse(&source, "test.bir").expect("parses")).expect("is valid")
}

fn on(func: &BlockFunc, warps: Option<u32>) -> Result<LaneFunc, Diagnostics> {
    let schedule = Schedule {
        warps,
        ..Schedule::AUTO
    };
    let options = Options {
        schedule,
        ..Options::default()
    };
    let observe = &mut unobserved;
    let facts = Facts::default();
    compile(func.clone(), &Target::SM_90A, &options, &facts, observe)
}

/// A product that groups of four warps share, and one group alone, stands before a sort of which four warps have too much.
#[test]
fn other_warps_are_tried_from_the_trace() {
    let source = "func @f block (%a: ptr<f32>, %b: ptr<f32>, %o: ptr<f32> write, %y: ptr<f32> write, %n: i64) {
         %i = arange start=0, end=2048 : tile<2048xi64>
         %p = reshape %i : tile<64x32xi64>
         %j = arange start=0, end=256 : tile<256xi64>
         %q = reshape %j : tile<32x8xi64>
         %k = arange start=0, end=512 : tile<512xi64>
         %r = reshape %k : tile<64x8xi64>
         %none = constant value=f32(0) : tile<64x8xf32>
         %zero = constant value=i64(0) : i64
         %s = for %zero, %n, [%none], step=1, stages=1 (%at: i64, %sum: tile<64x8xf32>) {
           %va = load %a, %p : tile<64x32xf32>
           %vb = load %b, %q : tile<32x8xf32>
           %d = dot %va, %vb, %sum, precision=hopper : tile<64x8xf32>
           yield [%d]
         } : tile<64x8xf32>
         store %o, %r, %s
         %l = arange start=0, end=16384 : tile<16384xi64>
         %v = load %y, %l : tile<16384xf32>
         %w = sort [%v], keys=1, axis=0, direction=ascending, count=16384 : tile<16384xf32>
         store %y, %l, %w
       }";
    let func = verify::block(parse(source, "test.bir").expect("parses")).expect("is valid");
    let found = on(&func, Some(4)).expect_err("is too long").to_string();
    let told = "note: use 16 warps, or a smaller tile";
    assert!(found.contains(told), "{found}");
    assert!(on(&func, Some(16)).is_ok());
}

#[test]
fn code_beyond_the_bound_is_refused_or_takes_more_warps() {
    let found = on(&sorts(1, 4096), Some(1)).expect_err("is too long");
    let found = found.to_string();
    for part in [
        "the code of a lane on 1 warp is about ",
        " instructions, expected at most 11000",
        "--> test.bir:4:",
        "note: use 2 warps, or a smaller tile",
    ] {
        assert!(found.contains(part), "{part} is not in {found}");
    }
    assert!(on(&sorts(1, 4096), Some(2)).is_ok());
    // No number of warps fits, and all have been tried.
    let found = on(&sorts(3, 32768), Some(32)).expect_err("is too long");
    assert!(
        found.to_string().contains("note: use a smaller tile"),
        "{found}"
    );
    let sorts = sorts(3, 8192);
    assert!(on(&sorts, Some(4)).is_err());
    let lane = on(&sorts, None).expect("takes more warps");
    assert!(lane.warps > 4 && instructions(&lane) <= MOST_INSTRUCTIONS);
    // What is written is long, whatever the tile.
    let steps: String = (0..12_000)
        .map(|at| format!("%v{} = sub %v{at}, %v0 : tile<8xf32>\n", at + 1))
        .collect();
    let source = format!(
        "func @f block (%x: ptr<f32> write) {{
           %i = arange start=0, end=8 : tile<8xi64>
           %v0 = load %x, %i : tile<8xf32>
           {steps}
           %z = add %v12000, %v0 : tile<8xf32>
           store %x, %i, %z
         }}"
    );
    let long = verify::block(parse(&source, "test.bir").expect("parses"));
    let lane = on(&long.expect("is valid"), None).expect("compiles");
    assert!(instructions(&lane) > 12_000);
}
