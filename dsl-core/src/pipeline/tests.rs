//! The stages by name, and what they make.

use std::collections::BTreeSet;

use super::*;
use crate::target::Determinism;
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

fn prepared(target: &Target, determinism: Determinism) -> BlockFunc {
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
