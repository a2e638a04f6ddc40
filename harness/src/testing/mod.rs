//! What `cargo test` and `exactile selftest` share.

pub mod conformance;
pub mod determinism;
pub mod execute;
pub mod exhaustive;
pub mod filetests;
pub mod fuzz;
pub mod levels;
pub mod planted;
pub mod products;
pub mod programs;
pub mod runtime;

use exactile::{Error, Result, Schedule};

/// What the first of these schedules gives whose code is not too much for a lane.
fn first_bounded<T>(
    schedules: &[Schedule],
    mut run: impl FnMut(Schedule) -> Result<T>,
) -> Result<T> {
    let mut refused = Error::Invalid("no schedule is given".to_string());
    for &schedule in schedules {
        match run(schedule) {
            Err(error) if is_too_much_code(&error.to_string()) => refused = error,
            given => return given,
        }
    }
    Err(refused)
}

/// Whether an error says that a schedule leads to too much code for a lane.
pub fn is_too_much_code(error: &str) -> bool {
    let texts = [
        " instructions, expected at most",
        " registers of each lane on ",
    ];
    texts.iter().any(|it| error.contains(it))
}
