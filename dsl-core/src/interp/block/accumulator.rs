//! Accumulators: the number of subtrees, then what waits on each level for more.

use super::{Fault, Machine};
use crate::interp::elements::Elements;
use crate::ir::op::AccumulatorOp;
use crate::ir::{Axis, Shape, Value, op};

/// Accumulators that go together: level `k` has what `2^k` subtrees combine to where the count has bit `k`,
/// the last one also what went beyond it. A level has numbers of each; the first accumulator counts.
struct Held {
    shape: Shape,
    count: u64,
    levels: Vec<Vec<Elements>>,
}

impl Held {
    /// Those of the first levels that hold subtrees, the lowest first; the last one of all always counts.
    fn occupied(&self, first: usize) -> impl Iterator<Item = &Vec<Elements>> {
        let last = self.levels.len() - 1;
        let levels = self.levels[..first].iter().enumerate();
        let held = levels.filter(move |&(at, _)| at == last || self.count >> at & 1 == 1);
        held.map(|(_, level)| level)
    }

    /// Each accumulator in one piece.
    fn elements(&self) -> Vec<Elements> {
        let count = self.shape.elements();
        let parts = 0..self.levels[0].len();
        let whole = parts.map(|part| {
            let levels = self.levels.iter();
            let numbers = levels.flat_map(|level| (0..count).map(|at| level[part].get(at)));
            Elements::new(std::iter::once(self.count).chain(numbers).collect())
        });
        whole.collect()
    }
}

impl Machine<'_> {
    pub(super) fn accumulator(&mut self, op: AccumulatorOp<'_>) -> Result<Vec<Elements>, Fault> {
        match op {
            AccumulatorOp::Accumulator(op::Accumulator {}) => Ok(vec![Elements::uniform(0)]),
            AccumulatorOp::Accumulate(op) => self.accumulate(op),
            AccumulatorOp::Total(op::Total {
                accumulators,
                combine,
            }) => {
                let held = self.held(accumulators);
                let mut total = vec![Elements::uniform(0); accumulators.len()];
                for subtree in held.occupied(held.levels.len()) {
                    let operands = [subtree.clone(), total].concat();
                    total = self.combine(*combine, held.shape.elements(), &operands)?;
                }
                Ok(total)
            }
            AccumulatorOp::Prefixes(op) => self.prefixes(op),
        }
    }

    fn held(&self, accumulators: &[Value]) -> Held {
        let ty = self.func.ty(accumulators[0]);
        let (_, levels) = ty
            .accumulator()
            .expect("broken invariant: a verified operand is an accumulator");
        let count = ty.shape.elements();
        let level = |value: Value, at: usize| {
            let elements = &self.values[value];
            Elements::new(
                (0..count)
                    .map(|i| elements.get(1 + at * count + i))
                    .collect(),
            )
        };
        let levels = 0..usize::from(levels);
        Held {
            shape: ty.shape,
            count: self.values[accumulators[0]].get(0),
            levels: levels
                .map(|at| accumulators.iter().map(|&it| level(it, at)).collect())
                .collect(),
        }
    }

    fn accumulate(&mut self, op: &op::Accumulate) -> Result<Vec<Elements>, Fault> {
        let mut held = self.held(&op.accumulators);
        let mut carry = self.read_all(&op.subtrees);
        // As many subtrees on either side become one on the next level, as far as there is one.
        let last = held.levels.len() - 1;
        let free = (held.count.trailing_ones() as usize).min(last);
        let merged = if free == last { free + 1 } else { free };
        for level in &held.levels[..merged] {
            let operands = [level.clone(), carry].concat();
            carry = self.combine(op.combine, held.shape.elements(), &operands)?;
        }
        held.levels[free] = carry;
        held.count = held.count.wrapping_add(1);
        Ok(held.elements())
    }

    fn prefixes(&mut self, op: &op::Prefixes) -> Result<Vec<Elements>, Fault> {
        let held = self.held(&op.accumulators);
        let shape = self.shape(op.sources[0]);
        let mut prefixes = self.read_all(&op.sources);
        let most = 1 << (held.levels.len() - 1);
        let is_empty = held.count.cast_signed() < most;
        let left = held.levels.len() - usize::from(is_empty);
        for subtree in held.occupied(left) {
            let lower = subtree.iter().map(|x| along(x, shape, op.axis));
            let operands: Vec<Elements> = lower.chain(prefixes).collect();
            prefixes = self.combine(op.combine, shape.elements(), &operands)?;
        }
        Ok(prefixes)
    }
}

/// Elements without an axis, repeated along it to `shape`.
fn along(x: &Elements, shape: Shape, axis: Axis) -> Elements {
    let inner: usize = shape.dims()[axis.index() + 1..].iter().product();
    let extent = shape.extent(axis.index());
    let places = 0..shape.elements();
    x.gather(places.map(|place| place / (inner * extent) * inner + place % inner))
}
