//! Kernels of rows: softmax, layer normalisation, prefixes, gathers.

use exactile::Number;
use exactile::prelude::*;
use exactile_kernels as kernels;
use exactile_kernels::Setting;
use exactile_kernels::layer_norm::{Inputs, Outputs};
use exactile_kernels::rope::Table;

use crate::demo::{Case, problem, random, uniform};

/// Programs of a loop for each multiprocessor, where a setting does not say.
const PROGRAMS: usize = 2;

/// The setting with a loop over rows.
fn looped(setting: &Setting) -> Setting {
    let width = match setting.width {
        0 => PROGRAMS,
        width => width,
    };
    Setting { width, ..*setting }
}

pub(super) fn softmax<T: Float + Number>(rows: usize, columns: usize) -> Case {
    let block = columns.next_power_of_two();
    Case {
        kernel: "softmax",
        dtype: <T as Number>::DTYPE,
        shape: vec![rows, columns],
        bytes: (2 * rows * columns * size_of::<T>()) as u64,
        flops: (5 * rows * columns) as u64,
        blocks: vec![block, 2 * block, 4 * block],
        elements: |block| block,
        setup: Box::new(move |device| {
            let x = Buffer::from_slice(device, &random::<T>(3, rows * columns))?;
            let out = Buffer::<T>::zeros(device, rows * columns)?;
            Ok(problem(out, move |out, setting| {
                kernels::softmax(&x, out, [rows, columns], setting)
            }))
        }),
    }
}

pub(super) fn softmax_loop<T: Float + Number>(rows: usize, columns: usize) -> Case {
    Case {
        kernel: "softmax_loop",
        setup: Box::new(move |device| {
            let x = Buffer::from_slice(device, &random::<T>(3, rows * columns))?;
            let out = Buffer::<T>::zeros(device, rows * columns)?;
            Ok(problem(out, move |out, setting| {
                kernels::softmax(&x, out, [rows, columns], &looped(setting))
            }))
        }),
        ..softmax::<T>(rows, columns)
    }
}

/// `shape` is batch, positions, heads and the elements of a head.
pub(super) fn rope_by_table<T: Float + Number>(shape: [usize; 4]) -> Case {
    let [_, positions, _, width] = shape;
    let (n, angles) = (shape.iter().product::<usize>(), positions * width / 2);
    Case {
        kernel: "rope_by_table",
        dtype: <T as Number>::DTYPE,
        shape: shape.to_vec(),
        bytes: (2 * n * size_of::<T>() + 2 * angles * size_of::<f32>()) as u64,
        flops: (3 * n) as u64,
        blocks: vec![width / 2],
        elements: |block| block,
        setup: Box::new(move |device| {
            let x = Buffer::from_slice(device, &random::<T>(15, n))?;
            let cosines = Buffer::from_slice(device, &uniform::<f32>(16, angles, -1.0, 1.0))?;
            let sines = Buffer::from_slice(device, &uniform::<f32>(17, angles, -1.0, 1.0))?;
            let out = Buffer::<T>::zeros(device, n)?;
            Ok(problem(out, move |out, setting| {
                let table = Table {
                    cosines: &cosines,
                    sines: &sines,
                };
                kernels::rope_by_table(&x, &table, out, shape, setting)
            }))
        }),
    }
}

pub(super) fn layer_norm<T: Float + Number>(rows: usize, columns: usize) -> Case {
    layer_norm_by::<T>("layer_norm", rows, columns, |setting| *setting)
}

pub(super) fn layer_norm_loop<T: Float + Number>(rows: usize, columns: usize) -> Case {
    layer_norm_by::<T>("layer_norm_loop", rows, columns, looped)
}

fn layer_norm_by<T: Float + Number>(
    kernel: &'static str,
    rows: usize,
    columns: usize,
    adapt: fn(&Setting) -> Setting,
) -> Case {
    let block = columns.next_power_of_two();
    Case {
        kernel,
        dtype: <T as Number>::DTYPE,
        shape: vec![rows, columns],
        bytes: ((2 * rows * columns + 2 * columns) * size_of::<T>() + 8 * rows) as u64,
        flops: (8 * rows * columns) as u64,
        blocks: vec![block, 2 * block, 4 * block],
        elements: |block| block,
        setup: Box::new(move |device| {
            let x = Buffer::from_slice(device, &random::<T>(4, rows * columns))?;
            let weight = Buffer::from_slice(device, &random::<T>(5, columns))?;
            let bias = Buffer::from_slice(device, &random::<T>(6, columns))?;
            let out = Buffer::<T>::zeros(device, rows * columns)?;
            let means = Buffer::<f32>::zeros(device, rows)?;
            let scales = Buffer::<f32>::zeros(device, rows)?;
            let outputs = (out, means, scales);
            Ok(problem(outputs, move |(out, means, scales), setting| {
                let inputs = Inputs {
                    x: &x,
                    weight: &weight,
                    bias: &bias,
                    epsilon: 1e-5,
                };
                let outputs = Outputs { out, means, scales };
                kernels::layer_norm(inputs, outputs, [rows, columns], &adapt(setting))
            }))
        }),
    }
}

