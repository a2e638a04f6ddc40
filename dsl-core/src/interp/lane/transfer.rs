//! What warps with different roles do together: barriers with phases or numbers, fences.

use std::collections::BTreeMap;

use super::bulk::Flight;
use super::control::Frame;
use super::runner::{Runner, Warp};
use super::schedule::Wait;
use super::{Machine, allocation};
use crate::entity::Entity;
use crate::interp::clock::Clock;
use crate::interp::elements::{Elements, dtype};
use crate::interp::fault::TransferFault;
use crate::interp::mask::Mask;
use crate::interp::phases::{Mbarrier, Named};
use crate::interp::{Fault, FaultKind};
use crate::ir::op::TransferOp;
use crate::ir::{DType, Inst, Value, op};

/// Barriers and bulk copies of a thread block.
#[derive(Default)]
pub(super) struct Transfer {
    /// Of words of shared memory, by their first byte.
    pub(super) mbarriers: BTreeMap<usize, Mbarrier>,
    /// For each word that ever was one its entry in clocks and its last time there.
    times: BTreeMap<usize, (u32, u64)>,
    pub(super) named: BTreeMap<i64, Named>,
    /// Copies under way, oldest first.
    pub(super) flights: Vec<Flight>,
}

impl Transfer {
    /// Forgets everything but times; `clock` learns that it is over.
    pub(super) fn restart(&mut self, clock: &mut Clock) {
        for (&byte, mbarrier) in &self.mbarriers {
            let (entry, time) = (mbarrier.entry, mbarrier.time());
            self.times.insert(byte, (entry, time));
            clock.raise(entry, time + 1);
        }
        self.mbarriers.clear();
        self.named.clear();
        self.flights.clear();
    }
}

impl Runner<'_, '_> {
    pub(super) fn transfer(
        &mut self,
        inst: Inst,
        op: TransferOp<'_>,
        mask: Mask,
    ) -> Result<Option<Elements>, Fault> {
        if let TransferOp::TensorMap(_) = op {
            return Ok(Some(Elements::uniform(inst.index() as u64)));
        }
        self.converged(inst, mask)?;
        let warp = self.warp.index;
        let done = match op {
            TransferOp::TensorMap(_) => Ok(()),
            TransferOp::Roles(op) => {
                self.take_role(inst, op, mask);
                Ok(())
            }
            TransferOp::MbarrierInit(op) => self.init(inst, op),
            TransferOp::MbarrierExpect(op) => {
                let word = self.mbarrier(inst, op.word, op.at)?;
                word.expect(op.bytes);
                Ok(())
            }
            TransferOp::MbarrierArrive(op) => {
                self.warp.clock.advance(warp);
                let clock = self.warp.clock.clone();
                let mbarrier = self.mbarrier(inst, op.word, op.at)?;
                mbarrier.arrive(warp, &clock).map_err(FaultKind::from)
            }
            TransferOp::MbarrierWait(op) => self.wait_for_phase(inst, op),
            TransferOp::NamedSync(op) => self.arrive_named(inst, (op.id, op.warps), true),
            TransferOp::NamedArrive(op) => self.arrive_named(inst, (op.id, op.warps), false),
            TransferOp::CopyIn(op) => self.copy_in(inst, op),
            TransferOp::CopySpan(op) => self.copy_span(inst, op),
            TransferOp::CopyOut(op) => self.copy_out(inst, op),
            TransferOp::WaitCopiesRead(op) => {
                self.wait_copies_read(op);
                Ok(())
            }
            TransferOp::WaitCopiesOut(op) => {
                self.wait_copies_out(inst, op);
                Ok(())
            }
        };
        done.map_err(|kind| self.fault(inst, kind))?;
        Ok(None)
    }

    fn take_role(&mut self, inst: Inst, op: &op::Roles, mask: Mask) {
        let mut end = 0;
        for &(warps, region) in &op.warps {
            end += warps as usize;
            if self.warp.index < end {
                let frame = Frame::of_branch(region, mask, inst);
                return self.enter(region, Vec::new(), frame);
            }
        }
    }

    /// The number that all lanes hold.
    pub(super) fn uniform(&self, inst: Inst, value: Value) -> Result<i64, FaultKind> {
        let held = &self.warp.values[value];
        let first = held.get(0);
        if (0..self.warp.lanes).any(|lane| held.get(lane) != first) {
            let mnemonic = self.machine.func.op(inst).mnemonic();
            let warp = self.warp.index;
            return Err(TransferFault::NotUniform { mnemonic, warp }.into());
        }
        if dtype(self.machine.func, value) == DType::I32 {
            return Ok(i64::from(first as u32 as i32));
        }
        Ok(first.cast_signed())
    }

