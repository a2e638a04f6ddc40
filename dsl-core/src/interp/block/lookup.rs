//! Counts, gathers and assertions.

use super::Machine;
use crate::interp::FaultKind;
use crate::interp::elements::{Elements, dtype};
use crate::ir::{Inst, Literal, op, unflatten};

impl Machine<'_> {
    pub(super) fn histogram(&self, op::Histogram { x, mask, bins }: &op::Histogram) -> Elements {
        let dtype = dtype(self.func, *x);
        let mask = self.read_or(*mask, 1);
        let mut counts = vec![0u64; *bins as usize];
        for element in 0..self.shape(*x).elements() {
            let number = Literal::from_bits(dtype, self.values[*x].get(element)).integer();
            let bin = number.and_then(|number| usize::try_from(number).ok());
            if let Some(count) = bin.and_then(|bin| counts.get_mut(bin))
                && mask.get(element) != 0
            {
                *count += 1;
            }
        }
        Elements::new(counts)
    }

    /// Refuses elements that do not hold; no results.
    pub(super) fn assert(&mut self, inst: Inst, op: &op::Assert) -> Vec<Elements> {
        let op::Assert { condition, message } = op;
        let holds = &self.values[*condition];
        let mut elements = 0..self.shape(*condition).elements();
        let failed = elements.find(|&element| holds.get(element) == 0);
        let refused = failed.map(|element| FaultKind::Assertion {
            message: message.clone(),
            element: element as u64,
        });
        self.refuse(inst, refused);
        Vec::new()
    }

    pub(super) fn gather(
        &mut self,
        inst: Inst,
        op::Gather { x, indices, axis }: &op::Gather,
    ) -> Elements {
        let (from, to) = (self.shape(*x), self.shape(*indices));
        let extent = from.extent(axis.index()) as i64;
        let (read, indices_type) = (self.read(*indices), dtype(self.func, *indices));
        let mut refused = None;
        let places: Vec<usize> = (0..to.elements())
            .map(|element| {
                let index = Literal::from_bits(indices_type, read.get(element)).integer();
                let index = index.map_or(0, |index| index.min(i128::from(i64::MAX)) as i64);
                if !(0..extent).contains(&index) {
                    refused.get_or_insert(FaultKind::OutOfBounds {
                        buffer: format!("gather axis {}", axis.0),
                        element: element as u64,
                        index,
                        length: extent.cast_unsigned(),
                    });
                }
                let mut coordinates = unflatten(&to, element);
                coordinates[axis.index()] = index.clamp(0, extent - 1) as usize;
                let strides = from.strides();
                let steps = coordinates.iter().zip(&strides);
                steps.map(|(at, stride)| at * stride).sum()
            })
            .collect();
        self.refuse(inst, refused);
        self.values[*x].gather(places.into_iter())
    }
}
