//! The product of a sparse matrix and a dense one: each row is a segment whose rows of the dense matrix
//! [`crate::segment_sum()`] adds, times the numbers of the sparse one.

use exactile::prelude::*;
use exactile::{Number, Result};

use crate::segment_sum::{self, Segments};
use crate::setting::{Setting, check_shape};

/// A sparse matrix by rows (CSR): row `i` has the numbers `starts[i]..starts[i + 1]`.
#[derive(Clone, Copy, Debug)]
pub struct Csr<'a, T> {
    /// Where each row starts, and the number of all numbers; one more than there are rows.
    pub starts: &'a Buffer<i32>,
    /// The column of each number.
    pub columns: &'a Buffer<i32>,
    /// The numbers. Two of one place count both.
    pub values: &'a Buffer<T>,
}

/// The product of a sparse `[m, k]` and a dense `[k, n]`. Each row is added in `f32`, as one tree over its numbers in their
/// order, and rounded once. A setting's `block` is the numbers that are taken at a time, its `width` the columns of a program.
///
/// # Errors
/// What a launch refuses. A column that the matrix does not have is told when somebody waits for the product.
pub fn launch<T: Float + Number>(
    matrix: Csr<'_, T>,
    dense: &Buffer<T>,
    out: &mut Buffer<T>,
    [m, n, k]: [usize; 3],
    setting: &Setting,
) -> Result<()> {
    check_shape(matrix.starts.len(), &[m + 1])?;
    check_shape(dense.len(), &[k, n])?;
    check_shape(out.len(), &[m, n])?;
    let segments = Segments {
        starts: matrix.starts,
        members: matrix.columns,
        weights: Some(matrix.values),
    };
    segment_sum::launch(dense, segments, out, n, setting)
}

/// What it computes: the sums in `f64`, of the rows in the sparse form, rounded once.
pub fn reference(
    starts: &[i32],
    columns: &[i32],
    values: &[f32],
    dense: &[f32],
    n: usize,
) -> Vec<f32> {
    segment_sum::reference(dense, starts, columns, Some(values), n)
}

/// The settings worth trying.
pub fn space() -> Vec<Setting> {
    segment_sum::space()
}
