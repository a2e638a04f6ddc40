//! Sorts, and the greatest elements of rows.

use exactile::Number;
use exactile::prelude::*;
use exactile_kernels as kernels;

use crate::demo::{Case, problem, random};

pub(super) fn sort<T: Numeric + Number>(rows: usize, columns: usize) -> Case {
    Case {
        kernel: "sort",
        dtype: <T as Number>::DTYPE,
        shape: vec![rows, columns],
        bytes: (2 * rows * columns * size_of::<T>()) as u64,
        flops: 0,
        blocks: vec![4, 1, 8],
        elements: |_| 1024,
        setup: Box::new(move |device| {
            let x = Buffer::from_slice(device, &random::<T>(7, rows * columns))?;
            let out = Buffer::<T>::zeros(device, rows * columns)?;
            Ok(problem(out, move |out, setting| {
                kernels::sort(&x, out, [rows, columns], setting)
            }))
        }),
    }
}

/// How many elements of a row are taken.
const KEPT: usize = 32;

pub(super) fn topk<T: Numeric + Number>(rows: usize, columns: usize) -> Case {
    Case {
        kernel: "topk",
        dtype: <T as Number>::DTYPE,
        shape: vec![rows, columns],
        bytes: (rows * (columns + KEPT) * size_of::<T>()) as u64,
        flops: 0,
        blocks: vec![4, 1, 8],
        elements: |_| 1024,
        setup: Box::new(move |device| {
            let x = Buffer::from_slice(device, &random::<T>(8, rows * columns))?;
            let out = Buffer::<T>::zeros(device, rows * KEPT)?;
            Ok(problem(out, move |out, setting| {
                kernels::topk(&x, out, [rows, columns], setting)
            }))
        }),
    }
}

/// With indices too; values and indices are compared.
pub(super) fn topk_indices<T: Numeric + Number>(rows: usize, columns: usize) -> Case {
    Case {
        kernel: "topk_indices",
        bytes: (rows * (columns * size_of::<T>() + KEPT * (size_of::<T>() + 8))) as u64,
        setup: Box::new(move |device| {
            let x = Buffer::from_slice(device, &random::<T>(8, rows * columns))?;
            let values = Buffer::<T>::zeros(device, rows * KEPT)?;
            let indices = Buffer::<i64>::zeros(device, rows * KEPT)?;
            let outputs = (values, indices);
            Ok(problem(outputs, move |(values, indices), setting| {
                kernels::topk_with_indices(&x, values, indices, [rows, columns], setting)
            }))
        }),
        ..topk::<T>(rows, columns)
    }
}
