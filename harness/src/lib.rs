//! What runs kernels to judge and to measure them: the cases of the demonstration, the benchmark, and
//! the test suites that `cargo test` and `exactile selftest` share. Not for users.

pub mod bench;
pub mod demo;
pub mod testing;
