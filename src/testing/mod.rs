//! What `cargo test` and `exactile selftest` share.

pub mod execute;
pub mod exhaustive;
pub mod filetests;
pub mod programs;
