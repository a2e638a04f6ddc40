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
