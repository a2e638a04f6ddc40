//! Checks of a lane function: what is out of bounds is recorded, and may end the program.

use super::access::Place;
use super::runner::Runner;
use crate::interp::Fault;
use crate::interp::elements::Elements;
use crate::interp::mask::Mask;
use crate::ir::{Inst, Value, op};
use crate::target::BoundsError;

impl Runner<'_, '_> {
    pub(super) fn check_bounds(&mut self, op: &op::CheckBounds, mask: Mask) -> Elements {
        let offsets = self.offset(op.offset, op.mask, mask);
        self.check(op.base, &offsets, op.count, (op.element, op.site))
            .0
    }

    /// Records what a check finds, and ends the program if there is something.
    pub(super) fn stop_outside(
        &mut self,
        inst: Inst,
        op: &op::StopOutside,
        mask: Mask,
    ) -> Result<(), Fault> {
        let offsets = self.offset(op.offset, op.mask, mask);
        let (_, refused) = self.check(op.base, &offsets, op.count, (op.element, op.site));
        self.stop_together(inst, mask, refused)
    }

    /// The lanes that may access, and whether an access is out of bounds.
    fn check(
        &mut self,
        base: Value,
        offsets: &[(usize, i64)],
        count: i64,
        (element, site): (Value, i64),
    ) -> (Elements, bool) {
        let length = self.length(base);
        let mut refused = false;
        let mut result = vec![0; self.warp.lanes];
        for &(lane, first) in offsets {
            if is_inside(first, count, length) {
                result[lane] = 1;
                continue;
            }
            refused = true;
            // The first of the elements that is outside.
            let inside = (i128::from(length) - i128::from(first)).max(0) as u64;
            let skipped = if first < 0 { 0 } else { inside };
            self.keep_least(BoundsError {
                program: self.machine.program,
                site: site.cast_unsigned(),
                element: self.warp.values[element].get(lane).wrapping_add(skipped),
                offset: first + skipped.cast_signed(),
            });
        }
        (Elements::new(result), refused)
    }

    pub(super) fn in_bounds(&mut self, op: &op::InBounds, mask: Mask) -> Elements {
        let length = self.length(op.base);
        let count = self.width(op.offset);
        let mut result = vec![0; count * self.warp.lanes];
        for at in 0..count {
            let offsets = self.offsets(op.offset, None, (mask, at));
            for &(lane, first) in offsets.iter() {
                let inside = is_inside(first, op.count, length);
                result[at * self.warp.lanes + lane] = u64::from(inside);
            }
        }
        Elements::new(result)
    }

    /// How many elements an array has.
    fn length(&mut self, base: Value) -> u64 {
        match self.machine.place(self.warp, base) {
            Place::Global(buffer) => buffer.length(),
            Place::Local(_, allocation) => allocation.count.cast_unsigned(),
        }
    }

    fn keep_least(&mut self, error: BoundsError) {
        let known = self.machine.report.out_of_bounds;
        self.machine.report.out_of_bounds = Some(known.map_or(error, |least| least.min(error)));
    }

    pub(super) fn check_index(&mut self, op: &op::CheckIndex, mask: Mask) {
        let indices = self.offset(op.index, None, mask);
        self.check_indices(&indices, op.extent, (op.element, op.site));
    }

    /// Records what a check finds, and ends the program if there is something.
    pub(super) fn stop_index(
        &mut self,
        inst: Inst,
        op: &op::StopIndex,
        mask: Mask,
    ) -> Result<(), Fault> {
        let indices = self.offset(op.index, op.mask, mask);
        let refused = self.check_indices(&indices, op.extent, (op.element, op.site));
        self.stop_together(inst, mask, refused)
    }

    pub(super) fn check_assertion(&mut self, op: &op::CheckAssertion, mask: Mask) {
        let failed = self.failed(op.failed, mask);
        self.keep_wrong(&failed, (op.element, op.site));
    }

    /// Records a failed assertion, and ends the program if there is one.
    pub(super) fn stop_assertion(
        &mut self,
        inst: Inst,
        op: &op::StopAssertion,
        mask: Mask,
    ) -> Result<(), Fault> {
        let failed = self.failed(op.failed, mask);
        let refused = self.keep_wrong(&failed, (op.element, op.site));
        self.stop_together(inst, mask, refused)
    }

    /// The lanes where a condition holds, each with the offset 0.
    fn failed(&self, condition: Value, mask: Mask) -> Vec<(usize, i64)> {
        let holds = |&lane: &usize| self.warp.values[condition].get(lane) != 0;
        mask.lanes().filter(holds).map(|lane| (lane, 0)).collect()
    }

    /// Meets the other warps, and ends the program if one of them has refused an access.
    fn stop_together(&mut self, inst: Inst, mask: Mask, refused: bool) -> Result<(), Fault> {
        self.machine.refused |= refused;
        if self.meet(inst, mask)? {
            self.machine.stopped = std::mem::take(&mut self.machine.refused);
        }
        Ok(())
    }

    /// Whether an index is out of range.
    fn check_indices(
        &mut self,
        indices: &[(usize, i64)],
        extent: i64,
        (element, site): (Value, i64),
    ) -> bool {
        let wrong = indices.iter().copied();
        let wrong = wrong.filter(|(_, index)| !(0..extent).contains(index));
        let wrong: Vec<(usize, i64)> = wrong.collect();
        self.keep_wrong(&wrong, (element, site))
    }

    /// Keeps the least error of some lanes with their offsets; whether there is one.
    fn keep_wrong(&mut self, wrong: &[(usize, i64)], (element, site): (Value, i64)) -> bool {
        let wrong = wrong.iter().map(|&(lane, offset)| BoundsError {
            program: self.machine.program,
            site: site.cast_unsigned(),
            element: self.warp.values[element].get(lane),
            offset,
        });
        let least = wrong.min();
        least.into_iter().for_each(|least| self.keep_least(least));
        least.is_some()
    }
}

/// Whether `count` elements from `first` on are among `length`.
fn is_inside(first: i64, count: i64, length: u64) -> bool {
    first >= 0 && i128::from(first) + i128::from(count) <= i128::from(length)
}