    /// The byte of a word that is a barrier, or is made one.
    pub(super) fn word(
        &mut self,
        inst: Inst,
        (word, at): (Value, Value),
        makes: bool,
    ) -> Result<usize, FaultKind> {
        let index = self.uniform(inst, at)?;
        let alloc = Inst::new(self.warp.values[word].scalar() as usize);
        let allocation = allocation(self.machine.func, alloc)
            .expect("broken invariant: a verified word is an allocation");
        let who = self.warp.accessor(self.machine.program, 0);
        self.machine.shared.word(allocation, who, (index, makes))
    }

    /// The barrier that a word is.
    pub(super) fn mbarrier(
        &mut self,
        inst: Inst,
        word: Value,
        at: Value,
    ) -> Result<&mut Mbarrier, Fault> {
        let byte = self.word(inst, (word, at), false);
        let byte = byte.map_err(|kind| self.fault(inst, kind))?;
        let mbarrier = self.machine.transfer.mbarriers.get_mut(&byte);
        Ok(mbarrier.expect("broken invariant: the word is a barrier"))
    }

    fn init(&mut self, inst: Inst, op: &op::MbarrierInit) -> Result<(), FaultKind> {
        let byte = self.word(inst, (op.word, op.at), true)?;
        let transfer = &mut self.machine.transfer;
        let entries = 4 * super::warps(self.machine.func) + transfer.times.len();
        let mut time = *transfer.times.entry(byte).or_insert((entries as u32, 0));
        if let Some(old) = transfer.mbarriers.get(&byte) {
            time.1 = old.time();
        }
        let new = Mbarrier::new(inst, time, op.count, &self.warp.clock);
        transfer.mbarriers.insert(byte, new);
        Ok(())
    }

    fn wait_for_phase(&mut self, inst: Inst, op: &op::MbarrierWait) -> Result<(), FaultKind> {
        let phase = self.uniform(inst, op.phase)?;
        let word = self.word(inst, (op.word, op.at), false)?;
        self.warp.wait = Some((inst, Wait::Phase { word, phase }));
        Ok(())
    }

    fn arrive_named(
        &mut self,
        inst: Inst,
        (id, warps): (i64, i64),
        waits: bool,
    ) -> Result<(), FaultKind> {
        let warp = self.warp.index;
        self.warp.clock.advance(warp);
        let named = self.machine.transfer.named.entry(id).or_default();
        let over = named.over;
        named.arrive((warp, &self.warp.clock), (id, warps))?;
        if waits {
            self.warp.wait = Some((inst, Wait::Named { id, over }));
        }
        Ok(())
    }
}

impl Machine<'_> {
    /// Whether a warp at a barrier of roles or behind a bulk copy may go on.
    pub(super) fn lets_go_on(
        &mut self,
        warp: &mut Warp,
        wait: Wait,
    ) -> Result<bool, TransferFault> {
        let transfer = &mut self.transfer;
        match wait {
            Wait::Meeting(_) | Wait::Elsewhere => Ok(false),
            Wait::Phase { word, phase } => {
                let mbarrier = transfer.mbarriers.get_mut(&word);
                let mbarrier = mbarrier.expect("broken invariant: the word is a barrier");
                let over = mbarrier.is_over(warp.index, phase)?;
                if over {
                    warp.clock.learn(&mbarrier.known);
                    mbarrier.awaited = phase.max(mbarrier.awaited);
                }
                Ok(over)
            }
            Wait::Named { id, over } => {
                let named = transfer.named.entry(id).or_default();
                let over = named.over > over;
                if over {
                    warp.clock.learn(&named.known);
                }
                Ok(over)
            }
            Wait::Out(number) => {
                let mut flights = transfer.flights.iter();
                let under_way = flights.any(|flight| flight.is_out_of(warp.index, number));
                if !under_way {
                    warp.out.finish(number, &mut warp.clock);
                    warp.read.finish(number, &mut warp.clock);
                }
                Ok(!under_way)
            }
        }
    }

    /// What a warp waits for, where its place does not say it.
    pub(super) fn missing(&self, wait: Wait) -> Option<String> {
        match wait {
            Wait::Meeting(_) | Wait::Elsewhere | Wait::Out(_) => None,
            Wait::Phase { word, phase } => {
                let mbarrier = self.transfer.mbarriers.get(&word);
                mbarrier.map(|it| it.missing(phase))
            }
            Wait::Named { id, .. } => self.transfer.named.get(&id).map(Named::missing),
        }
    }

    /// At the end of a program: an error where a copy or its bytes are left.
    pub(super) fn nothing_left(&self) -> Result<(), Fault> {
        for mbarrier in self.transfer.mbarriers.values() {
            let left = mbarrier.no_bytes_left();
            left.map_err(|kind| self.fault(mbarrier.made, kind.into()))?;
            if let Some((phase, inst, lane)) = mbarrier.filled
                && phase > mbarrier.awaited
            {
                return Err(self.fault(inst, FaultKind::Unfinished { lane }));
            }
        }
        Ok(())
    }
}