/// What is added is 0, so that every launch finds the sums of the one before unchanged.
pub(super) fn add_rms_norm<T: Float + Number>(rows: usize, columns: usize) -> Case {
    let block = columns.next_power_of_two();
    Case {
        kernel: "add_rms_norm",
        dtype: <T as Number>::DTYPE,
        shape: vec![rows, columns],
        bytes: ((4 * rows + 1) * columns * size_of::<T>()) as u64,
        flops: (5 * rows * columns) as u64,
        blocks: vec![block, 2 * block],
        elements: |block| block,
        setup: Box::new(move |device| {
            let x = Buffer::<T>::zeros(device, rows * columns)?;
            let mut residual = Buffer::from_slice(device, &random::<T>(4, rows * columns))?;
            let weight = Buffer::from_slice(device, &random::<T>(5, columns))?;
            let out = Buffer::<T>::zeros(device, rows * columns)?;
            Ok(problem(out, move |out, setting| {
                let shape = [rows, columns];
                kernels::add_rms_norm(&x, &mut residual, &weight, out, 1e-5, shape, setting)
            }))
        }),
    }
}

pub(super) fn cumsum<T: Float + Number>(rows: usize, columns: usize) -> Case {
    let block = columns.next_power_of_two();
    Case {
        kernel: "cumsum",
        dtype: <T as Number>::DTYPE,
        shape: vec![rows, columns],
        bytes: (2 * rows * columns * size_of::<T>()) as u64,
        flops: (rows * columns) as u64,
        blocks: vec![block, 2 * block],
        elements: |block| block,
        setup: Box::new(move |device| {
            let x = Buffer::from_slice(device, &uniform::<T>(5, rows * columns, 0.0, 1.0))?;
            let out = Buffer::<T>::zeros(device, rows * columns)?;
            Ok(problem(out, move |out, setting| {
                kernels::cumsum(&x, out, [rows, columns], setting)
            }))
        }),
    }
}

/// The loss of each row for a class, in `f32`.
pub(super) fn cross_entropy<T: SingleFloat + Number>(rows: usize, columns: usize) -> Case {
    Case {
        kernel: "cross_entropy",
        dtype: <T as Number>::DTYPE,
        shape: vec![rows, columns],
        bytes: (rows * columns * size_of::<T>() + 8 * rows) as u64,
        flops: (4 * rows * columns) as u64,
        blocks: vec![1024, 2048, 4096],
        elements: |block| block,
        setup: Box::new(move |device| {
            let x = Buffer::from_slice(device, &random::<T>(18, rows * columns))?;
            let classes: Vec<i32> = indices(columns, rows).iter().map(|&it| it as i32).collect();
            let classes = Buffer::from_slice(device, &classes)?;
            let losses = Buffer::<f32>::zeros(device, rows)?;
            Ok(problem(losses, move |losses, setting| {
                kernels::cross_entropy(&x, &classes, losses, [rows, columns], setting)
            }))
        }),
    }
}

/// As many rows of a table of `rows` as it has.
pub(super) fn embedding<T: Float + Number>(rows: usize, columns: usize) -> Case {
    Case {
        kernel: "embedding",
        dtype: <T as Number>::DTYPE,
        shape: vec![rows, columns],
        bytes: (2 * rows * columns * size_of::<T>() + 4 * rows) as u64,
        flops: 0,
        blocks: vec![256, 512, 1024],
        elements: |block| block,
        setup: Box::new(move |device| {
            let table = Buffer::from_slice(device, &random::<T>(19, rows * columns))?;
            let chosen: Vec<i32> = indices(rows, rows).iter().map(|&it| it as i32).collect();
            let chosen = Buffer::from_slice(device, &chosen)?;
            let out = Buffer::<T>::zeros(device, rows * columns)?;
            Ok(problem(out, move |out, setting| {
                kernels::embedding(&table, &chosen, out, columns, setting)
            }))
        }),
    }
}

pub(super) fn transpose<T: Float + Number>(rows: usize, columns: usize) -> Case {
    Case {
        kernel: "transpose",
        dtype: <T as Number>::DTYPE,
        shape: vec![rows, columns],
        bytes: (2 * rows * columns * size_of::<T>()) as u64,
        flops: 0,
        blocks: vec![64, 32, 128],
        elements: |block| block * block,
        setup: Box::new(move |device| {
            let x = Buffer::from_slice(device, &random::<T>(20, rows * columns))?;
            let out = Buffer::<T>::zeros(device, rows * columns)?;
            Ok(problem(out, move |out, setting| {
                kernels::transpose(&x, out, [rows, columns], setting)
            }))
        }),
    }
}

/// Indices below `columns`, each about as often.
fn indices(columns: usize, n: usize) -> Vec<i64> {
    let mixed = |index: usize| (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    (0..n)
        .map(|index| (mixed(index) % columns as u64) as i64)
        .collect()
}

pub(super) fn gather<T: Numeric + Number>(rows: usize, columns: usize) -> Case {
    let block = columns.next_power_of_two();
    let n = rows * columns;
    Case {
        kernel: "gather",
        dtype: <T as Number>::DTYPE,
        shape: vec![rows, columns],
        bytes: (n * (2 * size_of::<T>() + size_of::<i64>())) as u64,
        flops: 0,
        blocks: vec![block, 2 * block],
        elements: |block| block,
        setup: Box::new(move |device| {
            let x = Buffer::from_slice(device, &random::<T>(7, n))?;
            let index = Buffer::from_slice(device, &indices(columns, n))?;
            let out = Buffer::<T>::zeros(device, n)?;
            Ok(problem(out, move |out, setting| {
                kernels::gather(&x, &index, out, [rows, columns], setting)
            }))
        }),
    }
}
