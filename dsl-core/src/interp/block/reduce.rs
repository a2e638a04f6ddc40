//! Reductions and scans, level by level as the plan says.

use super::super::Fault;
use super::super::elements::Elements;
use super::Machine;
use crate::ir::{Axis, Direction, Op, Order, Region, Shape, Trait, Value, op};
use crate::semantics::reduction::ReductionPlan;

/// What combines some pairs: the number of pairs, then the lower and the higher operands of each source.
type Combine<'a> = dyn FnMut(usize, &[Elements]) -> Result<Vec<Elements>, Fault> + 'a;

/// Sources of this shape without the axis.
pub(super) fn reduced(
    mut partials: Vec<Elements>,
    (shape, axis): (Shape, usize),
    order: Order,
    combine: &mut Combine<'_>,
) -> Result<Vec<Elements>, Fault> {
    let extent = shape.extent(axis);
    let inner: usize = shape.dims()[axis + 1..].iter().product();
    let mut count = shape.elements();
    // Level by level from bit 0, so that the bit to combine is always the lowest one left.
    for _ in ReductionPlan::new(order, extent).bits {
        let [lower, higher] = [0, 1].map(|half| {
            let places = (0..count / 2).map(|i| (i / inner * 2 + half) * inner + i % inner);
            partials
                .iter()
                .map(|x| x.gather(places.clone()))
                .collect::<Vec<_>>()
        });
        count /= 2;
        partials = combine(count, &[lower, higher].concat())?;
    }
    Ok(partials)
}

/// The prefixes of sources of this shape along the axis.
pub(super) fn prefixes(
    mut prefixes: Vec<Elements>,
    (shape, axis): (Shape, usize),
    (order, direction): (Order, Direction),
    combine: &mut Combine<'_>,
) -> Result<Vec<Elements>, Fault> {
    let extent = shape.extent(axis);
    let inner: usize = shape.dims()[axis + 1..].iter().product();
    let count = shape.elements();
    let along = |place: usize| match direction {
        Direction::Forward => place / inner % extent,
        Direction::Reverse => extent - 1 - place / inner % extent,
    };
    let step = |place: usize, back: usize| match direction {
        Direction::Forward => place - back * inner,
        Direction::Reverse => place + back * inner,
    };
    for bit in ReductionPlan::new(order, extent).bits {
        let half = 1 << bit;
        // An element of an upper half takes the last prefix of the half below.
        let higher: Vec<usize> = (0..count)
            .filter(|&place| along(place) & half != 0)
            .collect();
        let lower = higher
            .iter()
            .map(|&place| step(place, along(place) % half + 1));
        let operands: Vec<Elements> = (prefixes.iter().map(|x| x.gather(lower.clone())))
            .chain(prefixes.iter().map(|x| x.gather(higher.iter().copied())))
            .collect();
        let combined = combine(higher.len(), &operands)?;
        for (prefix, combined) in prefixes.iter_mut().zip(combined) {
            let mut elements: Vec<u64> = (0..count).map(|place| prefix.get(place)).collect();
            for (index, &place) in higher.iter().enumerate() {
                elements[place] = combined.get(index);
            }
            *prefix = Elements::new(elements);
        }
    }
    Ok(prefixes)
}

impl Machine<'_> {
    pub(super) fn reduce(&mut self, op: &op::Reduce) -> Result<Vec<Elements>, Fault> {
        let (sources, along) = self.sources(&op.sources, op.axis);
        reduced(sources, along, op.order, &mut |count, operands| {
            self.combine(op.combine, count, operands)
        })
    }

    pub(super) fn scan(&mut self, op: &op::Scan) -> Result<Vec<Elements>, Fault> {
        let (sources, along) = self.sources(&op.sources, op.axis);
        let way = (op.order, op.direction);
        prefixes(sources, along, way, &mut |count, operands| {
            self.combine(op.combine, count, operands)
        })
    }

    fn sources(&self, sources: &[Value], axis: Axis) -> (Vec<Elements>, (Shape, usize)) {
        let shape = self.shape(sources[0]);
        (self.read_all(sources), (shape, axis.index()))
    }

    /// Applies a combiner, which works on scalars, to `count` pairs.
    pub(super) fn combine(
        &mut self,
        region: Region,
        count: usize,
        operands: &[Elements],
    ) -> Result<Vec<Elements>, Fault> {
        self.each(region, count, operands)
    }

    /// What the region gives for each element.
    pub(super) fn map(&mut self, op: &op::Map, shape: Shape) -> Result<Vec<Elements>, Fault> {
        let sources = self.read_all(&op.sources);
        self.each(op.body, shape.elements(), &sources)
    }

    /// Runs a region of scalars for each of `count` elements.
    fn each(
        &mut self,
        region: Region,
        count: usize,
        operands: &[Elements],
    ) -> Result<Vec<Elements>, Fault> {
        let insts = &self.func.region(region).insts;
        let straight = insts.iter().all(|&inst| {
            let op = self.func.op(inst);
            op.is(Trait::elementwise) || matches!(op, Op::Constant(_) | Op::Yield(_))
        });
        if straight || operands.iter().all(Elements::is_uniform) {
            return self.region(region, operands);
        }
        let mut results = vec![Vec::with_capacity(count); self.func.yielded(region).len()];
        for index in 0..count {
            let one: Vec<Elements> = operands
                .iter()
                .map(|x| Elements::uniform(x.get(index)))
                .collect();
            for (all, result) in results.iter_mut().zip(self.region(region, &one)?) {
                all.push(result.scalar());
            }
        }
        Ok(results.into_iter().map(Elements::new).collect())
    }
}
