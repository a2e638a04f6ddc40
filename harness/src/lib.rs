//! What runs kernels to judge and to measure them: the cases of the demonstration, the benchmark, the
//! test suites that `cargo test` and `exactile selftest` share, and the files that the command reads and
//! writes. Not for users.

// A print macro panics where its stream is full or closed.
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod bench;
pub mod cases;
pub mod compile;
mod composed;
pub mod demo;
pub mod npy;
pub mod ops;
pub mod plot;
pub mod testing;
pub mod tune;
