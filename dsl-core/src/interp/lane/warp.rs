//! What the lanes of a thread block do together, and what they ask of their place in it.

use std::iter::repeat_n;

use super::Machine;
use crate::interp::elements::{Elements, dtype};
use crate::interp::mask::Mask;
use crate::interp::{Fault, FaultKind};
use crate::ir::op::WarpOp;
use crate::ir::{Inst, Value, op};
use crate::semantics;
use crate::target::WARP_LANES;

impl Machine<'_> {
    pub(super) fn warp(
        &mut self,
        inst: Inst,
        op: WarpOp<'_>,
        mask: &Mask,
    ) -> Result<Vec<Elements>, Fault> {
        let result = match op {
            WarpOp::LaneId(op::LaneId {}) => self.each_lane(|lane| lane % WARP_LANES as usize),
            WarpOp::WarpId(op::WarpId {}) => self.each_lane(|lane| lane / WARP_LANES as usize),
            WarpOp::Places(op::Places { values }) => {
                let places = self.places(values.len());
                Elements::new(places.map(|(at, _)| u64::from(values[at])).collect())
            }
            WarpOp::ShuffleXor(op::ShuffleXor { x, lane_mask }) => {
                let from =
                    self.each_lane(|lane| (lane % WARP_LANES as usize) ^ *lane_mask as usize);
                self.shuffle(inst, *x, &from, mask)?
            }
            WarpOp::ShuffleIndex(op::ShuffleIndex { x, source_lane }) => {
                self.shuffle(inst, *x, &self.read(*source_lane), mask)?
            }
            WarpOp::WarpReduce(op) => self.warp_reduce(inst, op, mask)?,
            WarpOp::StopOutside(op) => return self.stop_outside(inst, op, mask),
            WarpOp::StopIndex(op) => return self.stop_index(inst, op, mask),
            WarpOp::StartCopy(op) => return self.start_copy(inst, op, mask),
            WarpOp::GroupCopies(op::GroupCopies {}) => return Ok(self.group_copies(mask)),
            WarpOp::WaitCopies(op) => return self.wait_copies(inst, op, mask),
            WarpOp::Barrier(op::Barrier {}) => return self.barrier(inst, mask),
        };
        Ok(vec![result])
    }

    fn barrier(&mut self, inst: Inst, mask: &Mask) -> Result<Vec<Elements>, Fault> {
        self.converged(inst, mask, self.lanes)?;
        self.report.barriers += 1;
        self.epoch += 1;
        Ok(Vec::new())
    }

    /// An error unless all lanes of each group of `group` lanes take part, or none.
    pub(super) fn converged(&self, inst: Inst, mask: &Mask, group: usize) -> Result<(), Fault> {
        mask.missing(group).map_or(Ok(()), |lane| {
            let mnemonic = self.func.op(inst).mnemonic();
            let lane = lane as u64;
            Err(self.fault(inst, FaultKind::Divergent { mnemonic, lane }))
        })
    }

    /// The value of `x` in the lanes of the warp that `from` names.
    fn shuffle(
        &mut self,
        inst: Inst,
        x: Value,
        from: &Elements,
        mask: &Mask,
    ) -> Result<Elements, Fault> {
        let warp = WARP_LANES as usize;
        self.converged(inst, mask, warp)?;
        let source = |lane: usize| i64::from(from.get(lane) as u32 as i32);
        for lane in mask.lanes() {
            let source_lane = source(lane);
            if source_lane < 0 || source_lane >= warp.min(self.lanes) as i64 {
                let lane = lane as u64;
                return Err(self.fault(inst, FaultKind::NoSuchLane { lane, source_lane }));
            }
        }
        let (width, lanes) = (self.width(x), self.lanes);
        self.report.shuffles += (width * (mask.lanes().count() / warp)) as u64;
        let places = self.places(width).map(|(element, lane)| {
            let from = source(lane).clamp(0, warp as i64 - 1) as usize;
            element * lanes + lane / warp * warp + from
        });
        Ok(self.values[x].gather(places))
    }

    /// What all lanes of a warp hold of each element, combined, in each of them.
    fn warp_reduce(
        &self,
        inst: Inst,
        op::WarpReduce { x, op }: &op::WarpReduce,
        mask: &Mask,
    ) -> Result<Elements, Fault> {
        let warp = (WARP_LANES as usize).min(self.lanes);
        self.converged(inst, mask, warp)?;
        let (held, dtype) = (&self.values[*x], dtype(self.func, *x));
        let both = |a, b| semantics::binary(op.binary(), dtype, a, b);
        let mut results = Vec::new();
        for first in (0..self.width(*x) * self.lanes).step_by(warp) {
            let all = (first..first + warp).map(|place| held.get(place));
            results.extend(repeat_n(all.reduce(both).unwrap_or(0), warp));
        }
        Ok(Elements::new(results))
    }
}
