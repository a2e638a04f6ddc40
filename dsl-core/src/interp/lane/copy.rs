//! Asynchronous copies: what is under way is neither visible nor free until a lane has waited.

use super::{Machine, allocation};
use crate::entity::Entity;
use crate::interp::copies::Copied;
use crate::interp::elements::Elements;
use crate::interp::lane_memory;
use crate::interp::mask::Mask;
use crate::interp::memory::Slot;
use crate::interp::{Fault, FaultKind};
use crate::ir::{Inst, Value, op};

impl Machine<'_> {
    pub(super) fn start_copy(
        &mut self,
        inst: Inst,
        op: &op::StartCopy,
        mask: &Mask,
    ) -> Result<Vec<Elements>, Fault> {
        let op::StartCopy {
            target,
            offset,
            source,
            source_offset,
            mask: operand,
            count,
        } = *op;
        let local = Inst::new(self.values[target].scalar() as usize);
        let allocation = allocation(self.func, local)
            .expect("broken invariant: a verified target is an allocation");
        let width = count as usize;
        let align = count * i64::from(allocation.dtype.bytes());
        let targets = self.offsets(offset, None, mask);
        let sources = self.offsets(source_offset, operand, mask);
        for (targets, sources) in targets.into_iter().zip(sources) {
            self.begin_access(inst, target, &targets, (width, align))?;
            self.begin_access(inst, source, &sources, (width, align))?;
            let mut sources = sources.into_iter().peekable();
            for (lane, first) in targets {
                let from = sources.next_if(|&(other, _)| other == lane);
                for element in 0..count {
                    let from = from.map(|(_, first)| (source, first.wrapping_add(element)));
                    let copied = Copied {
                        inst,
                        target: allocation,
                        index: first.wrapping_add(element),
                        bits: 0,
                        source: from,
                    };
                    let started = self.start_element(lane, copied);
                    started.map_err(|kind| self.fault(inst, kind))?;
                }
            }
        }
        Ok(Vec::new())
    }

    fn start_element(&mut self, lane: usize, mut copied: Copied) -> Result<(), FaultKind> {
        let who = self.accessor(lane);
        if let Some((source, index)) = copied.source {
            let at = self.values[source].scalar() as usize;
            if let Slot::Buffer(buffer) = &mut self.slots[at] {
                copied.bits = lane_memory::load_global(buffer, who, index)?;
                lane_memory::start_reading(buffer, lane, index);
            }
        }
        self.shared.start_copy(copied.target, who, copied.index)?;
        self.copies.start(lane, copied);
        Ok(())
    }

    pub(super) fn group_copies(&mut self, mask: &Mask) -> Vec<Elements> {
        mask.lanes().for_each(|lane| self.copies.close_group(lane));
        Vec::new()
    }

    pub(super) fn wait_copies(
        &mut self,
        inst: Inst,
        op::WaitCopies { pending }: &op::WaitCopies,
        mask: &Mask,
    ) -> Result<Vec<Elements>, Fault> {
        for lane in mask.lanes() {
            for copied in self.copies.complete(lane, pending.cast_unsigned()) {
                let finished = self.finish_element(lane, copied);
                finished.map_err(|kind| self.fault(inst, kind))?;
            }
        }
        Ok(Vec::new())
    }

    fn finish_element(&mut self, lane: usize, copied: Copied) -> Result<(), FaultKind> {
        if let Some((source, index)) = copied.source {
            self.stop_reading(source, lane, index);
        }
        let who = self.accessor(lane);
        self.shared
            .finish_copy(copied.target, who, copied.index, copied.bits)
    }

    fn stop_reading(&mut self, source: Value, lane: usize, index: i64) {
        let at = self.values[source].scalar() as usize;
        if let Slot::Buffer(buffer) = &mut self.slots[at] {
            lane_memory::stop_reading(buffer, lane, index);
        }
    }

    /// Where a program ends early: nothing is copied any more.
    pub(super) fn abandon_copies(&mut self) {
        for (lane, copied) in self.copies.abandon() {
            if let Some((source, index)) = copied.source {
                self.stop_reading(source, lane, index);
            }
            self.shared.abandon_copy(copied.target, copied.index);
        }
    }

    /// At the end of a program: an error if a lane has not waited for its copies.
    pub(super) fn all_waited(&self) -> Result<(), Fault> {
        self.copies.unfinished().map_or(Ok(()), |(lane, inst)| {
            let lane = lane as u64;
            Err(self.fault(inst, FaultKind::Unfinished { lane }))
        })
    }
}
