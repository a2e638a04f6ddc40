//! Products of matrices by tensor cores.

use exactile::prelude::*;
use exactile::{DType, F8E4M3, Number, bf16};
use exactile_kernels as kernels;
use exactile_kernels::activation::Activation;

use crate::demo::{Case, problem, random, uniform};

pub(super) fn tensor_matmul<T: Float + Number>(m: usize, n: usize, k: usize) -> Case {
    Case {
        kernel: "tensor_matmul",
        dtype: <T as Number>::DTYPE,
        shape: vec![m, n, k],
        bytes: ((m * k + k * n + m * n) * size_of::<T>()) as u64,
        flops: (2 * m * n * k) as u64,
        blocks: vec![128, 64],
        elements: |block| block * 256,
        setup: Box::new(move |device| {
            let a = Buffer::from_slice(device, &random::<T>(7, m * k))?;
            let b = Buffer::from_slice(device, &random::<T>(8, k * n))?;
            let c = Buffer::<T>::zeros(device, m * n)?;
            Ok(problem(c, move |c, setting| {
                kernels::tensor_matmul(&a, &b, c, [m, n, k], setting)
            }))
        }),
    }
}

/// Square matrices, by programs that take tiles in turns.
pub(super) fn persistent_matmul<T: Float + Number>(extent: usize) -> Case {
    let shape = [extent; 3];
    Case {
        kernel: "persistent_matmul",
        setup: Box::new(move |device| {
            let a = Buffer::from_slice(device, &random::<T>(7, extent * extent))?;
            let b = Buffer::from_slice(device, &random::<T>(8, extent * extent))?;
            let c = Buffer::<T>::zeros(device, extent * extent)?;
            Ok(problem(c, move |c, setting| {
                kernels::persistent_matmul([&a, &b], c, shape, setting)
            }))
        }),
        ..tensor_matmul::<T>(extent, extent, extent)
    }
}

/// Of 8-bit floats, rows of both along the products; with sums that go on in `f32` after each 128 products.
pub(super) fn float8_matmul([m, n, k]: [usize; 3], is_promoted: bool) -> Case {
    Case {
        kernel: match is_promoted {
            true => "float8_matmul_promoted",
            false => "float8_matmul",
        },
        dtype: DType::F8E4M3,
        shape: vec![m, n, k],
        bytes: (m * k + k * n + m * n * size_of::<bf16>()) as u64,
        flops: (2 * m * n * k) as u64,
        blocks: vec![128, 64],
        elements: |block| block * 256,
        setup: Box::new(move |device| {
            let a = Buffer::from_slice(device, &random::<F8E4M3>(7, m * k))?;
            let b = Buffer::from_slice(device, &random::<F8E4M3>(8, n * k))?;
            let c = Buffer::<bf16>::zeros(device, m * n)?;
            Ok(problem(c, move |c, setting| {
                kernels::float8_matmul([&a, &b], (1.0, is_promoted), c, [m, n, k], setting)
            }))
        }),
    }
}

/// Rows of both along the products, of bytes and of `f32` as TF32.
pub(super) fn rows_matmul<T: Numeric + Number, A: Numeric + Number>([m, n, k]: [usize; 3]) -> Case {
    Case {
        kernel: "rows_matmul",
        dtype: <T as Number>::DTYPE,
        shape: vec![m, n, k],
        bytes: ((m * k + k * n) * size_of::<T>() + m * n * size_of::<A>()) as u64,
        flops: (2 * m * n * k) as u64,
        blocks: vec![128, 64],
        elements: |block| block * 256,
        setup: Box::new(move |device| {
            let most = if <T as Number>::DTYPE.is_float() {
                1.0
            } else {
                128.0
            };
            let numbers = |seed, len| uniform::<T>(seed, len, -most, most);
            let a = Buffer::from_slice(device, &numbers(7, m * k))?;
            let b = Buffer::from_slice(device, &numbers(8, n * k))?;
            let c = Buffer::<A>::zeros(device, m * n)?;
            Ok(problem(c, move |c, setting| {
                kernels::rows_matmul([&a, &b], c, [m, n, k], setting)
            }))
        }),
    }
}

