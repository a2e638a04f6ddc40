//! What `cargo test` and `exactile selftest` share.

pub mod conformance;
pub mod determinism;
pub mod execute;
pub mod exhaustive;
pub mod filetests;
pub mod fuzz;
pub mod levels;
pub mod planted;
pub mod programs;
pub mod runtime;

/// Whether an error says that a schedule leads to too much code for a lane.
pub fn is_too_much_code(error: &str) -> bool {
    let texts = [
        " instructions, expected at most",
        " registers of each lane on ",
    ];
    texts.iter().any(|it| error.contains(it))
}
