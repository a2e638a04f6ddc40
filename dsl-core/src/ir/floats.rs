//! The floats that Rust has not.

pub use half::{bf16, f16};