/// A layer with its bias and GELU by tanh, in one pass.
pub(super) fn linear_gelu<T: Float + Number>([m, n, k]: [usize; 3]) -> Case {
    Case {
        kernel: "linear_gelu",
        bytes: ((m * k + n * k + m * n + n) * size_of::<T>()) as u64,
        setup: Box::new(move |device| {
            let x = Buffer::from_slice(device, &random::<T>(7, m * k))?;
            let weight = Buffer::from_slice(device, &random::<T>(8, n * k))?;
            let bias = Buffer::from_slice(device, &random::<T>(9, n))?;
            let out = Buffer::<T>::zeros(device, m * n)?;
            Ok(problem(out, move |out, setting| {
                let function = Some(Activation::GeluTanh);
                kernels::linear(
                    [&x, &weight],
                    Some(&bias),
                    function,
                    out,
                    [m, n, k],
                    setting,
                )
            }))
        }),
        ..tensor_matmul::<T>(m, n, k)
    }
}

/// As many rows for each of some matrices `[k, n]`.
pub(super) fn grouped_matmul<T: Float + Number>(groups: usize, [m, n, k]: [usize; 3]) -> Case {
    let rows = groups * m;
    Case {
        kernel: "grouped_matmul",
        shape: vec![groups, m, n, k],
        bytes: ((rows * k + groups * k * n + rows * n) * size_of::<T>()) as u64,
        setup: Box::new(move |device| {
            let x = Buffer::from_slice(device, &random::<T>(7, rows * k))?;
            let weights = Buffer::from_slice(device, &random::<T>(8, groups * k * n))?;
            let starts: Vec<i32> = (0..=groups).map(|group| (group * m) as i32).collect();
            let starts = Buffer::from_slice(device, &starts)?;
            let out = Buffer::<T>::zeros(device, rows * n)?;
            Ok(problem(out, move |out, setting| {
                kernels::grouped_matmul([&x, &weights], &starts, out, [rows, n, k], setting)
            }))
        }),
        ..tensor_matmul::<T>(rows, n, k)
    }
}

/// Of 8-bit floats with scales of blocks.
pub(super) fn block_scaled_matmul([m, n, k]: [usize; 3]) -> Case {
    const BLOCK: usize = 128;
    let blocks = k.div_ceil(BLOCK);
    let scales = [m * blocks, n.div_ceil(BLOCK) * blocks];
    let plain = float8_matmul([m, n, k], true);
    Case {
        kernel: "block_scaled_matmul",
        bytes: plain.bytes + (4 * (scales[0] + scales[1])) as u64,
        elements: |block| block * 128,
        setup: Box::new(move |device| {
            let a = Buffer::from_slice(device, &random::<F8E4M3>(7, m * k))?;
            let b = Buffer::from_slice(device, &random::<F8E4M3>(8, n * k))?;
            let scale = |seed, len| uniform::<f32>(seed, len, 0.5, 2.0);
            let of_rows = Buffer::from_slice(device, &scale(9, scales[0]))?;
            let of_blocks = Buffer::from_slice(device, &scale(10, scales[1]))?;
            let out = Buffer::<bf16>::zeros(device, m * n)?;
            Ok(problem(out, move |out, setting| {
                let scales = [&of_rows, &of_blocks];
                kernels::block_scaled_matmul([&a, &b], scales, out, [m, n, k], setting)
            }))
        }),
        ..plain
    }
}

/// Of bytes with scales of rows of both.
pub(super) fn scaled_matmul([m, n, k]: [usize; 3]) -> Case {
    Case {
        kernel: "scaled_matmul",
        dtype: DType::I8,
        bytes: (m * k + n * k + 4 * (m + n) + m * n * size_of::<bf16>()) as u64,
        setup: Box::new(move |device| {
            let numbers = |seed, len| uniform::<i8>(seed, len, -128.0, 128.0);
            let a = Buffer::from_slice(device, &numbers(7, m * k))?;
            let b = Buffer::from_slice(device, &numbers(8, n * k))?;
            let scale = |seed, len| uniform::<f32>(seed, len, 0.5, 2.0);
            let scales = [scale(9, m), scale(10, n)].map(|it| Buffer::from_slice(device, &it));
            let [of_rows, of_columns] = scales;
            let (of_rows, of_columns) = (of_rows?, of_columns?);
            let out = Buffer::<bf16>::zeros(device, m * n)?;
            Ok(problem(out, move |out, setting| {
                let scales = [&of_rows, &of_columns];
                kernels::scaled_matmul([&a, &b], scales, out, [m, n, k], setting)
            }))
        }),
        ..tensor_matmul::<bf16>(m, n, k)
    }
}
