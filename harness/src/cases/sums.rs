//! Means, and sums of rows, of columns and of everything.

use exactile::Number;
use exactile::prelude::*;
use exactile_kernels as kernels;
use exactile_kernels::sum;

use crate::demo::{Case, linspace, problem, problem_in_phases, uniform};

pub(super) fn mean<T: Float + Number>(outer: usize, middle: usize, inner: usize) -> Case {
    let n = outer * middle * inner;
    Case {
        kernel: "mean",
        dtype: <T as Number>::DTYPE,
        shape: vec![outer, middle, inner],
        bytes: ((n + outer * inner) * size_of::<T>()) as u64,
        flops: n as u64,
        blocks: vec![64, 32, 128],
        elements: |block| block * 16,
        setup: Box::new(move |device| {
            let x = Buffer::from_slice(device, &linspace::<T>(-100.0, 100.0, n))?;
            let out = Buffer::<T>::zeros(device, outer * inner)?;
            Ok(problem(out, move |out, setting| {
                kernels::mean(&x, out, [outer, middle, inner], setting)
            }))
        }),
    }
}

/// Bytes that must move: each element in, each sum out.
fn bytes<T>(elements: usize, sums: usize) -> u64 {
    ((elements + sums) * size_of::<T>()) as u64
}

/// The sum of each row.
pub(super) fn rows<T: Float + Number>(rows: usize, columns: usize) -> Case {
    let block = columns.next_power_of_two();
    Case {
        kernel: "sum_rows",
        dtype: <T as Number>::DTYPE,
        shape: vec![rows, columns],
        bytes: bytes::<T>(rows * columns, rows),
        flops: (rows * columns) as u64,
        blocks: vec![block, block / 2, block / 8],
        elements: |block| block,
        setup: Box::new(move |device| {
            let x = Buffer::from_slice(device, &uniform::<T>(9, rows * columns, 0.0, 1.0))?;
            let out = Buffer::<T>::zeros(device, rows)?;
            Ok(problem(out, move |out, setting| {
                sum::rows(&x, out, [rows, columns], setting)
            }))
        }),
    }
}

/// The sum of each column.
pub(super) fn columns<T: Float + Number>(rows: usize, columns: usize) -> Case {
    let shape = [rows, columns];
    Case {
        kernel: "sum_columns",
        dtype: <T as Number>::DTYPE,
        shape: shape.to_vec(),
        bytes: bytes::<T>(rows * columns, columns),
        flops: (rows * columns) as u64,
        blocks: vec![32, 8, 64],
        elements: |block| block * 128,
        setup: Box::new(move |device| {
            let x = Buffer::from_slice(device, &uniform::<T>(10, rows * columns, 0.0, 1.0))?;
            let mut parts = Buffer::<f32>::zeros(device, sum::column_parts(shape))?;
            let out = Buffer::<T>::zeros(device, columns)?;
            Ok(problem_in_phases(out, move |out, setting| {
                sum::columns(&x, &mut parts, out, shape, setting)
            }))
        }),
    }
}

/// The sum of all elements.
pub(super) fn all<T: Float + Number>(n: usize) -> Case {
    Case {
        kernel: "sum_all",
        dtype: <T as Number>::DTYPE,
        shape: vec![n],
        bytes: bytes::<T>(n, 1),
        flops: n as u64,
        blocks: vec![8192, 1024, 4096],
        elements: |block| block,
        setup: Box::new(move |device| {
            let x = Buffer::from_slice(device, &uniform::<T>(11, n, 0.0, 1.0))?;
            let mut parts = Buffer::<f32>::zeros(device, sum::all_parts(n))?;
            let out = Buffer::<T>::zeros(device, 1)?;
            Ok(problem_in_phases(out, move |out, setting| {
                sum::all(&x, &mut parts, out, setting)
            }))
        }),
    }
}
