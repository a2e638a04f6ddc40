//! Kernels as Rust functions: the same bits on CPU and GPU.

mod array;
pub mod autotune;
mod buffer;
mod compare;
mod device;
mod error;
mod memory;
pub mod npy;
mod tensor;

pub use array::Array;
pub use buffer::Buffer;
pub use compare::{
    Comparable, Comparison, Mismatch, Tolerance, assert_bits_equal, compare, compare_within,
};
pub use device::{Device, DeviceKind};
pub use error::{Error, Result};
pub use exactile_core::ir::{DType, Number};
pub use exactile_core::target::{Bounds, Determinism, Options, Schedule};
pub use half::{bf16, f16};
pub use tensor::{Extents, TensorView, TensorViewMut};
