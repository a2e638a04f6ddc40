//! Combining elements: regions of `reduce` and `scan` on vectors, and trees over them.

use std::collections::BTreeMap;

use super::index::Scalar;
use super::lowerer::{Binding, Lowerer};
use super::pull::{Pulled, scalar_index};
use crate::ir::{DType, Inst, Op, Region, Trait, Value, op};

/// What a `reduce` or `scan` combines, and how neighbours lie in vectors.
#[derive(Clone, Debug)]
pub(super) struct Reduction {
    /// The combiner.
    pub combine: Region,
    /// The type of each source.
    pub dtypes: Vec<DType>,
    /// Whether neighbours along the axis are neighbours in a vector.
    pub along_vector: bool,
}

impl Lowerer<'_> {
    /// Combines element by element, lower operands first.
    pub(super) fn combine(
        &mut self,
        reduction: &Reduction,
        lower: &[Pulled],
        higher: &[Pulled],
        lanes: usize,
    ) -> Vec<Pulled> {
        let operands: Vec<Pulled> = lower.iter().chain(higher).cloned().collect();
        let insts = &self.source.region(reduction.combine).insts;
        let simple = |inst: &Inst| {
            let op = self.source.op(*inst);
            op.is(Trait::elementwise) || op.is(Trait::terminator) || matches!(op, Op::Constant(_))
        };
        if insts.iter().all(simple) {
            return self.combine_vectors(reduction.combine, operands, lanes);
        }
        if lanes == 1 {
            return self.combine_numbers(reduction.combine, operands);
        }
        let mut columns: Vec<Vec<Value>> = vec![Vec::new(); lower.len()];
        for lane in 0..lanes {
            let operands = operands
                .iter()
                .map(|operand| Pulled::Uniform(self.lane(operand, lane)))
                .collect();
            let combined = self.combine_numbers(reduction.combine, operands);
            for (column, number) in columns.iter_mut().zip(combined) {
                let number = self.lane(&number, 0);
                column.push(self.value(number));
            }
        }
        let joined = columns.into_iter().map(|elements| {
            Pulled::Vector(self.builder.value(Op::Vector(op::Vector { elements })))
        });
        joined.collect()
    }

    fn combine_vectors(
        &mut self,
        region: Region,
        operands: Vec<Pulled>,
        lanes: usize,
    ) -> Vec<Pulled> {
        let source = self.source;
        let data = source.region(region);
        let mut known: BTreeMap<Value, Pulled> =
            data.parameters.iter().copied().zip(operands).collect();
        for &inst in &data.insts {
            let op = source.op(inst).clone();
            let Some(&result) = source.inst(inst).results.first() else {
                continue;
            };
            let pulled = if let Op::Constant(op::Constant { value }) = op {
                Pulled::Uniform(self.literal(value))
            } else {
                let operands = op.operands().into_iter();
                let operands = operands.map(|operand| {
                    let pulled = match known.get(&operand) {
                        Some(pulled) => pulled.clone(),
                        None => self.pull(operand, &scalar_index()),
                    };
                    (pulled, self.dtype(operand))
                });
                let operands = operands.collect();
                self.apply(&op, self.dtype(result), operands, lanes)
            };
            known.insert(result, pulled);
        }
        let yielded = source.yielded(region).iter();
        yielded
            .map(|&value| match known.get(&value) {
                Some(pulled) => pulled.clone(),
                None => self.pull(value, &scalar_index()),
            })
            .collect()
    }

    /// Combines one number of each source; the region may branch and repeat.
    fn combine_numbers(&mut self, region: Region, operands: Vec<Pulled>) -> Vec<Pulled> {
        let parameters = self.source.region(region).parameters.clone();
        for (parameter, operand) in parameters.into_iter().zip(operands) {
            let scalar = self.lane(&operand, 0);
            self.bindings.insert(parameter, Binding::Scalar(scalar));
        }
        self.region(region);
        let yielded = self.source.yielded(region).iter();
        yielded
            .map(|&value| Pulled::Uniform(self.pull_scalar(value, &scalar_index())))
            .collect()
    }

    /// Elements 0, 2, 4 .. and 1, 3, 5 .. of `a` followed by `b`.
    fn evens_and_odds(&mut self, a: Value, b: Value, lanes: usize) -> (Value, Value) {
        let [evens, odds] = [0, 1].map(|first| {
            let indices = (0..lanes as u32).map(|lane| 2 * lane + first).collect();
            self.builder
                .value(Op::ShuffleVector(op::ShuffleVector { a, b, indices }))
        });
        (evens, odds)
    }

    /// The balanced tree over `count` leaves from `start`, adjacent ones first; vectors whose
    /// lanes are neighbours along the axis are combined pair by pair.
    pub(super) fn tree(
        &mut self,
        reduction: &Reduction,
        lanes: usize,
        (start, count): (usize, usize),
        leaf: &mut dyn FnMut(&mut Self, usize) -> Vec<Pulled>,
    ) -> Vec<Pulled> {
        if count == 1 {
            return leaf(self, start);
        }
        let half = count / 2;
        let lower = self.tree(reduction, lanes, (start, half), leaf);
        let higher = self.tree(reduction, lanes, (start + half, half), leaf);
        if !reduction.along_vector || lanes == 1 {
            return self.combine(reduction, &lower, &higher, lanes);
        }
        let (mut evens, mut odds) = (Vec::new(), Vec::new());
        for ((a, b), &dtype) in lower.iter().zip(&higher).zip(&reduction.dtypes) {
            let (a, b) = (self.vector(a, dtype, lanes), self.vector(b, dtype, lanes));
            let (even, odd) = self.evens_and_odds(a, b, lanes);
            evens.push(Pulled::Vector(even));
            odds.push(Pulled::Vector(odd));
        }
        self.combine(reduction, &evens, &odds, lanes)
    }

    /// Combines the lanes of vectors, in pairs of neighbours, to one number.
    pub(super) fn across(
        &mut self,
        reduction: &Reduction,
        mut vectors: Vec<Pulled>,
        mut lanes: usize,
    ) -> Vec<Scalar> {
        while lanes > 1 {
            lanes /= 2;
            let (mut evens, mut odds) = (Vec::new(), Vec::new());
            for (pulled, &dtype) in vectors.iter().zip(&reduction.dtypes) {
                let vector = self.vector(pulled, dtype, 2 * lanes);
                if lanes == 1 {
                    let pair = Pulled::Vector(vector);
                    evens.push(Pulled::Uniform(self.lane(&pair, 0)));
                    odds.push(Pulled::Uniform(self.lane(&pair, 1)));
                } else {
                    let (even, odd) = self.evens_and_odds(vector, vector, lanes);
                    evens.push(Pulled::Vector(even));
                    odds.push(Pulled::Vector(odd));
                }
            }
            vectors = self.combine(reduction, &evens, &odds, lanes);
        }
        vectors.iter().map(|number| self.lane(number, 0)).collect()
    }
}
