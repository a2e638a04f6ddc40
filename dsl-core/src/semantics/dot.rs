//! The meaning of `dot` for each precision.

use super::scalar;
use crate::ir::{BinaryOp, DType, Precision, TernaryOp};

/// The extents of a product: `[m, k]` times `[k, n]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extents {
    /// Rows of the result.
    pub m: usize,
    /// The extent summed over.
    pub k: usize,
    /// Columns of the result.
    pub n: usize,
}

/// `accumulator + a x b` over row-major bits of `dtype`.
///
/// `ieee`: for each result the chain `sum = fma(a[m, k], b[k, n], sum)` over ascending k, starting
/// from the accumulator, then `+ 0.0`, which turns a zero result into +0.
pub fn dot(
    precision: Precision,
    dtype: DType,
    extents: Extents,
    [a, b, accumulator]: [&dyn Fn(usize) -> u64; 3],
) -> Vec<u64> {
    let Precision::Ieee = precision;
    let Extents { m, k, n } = extents;
    let mut result: Vec<u64> = (0..m * n).map(accumulator).collect();
    for row in 0..m {
        let sums = &mut result[row * n..(row + 1) * n];
        for inner in 0..k {
            let left = a(row * k + inner);
            for (column, sum) in sums.iter_mut().enumerate() {
                *sum = scalar::ternary(TernaryOp::Fma, dtype, left, b(inner * n + column), *sum);
            }
        }
        for sum in sums {
            *sum = scalar::binary(BinaryOp::Add, dtype, *sum, 0);
        }
    }
    result
}
