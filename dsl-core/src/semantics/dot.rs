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
/// of the products, which wraps. `hopper`: the chain of [`mma::step`] over ascending k; of `f64` that of `ieee` without its end,
/// as an H200 computes it.
pub fn dot(
    precision: Precision,
    [operand, sum]: [DType; 2],
    extents: Extents,
    [a, b, accumulator]: [&dyn Fn(usize) -> u64; 3],
) -> Vec<u64> {
    let Extents { batch, m, k, n } = extents;
    let count = precision.step(operand);
    let left = (0..batch * m * k).map(a).collect();
    let right = (0..batch * k * n).map(b).collect();
    let factors = Factors::of([operand, sum], precision, [left, right]);
    let mut result: Vec<u64> = (0..batch * m * n).map(accumulator).collect();
    for (at, number) in result.iter_mut().enumerate() {
        // Rows of all products of the batch, one after another.
        let (row, column) = (at / n, at % n);
        let first = row / m * k;
        for start in (0..k / count).map(|part| part * count) {
            let product = |inner| (row * k + inner, (first + inner) * n + column);
            *number = factors.step((start..start + count).map(product), *number);
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

/// The factors of products of one precision, left and right, each read once for all of its products.
pub struct Factors {
    operand: DType,
    sum: DType,
    held: Held,
}

enum Held {
    /// Of a tensor core that adds floats.
    Cut([Vec<mma::Factor>; 2]),
    /// As numbers of the type of the sum.
    Whole([Vec<u64>; 2]),
}

impl Factors {
    /// What these bits of `operand`, whose products are added in `sum`, count as.
    pub fn of([operand, sum]: [DType; 2], precision: Precision, bits: [Vec<u64>; 2]) -> Self {
        let cut = |bits: [Vec<u64>; 2], mask: u64| {
            let factor = |bits: u64| mma::Factor::of(operand, bits & mask);
            Held::Cut(bits.map(|bits| bits.into_iter().map(factor).collect()))
        };
        let held = match precision {
            Precision::Hopper if operand.is_float() && !precision.is_chain(operand) => {
                cut(bits, u64::MAX)
            }
            Precision::Cut => cut(bits, mma::UNCUT),
            Precision::Ieee | Precision::Hopper => {
                let widened = |bits| cast(operand, sum, bits);
                Held::Whole(bits.map(|bits| bits.into_iter().map(widened).collect()))
            }
        };
        Self { operand, sum, held }
    }

    /// `accumulator` plus the products of one step, of a left and a right factor each.
    pub fn step(
        &self,
        products: impl Iterator<Item = (usize, usize)> + Clone,
        accumulator: u64,
    ) -> u64 {
        match &self.held {
            Held::Cut([left, right]) => {
                let products = products.map(|(a, b)| (left[a], right[b]));
                mma::step(self.operand, products, accumulator)
            }
            Held::Whole([left, right]) => products.fold(accumulator, |number, (a, b)| {
                multiply_add(self.sum, left[a], right[b], number)
            }),
        }
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
