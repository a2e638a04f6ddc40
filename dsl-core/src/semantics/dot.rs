//! The meaning of `dot` for each precision.

use super::{cast, mma, scalar};
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
/// `ieee`, the operands widened to the type of the sum: for each result the chain `sum = fma(a[m, k], b[k, n], sum)` over
/// ascending k, starting from the accumulator, then `+ 0.0`, which turns a zero result into +0; of integers the sum
/// of the products, which wraps. `hopper`: the chain of [`mma::step`] over ascending k.
pub fn dot(
    precision: Precision,
    [operand, sum]: [DType; 2],
    extents: Extents,
    [a, b, accumulator]: [&dyn Fn(usize) -> u64; 3],
) -> Vec<u64> {
    let Extents { batch, m, k, n } = extents;
    let count = precision.step(operand);
    let mut result: Vec<u64> = (0..batch * m * n).map(accumulator).collect();
    for (at, number) in result.iter_mut().enumerate() {
        // Rows of all products of the batch, one after another.
        let (row, column) = (at / n, at % n);
        let first = row / m * k;
        let mut products =
            (0..k).map(|inner| (a(row * k + inner), b((first + inner) * n + column)));
        for _ in 0..k / count {
            let products = products.by_ref().take(count);
            *number = step([operand, sum], precision, products, *number);
        }
        if precision == Precision::Ieee {
            *number = scalar::binary(BinaryOp::Add, sum, *number, 0);
        }
    }
    result
}

/// [`dot`] by parts of `count` products, in ascending order, each from sums of +0, which are then added to the numbers so
/// far, rounded to nearest even.
pub fn dot_promoted(
    (precision, count): (Precision, usize),
    [operand, sum]: [DType; 2],
    extents: Extents,
    [a, b, accumulator]: [&dyn Fn(usize) -> u64; 3],
) -> Vec<u64> {
    let Extents { batch, m, k, n } = extents;
    let part = Extents {
        k: count,
        ..extents
    };
    let mut result: Vec<u64> = (0..batch * m * n).map(accumulator).collect();
    for start in (0..k).step_by(count) {
        // The index along `k` of all products of the batch, one after another.
        let whole = |inner: usize| inner / count * k + start + inner % count;
        let left = |at| a(whole(at));
        let right = |at| b(whole(at / n) * n + at % n);
        let sums = dot(precision, [operand, sum], part, [&left, &right, &|_| 0]);
        for (number, part) in result.iter_mut().zip(sums) {
            *number = scalar::binary(BinaryOp::Add, sum, *number, part);
        }
    }
    result
}

/// `accumulator` plus the products of one step, of `operand` added in `sum`.
pub fn step(
    [operand, sum]: [DType; 2],
    precision: Precision,
    products: impl Iterator<Item = (u64, u64)>,
    accumulator: u64,
) -> u64 {
    match precision {
        Precision::Hopper if operand.is_float() => mma::step(operand, products, accumulator),
        Precision::Cut => {
            let cut = |bits| bits & mma::UNCUT;
            mma::step(
                operand,
                products.map(|(a, b)| (cut(a), cut(b))),
                accumulator,
            )
        }
        Precision::Ieee | Precision::Hopper => products.fold(accumulator, |number, (a, b)| {
            let [a, b] = [a, b].map(|x| cast(operand, sum, x));
            multiply_add(sum, a, b, number)
        }),
    }
}

/// `a * b + sum`: of floats rounded once, of integers modulo their width.
fn multiply_add(dtype: DType, a: u64, b: u64, sum: u64) -> u64 {
    if dtype.is_float() {
        return scalar::ternary(TernaryOp::Fma, dtype, a, b, sum);
    }
    let product = scalar::binary(BinaryOp::Mul, dtype, a, b);
    scalar::binary(BinaryOp::Add, dtype, product, sum)
}
