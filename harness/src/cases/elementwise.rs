//! Sums of vectors, products of matrices, and counts.

use exactile::prelude::*;
use exactile::{DType, Number};
use exactile_kernels as kernels;
use kernels::activation::Activation;

use crate::demo::{Case, problem, problem_in_phases, random, uniform};

pub(super) fn vector_add<T: Float + Number>(n: usize) -> Case {
    Case {
        kernel: "vector_add",
        dtype: <T as Number>::DTYPE,
        shape: vec![n],
        bytes: (3 * n * size_of::<T>()) as u64,
        flops: n as u64,
        blocks: vec![1024, 256, 4096],
        elements: |block| block,
        setup: Box::new(move |device| {
            let x = Buffer::from_slice(device, &random::<T>(1, n))?;
            let y = Buffer::from_slice(device, &random::<T>(2, n))?;
            let out = Buffer::<T>::zeros(device, n)?;
            Ok(problem(out, move |out, setting| {
                kernels::vector_add(&x, &y, out, setting)
            }))
        }),
    }
}

/// Programs of 64 elements.
pub(super) fn vector_add_small<T: Float + Number>(n: usize) -> Case {
    Case {
        kernel: "vector_add_small",
        blocks: vec![64],
        ..vector_add::<T>(n)
    }
}

pub(super) fn activation<T: Float + Number>(function: Activation, n: usize) -> Case {
    Case {
        kernel: function.name(),
        dtype: <T as Number>::DTYPE,
        shape: vec![n],
        bytes: (2 * n * size_of::<T>()) as u64,
        flops: n as u64,
        blocks: vec![1024, 256, 4096],
        elements: |block| block,
        setup: Box::new(move |device| {
            let x = Buffer::from_slice(device, &random::<T>(12, n))?;
            let out = Buffer::<T>::zeros(device, n)?;
            Ok(problem(out, move |out, setting| {
                kernels::activation(function, &x, out, setting)
            }))
        }),
    }
}

pub(super) fn swiglu<T: Float + Number>(n: usize) -> Case {
    Case {
        kernel: "swiglu",
        dtype: <T as Number>::DTYPE,
        shape: vec![n],
        bytes: (3 * n * size_of::<T>()) as u64,
        flops: n as u64,
        blocks: vec![1024, 256, 4096],
        elements: |block| block,
        setup: Box::new(move |device| {
            let gate = Buffer::from_slice(device, &random::<T>(13, n))?;
            let x = Buffer::from_slice(device, &random::<T>(14, n))?;
            let out = Buffer::<T>::zeros(device, n)?;
            Ok(problem(out, move |out, setting| {
                kernels::swiglu(&gate, &x, out, setting)
            }))
        }),
    }
}

/// Sums of the type of the numbers.
pub(super) fn matmul<T: Float + Number>(m: usize, n: usize, k: usize) -> Case {
    Case {
        kernel: "matmul",
        dtype: <T as Number>::DTYPE,
        shape: vec![m, n, k],
        bytes: ((m * k + k * n + m * n) * size_of::<T>()) as u64,
        flops: (2 * m * n * k) as u64,
        blocks: vec![64, 32, 16],
        elements: |block| block * block,
        setup: Box::new(move |device| {
            let a = Buffer::from_slice(device, &random::<T>(7, m * k))?;
            let b = Buffer::from_slice(device, &random::<T>(8, k * n))?;
            let c = Buffer::<T>::zeros(device, m * n)?;
            Ok(problem(c, move |c, setting| {
                kernels::matmul(&a, &b, c, [m, n, k], setting)
            }))
        }),
    }
}

/// `bins` is a power of two.
pub(super) fn histogram(bins: usize, n: usize) -> Case {
    Case {
        kernel: "histogram",
        dtype: DType::I32,
        shape: vec![n],
        bytes: ((n + bins) * size_of::<i32>()) as u64,
        flops: n as u64,
        blocks: vec![4096, 8192, 16384],
        elements: |block| block,
        setup: Box::new(move |device| {
            let x = Buffer::from_slice(device, &uniform::<i32>(11, n, 0.0, bins as f64))?;
            let out = Buffer::<i32>::zeros(device, bins)?;
            Ok(problem_in_phases(out, move |out, setting| {
                kernels::histogram(&x, out, setting)
            }))
        }),
    }
}
