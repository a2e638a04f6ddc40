//! The meaning of `dot` for each precision.

use super::{mma, scalar};
use crate::ir::{BinaryOp, DType, Precision, Shape, TernaryOp};

/// The extents of a product: `[m, k]` times `[k, n]`, as often as the batch has them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extents {
    /// How many products there are.
    pub batch: usize,
    /// Rows of the result.
    pub m: usize,
    /// The extent summed over.
    pub k: usize,
    /// Columns of the result.
    pub n: usize,
}

impl Extents {
    /// Those of a product of operands of these shapes, `[m, k]` and `[k, n]` or with an axis of the batch before.
    pub fn of(left: Shape, right: Shape) -> Self {
        let (row, column) = (left.rank() - 2, left.rank() - 1);
        Self {
            batch: left.elements() / (left.extent(row) * left.extent(column)),
            m: left.extent(row),
            k: left.extent(column),
            n: right.extent(column),
        }
    }
}

/// `accumulator + a x b` over row-major bits of `operand` and `sum`.
///
/// `ieee`, where both types are one: for each result the chain `sum = fma(a[m, k], b[k, n], sum)` over
/// ascending k, starting from the accumulator, then `+ 0.0`, which turns a zero result into +0; of integers the sum
/// of the products, which wraps. `hopper`: the chain of [`mma::step`] over ascending k.
pub fn dot(
    precision: Precision,
    [operand, sum]: [DType; 2],
    extents: Extents,
    [a, b, accumulator]: [&dyn Fn(usize) -> u64; 3],
) -> Vec<u64> {
    let Extents { batch, m, k, n } = extents;
    let mut result: Vec<u64> = (0..batch * m * n).map(accumulator).collect();
    for (at, number) in result.iter_mut().enumerate() {
        // Rows of all products of the batch, one after another.
        let (row, column) = (at / n, at % n);
        let first = row / m * k;
        let mut products =
            (0..k).map(|inner| (a(row * k + inner), b((first + inner) * n + column)));
        match precision {
            Precision::Ieee => {
                for (a, b) in products {
                    *number = multiply_add(sum, a, b, *number);
                }
                *number = scalar::binary(BinaryOp::Add, sum, *number, 0);
            }
            Precision::Hopper => {
                for _ in 0..k / precision.step() {
                    let step = products.by_ref().take(precision.step());
                    *number = mma::step(operand, step, *number);
                }
            }
        }
    }
    result
}

/// `a * b + sum`: of floats rounded once, of integers modulo their width.
fn multiply_add(dtype: DType, a: u64, b: u64, sum: u64) -> u64 {
    if dtype.is_float() {
        return scalar::ternary(TernaryOp::Fma, dtype, a, b, sum);
    }
    let product = scalar::binary(BinaryOp::Mul, dtype, a, b);
    scalar::binary(BinaryOp::Add, dtype, product, sum)
}
