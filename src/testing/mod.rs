//! What `cargo test` and `exactile selftest` share.

pub mod exhaustive;
pub mod programs;
