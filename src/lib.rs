//! Kernels as Rust functions: the same bits on CPU and GPU.
