//! What the lanes of a thread block do together, and what they ask of their place in it.

use std::iter::repeat_n;

use super::runner::Runner;
use crate::interp::elements::{Elements, dtype};
use crate::interp::mask::Mask;
use crate::interp::{Fault, FaultKind};
use crate::ir::op::{OrderOp, WarpOp};
use crate::ir::{Inst, Value, op};
use crate::semantics;

impl Runner<'_, '_> {
    pub(super) fn warp_op(
        &mut self,
        inst: Inst,
        op: WarpOp<'_>,
        mask: Mask,
    ) -> Result<Option<Elements>, Fault> {
        let result = match op {
            WarpOp::LaneId(op::LaneId {}) => self.each_lane(|lane| lane),
            WarpOp::WarpId(op::WarpId {}) => Elements::uniform(self.warp.index as u64),
            WarpOp::Places(op::Places { values }) => {
                let places = self.places(values.len());
                Elements::new(places.map(|(at, _)| u64::from(values[at])).collect())
            }
            WarpOp::ShuffleXor(op::ShuffleXor { x, lane_mask }) => {
                let from = self.each_lane(|lane| lane ^ *lane_mask as usize);
                self.shuffle(inst, *x, &from, mask)?
            }
            WarpOp::ShuffleIndex(op::ShuffleIndex { x, source_lane }) => {
                self.shuffle(inst, *x, &self.read(*source_lane), mask)?
            }
            WarpOp::WarpReduce(op) => self.warp_reduce(inst, op, mask)?,
            WarpOp::Mma(op) => self.mma(inst, op, mask)?,
            WarpOp::GroupMma(op) => self.group_mma(inst, op, mask)?,
            WarpOp::StopOutside(op) => return self.stop_outside(inst, op, mask).map(|()| None),
            WarpOp::StopIndex(op) => return self.stop_index(inst, op, mask).map(|()| None),
            WarpOp::StopAssertion(op) => {
                return self.stop_assertion(inst, op, mask).map(|()| None);
            }
            WarpOp::StartCopy(op) => return self.start_copy(inst, op, mask).map(|()| None),
            WarpOp::OrderOp(op) => return self.order(inst, op, mask),
        };
        Ok(Some(result))
    }

    fn order(
        &mut self,
        inst: Inst,
        op: OrderOp<'_>,
        mask: Mask,
    ) -> Result<Option<Elements>, Fault> {
        match op {
            OrderOp::GroupCopies(op::GroupCopies {}) => self.group_copies(mask),
            OrderOp::WaitCopies(op) => self.wait_copies(inst, op, mask)?,
            OrderOp::Barrier(op::Barrier {}) => self.barrier(inst, mask)?,
            OrderOp::ProxyFence(op::ProxyFence {}) => {
                self.warp.clock.advance(self.warp.index);
                self.warp.clock.fence();
                self.converged(inst, mask)?;
            }
            OrderOp::Pend(op::Pend { x }) => return Ok(Some(self.read(*x))),
            OrderOp::Settle(op::Settle { x, pending }) => {
                self.wait_products(inst, *pending, mask)?;
                return Ok(Some(self.read(*x)));
            }
            OrderOp::WaitProducts(op) => self.wait_products(inst, op.pending, mask)?,
        }
        Ok(None)
    }

    fn wait_products(&mut self, inst: Inst, pending: i64, mask: Mask) -> Result<(), Fault> {
        self.converged(inst, mask)?;
        let warp = &mut *self.warp;
        let number = warp.products.all_but(pending);
        warp.products.finish(number, &mut warp.clock);
        Ok(())
    }

    fn barrier(&mut self, inst: Inst, mask: Mask) -> Result<(), Fault> {
        if self.meet(inst, mask)? {
            self.machine.meeting.order();
            self.machine.report.barriers += 1;
        }
        Ok(())
    }

    /// Waits for all warps of the thread block at an instruction; whether this is the last.
    pub(super) fn meet(&mut self, inst: Inst, mask: Mask) -> Result<bool, Fault> {
        self.converged(inst, mask)?;
        let (wait, last) = self.machine.meeting.arrive(inst, &self.warp.clock);
        self.warp.wait = Some((inst, wait));
        Ok(last)
    }

    /// An error unless all lanes of the warp take part.
    pub(super) fn converged(&self, inst: Inst, mask: Mask) -> Result<(), Fault> {
        mask.missing().map_or(Ok(()), |lane| {
            let mnemonic = self.machine.func.op(inst).mnemonic();
            let lane = self.warp.lane(lane) as u64;
            Err(self.fault(inst, FaultKind::Divergent { mnemonic, lane }))
        })
    }

    /// The value of `x` in the lanes of the warp that `from` names.
    fn shuffle(
        &mut self,
        inst: Inst,
        x: Value,
        from: &Elements,
        mask: Mask,
    ) -> Result<Elements, Fault> {
        self.converged(inst, mask)?;
        let lanes = self.warp.lanes;
        let source = |lane: usize| i64::from(from.get(lane) as u32 as i32);
        for lane in mask.lanes() {
            let source_lane = source(lane);
            if source_lane < 0 || source_lane >= lanes as i64 {
                let lane = self.warp.lane(lane) as u64;
                return Err(self.fault(inst, FaultKind::NoSuchLane { lane, source_lane }));
            }
        }
        let width = self.width(x);
        self.machine.report.shuffles += width as u64;
        let places = self.places(width);
        let places = places.map(|(element, lane)| element * lanes + source(lane) as usize);
        Ok(self.warp.values[x].gather(places))
    }

    /// What all lanes of a warp hold of each element, combined, in each of them.
    fn warp_reduce(
        &self,
        inst: Inst,
        op::WarpReduce { x, op }: &op::WarpReduce,
        mask: Mask,
    ) -> Result<Elements, Fault> {
        self.converged(inst, mask)?;
        let lanes = self.warp.lanes;
        let (held, dtype) = (&self.warp.values[*x], dtype(self.machine.func, *x));
        let op = op.binary(dtype);
        let op = op.expect("broken invariant: a verified reduction combines numbers");
        let both = |a, b| semantics::binary(op, dtype, a, b);
        let mut results = Vec::new();
        for first in (0..self.width(*x) * lanes).step_by(lanes) {
            let all = (first..first + lanes).map(|place| held.get(place));
            results.extend(repeat_n(all.reduce(both).unwrap_or(0), lanes));
        }
        Ok(Elements::new(results))
    }
}
