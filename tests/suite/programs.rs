//! Random programs, which every way to run a kernel must agree on.

use exactile::testing::programs::{ProgramsOptions, run};

/// How often the standard run must contain each op on each data type.
const ENOUGH: usize = 20;

#[test]
fn every_way_to_run_a_program_gives_the_same_bits() {
    let report = run(ProgramsOptions::default());
    println!("{}\n{report}", report.coverage);
    assert!(report.passed(), "{report}");
    let rare = report.coverage.below(ENOUGH);
    assert!(rare.is_empty(), "too rare: {rare:?}");
}
