//! Whether a loop of two products is rotated is the schedule's to say.

use exactile_core::facts::Facts;
use exactile_core::ir::Func;
use exactile_core::pipeline;
use exactile_core::target::{Bounds, Options, Schedule, Target};
use exactile_core::{text, verify};

use crate::root;

/// What is lowered of the loop that a filetest rotates.
fn rotated(schedule: Schedule) -> String {
    let file = root().join("tests/filetests/schedule/rotated.bir");
    let source = std::fs::read_to_string(file).expect("is there");
    let (_, source) = source.split_once("\nfunc ").expect("has a function");
    let (source, _) = source.split_once("\n}").expect("has an end");
    let func = text::parse(&format!("func {source}\n}}"), "rotated.bir").expect("parses");
    let func = verify::block(func).expect("verifies");
    let options = Options {
        bounds: Bounds::Unchecked,
        schedule: schedule.warps(4),
        ..Options::default()
    };
    let mut seen = String::new();
    let mut observe = |stage: &'static str, func: &Func| {
        if stage == "rotate" {
            seen = func.to_string();
        }
    };
    pipeline::compile(
        func,
        &Target::SM_90A,
        &options,
        &Facts::default(),
        &mut observe,
    )
    .expect("compiles");
    seen
}

#[test]
fn iterations_overlap_unless_the_schedule_says_otherwise() {
    let products = |schedule| rotated(schedule).matches("= dot ").count();
    let [auto, two, one] = [None, Some(2), Some(1)].map(|overlap| {
        products(Schedule {
            overlap,
            ..Schedule::AUTO
        })
    });
    assert_eq!(
        [auto, two],
        [4, 4],
        "the first front stands before the loop, the last back behind it"
    );
    assert_eq!(one, 2);
}
