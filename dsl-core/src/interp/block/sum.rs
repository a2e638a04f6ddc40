//! Sums that are under way: the number of tiles, then what waits on each level for more.

use super::reduce::{prefixes, reduced};
use super::{Fault, Machine};
use crate::interp::elements::{Elements, map};
use crate::ir::op::SumOp;
use crate::ir::{Axis, BinaryOp, DType, Direction, Order, Shape, Value, op};
use crate::semantics;

/// A sum with its numbers: level `k` has the sum of `2^k` tiles where the count has bit `k`, the last one
/// also what went beyond it.
struct Sum {
    dtype: DType,
    shape: Shape,
    count: u64,
    levels: Vec<Elements>,
}

impl Sum {
    /// The levels that hold tiles, the lowest first.
    fn occupied(&self) -> impl Iterator<Item = &Elements> {
        let last = self.levels.len() - 1;
        let levels = self.levels.iter().enumerate();
        let held = levels.filter(move |&(at, _)| at == last || self.count >> at & 1 == 1);
        held.map(|(_, level)| level)
    }

    fn elements(&self) -> Elements {
        let count = self.shape.elements();
        let levels = self.levels.iter();
        let numbers = levels.flat_map(|level| (0..count).map(|at| level.get(at)));
        Elements::new(std::iter::once(self.count).chain(numbers).collect())
    }
}

fn add(dtype: DType, lower: &Elements, higher: &Elements) -> Elements {
    map([lower, higher], |[lower, higher]| {
        semantics::binary(BinaryOp::Add, dtype, lower, higher)
    })
}

impl Machine<'_> {
    pub(super) fn sum(&self, op: SumOp<'_>) -> Result<Elements, Fault> {
        match op {
            SumOp::Accumulator(op::Accumulator {}) => Ok(Elements::uniform(0)),
            SumOp::Accumulate(op) => self.accumulate(op),
            SumOp::Total(op::Total { state }) => {
                let sum = self.under_way(*state);
                let subtrees = sum.occupied();
                Ok(subtrees.fold(Elements::uniform(0), |total, subtree| {
                    add(sum.dtype, subtree, &total)
                }))
            }
            SumOp::PrefixSums(op) => self.prefix_sums(op),
        }
    }

    fn under_way(&self, state: Value) -> Sum {
        let ty = self.func.ty(state);
        let (dtype, levels) = ty
            .sum()
            .expect("broken invariant: a verified state is a sum");
        let (elements, count) = (&self.values[state], ty.shape.elements());
        let level = |at: usize| (0..count).map(move |i| elements.get(1 + at * count + i));
        Sum {
            dtype,
            shape: ty.shape,
            count: elements.get(0),
            levels: (0..usize::from(levels))
                .map(|at| Elements::new(level(at).collect()))
                .collect(),
        }
    }

    fn accumulate(&self, op: &op::Accumulate) -> Result<Elements, Fault> {
        let mut sum = self.under_way(op.state);
        let along = (self.shape(op.x), op.axis.index());
        let x = vec![self.widened(op.x, sum.dtype)];
        let mut combine = |_, pair: &[Elements]| Ok(vec![add(sum.dtype, &pair[0], &pair[1])]);
        let mut carry = reduced(x, along, Order::Tree, &mut combine)?.remove(0);
        // Two sums of as many tiles become one on the next level, as far as there is one.
        let last = sum.levels.len() - 1;
        let free = (sum.count.trailing_ones() as usize).min(last);
        let merged = if free == last { free + 1 } else { free };
        for level in &sum.levels[..merged] {
            carry = add(sum.dtype, level, &carry);
        }
        sum.levels[free] = carry;
        sum.count = sum.count.wrapping_add(1);
        Ok(sum.elements())
    }

    fn prefix_sums(&self, op: &op::PrefixSums) -> Result<Elements, Fault> {
        let sum = self.under_way(op.state);
        let (shape, axis) = (self.shape(op.x), op.axis.index());
        let x = vec![self.widened(op.x, sum.dtype)];
        let mut combine = |_, pair: &[Elements]| Ok(vec![add(sum.dtype, &pair[0], &pair[1])]);
        let way = (Order::Tree, Direction::Forward);
        let mut sums = prefixes(x, (shape, axis), way, &mut combine)?.remove(0);
        for subtree in sum.occupied() {
            let subtree = self.along(subtree, shape, op.axis);
            sums = add(sum.dtype, &subtree, &sums);
        }
        Ok(match sum.dtype.is_float() {
            true => add(sum.dtype, &sums, &Elements::uniform(0)),
            false => sums,
        })
    }

    /// Elements without an axis, repeated along it to `shape`.
    fn along(&self, x: &Elements, shape: Shape, axis: Axis) -> Elements {
        let inner: usize = shape.dims()[axis.index() + 1..].iter().product();
        let extent = shape.extent(axis.index());
        let places = 0..shape.elements();
        x.gather(places.map(|place| place / (inner * extent) * inner + place % inner))
    }
}
