//! Reductions and scans, level by level as the plan says.

use super::super::Fault;
use super::super::elements::Elements;
use super::Machine;
use crate::ir::{Direction, Op, Region, Trait, op};
use crate::semantics::reduction::ReductionPlan;

impl Machine<'_> {
    pub(super) fn reduce(&mut self, op: &op::Reduce) -> Result<Vec<Elements>, Fault> {
        let op::Reduce {
            sources,
            axis,
            order,
            combine,
        } = op;
        let shape = self.shape(sources[0]);
        let extent = shape.extent(axis.index());
        let inner: usize = shape.dims()[axis.index() + 1..].iter().product();
        let mut count = shape.elements();
        let mut partials = self.read_all(sources);
        // Level by level from bit 0, so that the bit to combine is always the lowest one left.
        for _ in ReductionPlan::new(*order, extent).bits {
            let [lower, higher] = [0, 1].map(|half| {
                let places = (0..count / 2).map(|i| (i / inner * 2 + half) * inner + i % inner);
                partials
                    .iter()
                    .map(|x| x.gather(places.clone()))
                    .collect::<Vec<_>>()
            });
            count /= 2;
            partials = self.combine(*combine, count, &[lower, higher].concat())?;
        }
        Ok(partials)
    }

    /// Applies a combiner, which works on scalars, to `count` pairs.
    fn combine(
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
        let mut results = vec![Vec::with_capacity(count); operands.len() / 2];
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

    pub(super) fn scan(&mut self, op: &op::Scan) -> Result<Vec<Elements>, Fault> {
        let op::Scan {
            sources,
            axis,
            order,
            direction,
            combine,
        } = op;
        let shape = self.shape(sources[0]);
        let extent = shape.extent(axis.index());
        let inner: usize = shape.dims()[axis.index() + 1..].iter().product();
        let count = shape.elements();
        let along = |place: usize| match direction {
            Direction::Forward => place / inner % extent,
            Direction::Reverse => extent - 1 - place / inner % extent,
        };
        let step = |place: usize, back: usize| match direction {
            Direction::Forward => place - back * inner,
            Direction::Reverse => place + back * inner,
        };
        let mut prefixes = self.read_all(sources);
        for bit in ReductionPlan::new(*order, extent).bits {
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
            let combined = self.combine(*combine, higher.len(), &operands)?;
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
}
