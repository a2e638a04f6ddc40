//! Random programs, which every way to run a kernel must agree on.

use exactile_harness::testing::planted;
use exactile_harness::testing::programs::{Event, ProgramsOptions, faults, run};

/// How often the standard run must contain each op on each data type.
const ENOUGH: usize = 20;

#[test]
fn every_way_to_run_a_program_gives_the_same_bits() {
    let report = run(ProgramsOptions::default(), &|event| {
        if let Event::Failed(failure) = event {
            println!("{failure}\n");
        }
    });
    println!("{}\n{report}", report.coverage);
    assert!(report.passed(), "{report}");
    let rare = report.coverage.below(ENOUGH);
    assert!(rare.is_empty(), "too rare: {rare:?}");
}

#[test]
fn planted_faults_are_found() {
    let report = faults::run(&ProgramsOptions::default());
    println!("{report}");
    assert!(report.all_found(), "{report}");
}

#[test]
fn faults_planted_one_at_a_time_are_found() {
    let report = planted::run(1, "");
    println!("{report}");
    assert!(
        report.survivors.is_empty() && report.broken.is_empty(),
        "{report}"
    );
}
