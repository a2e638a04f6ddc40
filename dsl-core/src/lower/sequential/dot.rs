//! Products of matrices: tiles of the result stay in registers over the whole chain of k.

use super::index::{Coordinate, Cover, Index, Scalar};
use super::lowerer::{Binding, Lowerer};
use crate::ir::{DType, Inst, Literal, Precision, Shape, Value, op};
use crate::lower::combine::multiply_add;

/// Rows of the result that are computed together.
const ROWS: usize = 4;

/// Vectors of a row that are computed together.
const COLUMNS: usize = 2;

/// Steps of the chain in one iteration.
const UNROLLED: usize = 4;

pub(super) fn at(row: (Scalar, i64), column: (Scalar, i64), lanes: usize) -> Index {
    let coordinate = |(base, start): (Scalar, i64), step: i64| Coordinate {
        base,
        lanes: (0..lanes as i64).map(|lane| start + lane * step).collect(),
    };
    Index {
        coordinates: vec![coordinate(row, 0), coordinate(column, 1)],
        lanes,
    }
}

/// The index of the elements at `index` in each matrix of a batch, in the matrix at `batch`.
pub(super) fn in_batch(batch: &[Scalar], index: Index) -> Index {
    let lanes = index.lanes;
    let outer = batch.iter().map(|&base| Coordinate {
        base,
        lanes: vec![0; lanes],
    });
    Index {
        coordinates: outer.chain(index.coordinates).collect(),
        lanes,
    }
}

impl Lowerer<'_> {
    pub(super) fn dot(&mut self, inst: Inst, op: &op::Dot) {
        let op::Dot {
            a,
            b,
            accumulator,
            precision,
        } = *op;
        if !precision.is_chain(self.dtype(a)) {
            return self.tensor_dot(inst, op);
        }
        let result = self.source.inst(inst).results[0];
        let (dtype, shape) = (self.dtype(result), self.shape(result));
        let buffer = self.allocate(dtype, shape);
        let inner = shape.rank() - 1;
        let rows = ROWS.min(shape.extent(inner - 1));
        let columns = COLUMNS * (self.target.vector_bytes / dtype.bytes()) as usize;
        let columns = columns.min(shape.extent(inner));
        let mut steps = vec![1; inner - 1];
        steps.extend([rows as i64, columns as i64]);
        let cover = Cover { shape, steps };
        let depth = self.shape(a).extent(inner);
        self.nest(&cover, &mut |this, bases| {
            let (batch, corner) = bases.split_at(inner - 1);
            let (top, left) = (corner[0], corner[1]);
            let mut init = Vec::new();
            for row in 0..rows {
                let index = in_batch(batch, at((top, row as i64), (left, 0), columns));
                let pulled = this.pull(accumulator, &index);
                init.push(this.vector(&pulled, dtype, columns));
            }
            let sums = this.chain((a, b), bases, (depth, columns), init);
            for (row, sum) in sums.into_iter().enumerate() {
                let sum = match precision {
                    Precision::Ieee => {
                        let zero = this.zero(dtype, columns);
                        this.builder.add(sum, zero)
                    }
                    Precision::Hopper | Precision::Cut => sum,
                };
                let index = in_batch(batch, at((top, row as i64), (left, 0), columns));
                this.store_buffer(&buffer, &index, sum);
            }
        });
        self.bindings.insert(result, Binding::Buffer(buffer));
    }

    fn zero(&mut self, dtype: DType, lanes: usize) -> Value {
        let shape = crate::ir::Type::vector(dtype, lanes).shape;
        let zero = self.constant(Literal::from_bits(dtype, 0));
        self.builder.splat(zero, shape)
    }

    /// `sum = a[row, k] * b[k, ..] + sum` over ascending k, for a few rows at once.
    fn chain(
        &mut self,
        (a, b): (Value, Value),
        bases: &[Scalar],
        (depth, columns): (usize, usize),
        init: Vec<Value>,
    ) -> Vec<Value> {
        let (batch, corner) = bases.split_at(bases.len() - 2);
        let (top, left) = (corner[0], corner[1]);
        let unrolled = UNROLLED.min(depth);
        let dtype = self.dtype(a);
        let shape: Shape = crate::ir::Type::vector(dtype, columns).shape;
        let bounds = (Scalar::Known(0), Scalar::Known(depth as i64));
        self.count(bounds, unrolled as i64, &init, &mut |this, k, carried| {
            let k = Scalar::Emitted(k);
            let mut sums = carried.to_vec();
            for step in 0..unrolled as i64 {
                let index = in_batch(batch, at((k, step), (left, 0), columns));
                let right = this.pull(b, &index);
                let right = this.vector(&right, dtype, columns);
                for (row, sum) in sums.iter_mut().enumerate() {
                    let index = in_batch(batch, at((top, row as i64), (k, step), 1));
                    let number = this.pull_scalar(a, &index);
                    let number = this.value(number);
                    let number = this.builder.splat(number, shape);
                    *sum = multiply_add(&mut this.builder, number, right, *sum);
                }
            }
            sums
        })
    }
}
