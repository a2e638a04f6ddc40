//! Asynchronous copies: what is under way is neither visible nor free until a lane has waited. Its bits
//! go over at any time between.

use super::runner::{Runner, Warp};
use super::{Machine, Moment, allocation};
use crate::entity::Entity;
use crate::interp::copies::Copied;
use crate::interp::lane_memory;
use crate::interp::mask::Mask;
use crate::interp::memory::Slot;
use crate::interp::{Fault, FaultKind};
use crate::ir::{Inst, op};

impl Runner<'_, '_> {
    pub(super) fn start_copy(
        &mut self,
        inst: Inst,
        op: &op::StartCopy,
        mask: Mask,
    ) -> Result<(), Fault> {
        let op::StartCopy {
            target,
            offset,
            source,
            source_offset,
            read,
            count,
        } = *op;
        let local = Inst::new(self.warp.values[target].scalar() as usize);
        let allocation = allocation(self.machine.func, local)
            .expect("broken invariant: a verified target is an allocation");
        let width = count as usize;
        let align = count * i64::from(allocation.dtype.bytes());
        for at in 0..self.width(offset) {
            let targets = self.offsets(offset, None, (mask, at));
            let sources = self.offsets(source_offset, read, (mask, at));
            self.begin_access(inst, target, &targets, (width, align))?;
            self.begin_access(inst, source, &sources, (width, align))?;
            let argument = self.warp.values[source].scalar() as usize;
            let mut sources = sources.iter().copied().peekable();
            for &(lane, first) in targets.iter() {
                let from = sources.next_if(|&(other, _)| other == lane);
                let read = read.map_or(count, |read| {
                    let read = self.warp.values[read].get(at * self.warp.lanes + lane);
                    i64::from(read as u32 as i32)
                });
                if !(0..=count).contains(&read) {
                    let lane = self.warp.lane(lane) as u64;
                    return Err(self.fault(inst, FaultKind::ReadsBeyond { lane, read, count }));
                }
                for element in 0..count {
                    let from = from.filter(|_| element < read);
                    let from = from.map(|(_, first)| (argument, first.wrapping_add(element)));
                    let copied = Copied {
                        inst,
                        target: allocation,
                        index: first.wrapping_add(element),
                        source: from,
                        moved: false,
                    };
                    let started = self.start_element(lane, copied);
                    started.map_err(|kind| self.fault(inst, kind))?;
                }
            }
        }
        Ok(())
    }

    fn start_element(&mut self, lane: usize, mut copied: Copied) -> Result<(), FaultKind> {
        let who = self.warp.accessor(self.machine.program, lane);
        if let Some((argument, index)) = copied.source
            && let Slot::Buffer(buffer) = &mut self.machine.slots[argument]
        {
            lane_memory::start_reading(buffer, who, index)?;
        }
        let shared = &mut self.machine.shared;
        shared.start_copy(copied.target, who, copied.index)?;
        if self.machine.copies == Moment::Earliest {
            copied.moved = true;
            self.machine.move_element(copied);
        }
        self.warp.copies.start(lane, copied);
        Ok(())
    }

    pub(super) fn group_copies(&mut self, mask: Mask) {
        mask.lanes()
            .for_each(|lane| self.warp.copies.close_group(lane));
    }

    pub(super) fn wait_copies(
        &mut self,
        inst: Inst,
        op::WaitCopies { pending }: &op::WaitCopies,
        mask: Mask,
    ) -> Result<(), Fault> {
        for lane in mask.lanes() {
            for copied in self.warp.copies.complete(lane, pending.cast_unsigned()) {
                let finished = self.finish_element(lane, copied);
                finished.map_err(|kind| self.fault(inst, kind))?;
            }
        }
        Ok(())
    }

    fn finish_element(&mut self, lane: usize, copied: Copied) -> Result<(), FaultKind> {
        if !copied.moved {
            self.machine.move_element(copied);
        }
        let who = self.warp.accessor(self.machine.program, lane);
        if let Some((argument, index)) = copied.source
            && let Slot::Buffer(buffer) = &mut self.machine.slots[argument]
        {
            lane_memory::finish_reading(buffer, who, index)?;
        }
        let shared = &mut self.machine.shared;
        shared.finish_copy(copied.target, who, copied.index)
    }

    /// Where a program ends early: nothing is copied any more.
    pub(super) fn abandon_copies(&mut self) {
        for (lane, copied) in self.warp.copies.abandon() {
            if let Some((argument, index)) = copied.source
                && let Slot::Buffer(buffer) = &mut self.machine.slots[argument]
            {
                lane_memory::stop_reading(buffer, self.warp.lane(lane), index);
            }
            let shared = &mut self.machine.shared;
            shared.abandon_copy(copied.target, copied.index);
        }
    }
}

impl Machine<'_> {
    /// The bits of an element go over.
    pub(super) fn move_element(&mut self, copied: Copied) {
        let bits = match copied
            .source
            .map(|(argument, at)| (&self.slots[argument], at))
        {
            Some((Slot::Buffer(buffer), at)) => buffer.number(at as usize),
            Some((Slot::Scalar(_), _)) | None => 0,
        };
        self.shared.put(copied.target, copied.index, bits);
    }
}

impl Warp {
    /// A lane with a copy under way, and the instruction that started it.
    pub(super) fn unfinished_copy(&self) -> Option<(u64, Inst)> {
        let unfinished = self.copies.unfinished();
        unfinished.map(|(lane, inst)| (self.lane(lane) as u64, inst))
    }
}
