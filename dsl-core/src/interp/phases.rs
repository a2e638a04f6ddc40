//! Barriers with phases, and barriers that have a number.

use super::clock::Clock;
use super::fault::TransferFault;
use crate::ir::Inst;

/// A word of shared memory at which warps arrive and bytes are counted.
pub(super) struct Mbarrier {
    /// The instruction that made it.
    pub(super) made: Inst,
    /// The entry of clocks that counts its phases.
    pub(super) entry: u32,
    /// The phase under way.
    pub(super) current: i64,
    /// The phases of the word before it was made this barrier.
    before: u64,
    count: i64,
    arrivals: i64,
    bytes: i64,
    /// What those know that have arrived.
    gathered: Clock,
    /// What is known once the last phase is over.
    pub(super) known: Clock,
    /// The last copy that it counts the bytes of: its phase, instruction and lane.
    pub(super) filled: Option<(i64, Inst, u64)>,
    /// The last phase that somebody has waited for.
    pub(super) awaited: i64,
}

impl Mbarrier {
    pub(super) fn new(made: Inst, (entry, before): (u32, u64), count: i64, clock: &Clock) -> Self {
        Self {
            made,
            entry,
            current: 0,
            before,
            count,
            arrivals: count,
            bytes: 0,
            gathered: clock.clone(),
            known: clock.clone(),
            filled: None,
            awaited: -1,
        }
    }

    /// The time of the phase under way.
    pub(super) fn time(&self) -> u64 {
        self.before + self.current.cast_unsigned() + 1
    }

    pub(super) fn expect(&mut self, bytes: i64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    pub(super) fn arrive(&mut self, warp: usize, clock: &Clock) -> Result<(), TransferFault> {
        if self.arrivals == 0 {
            let phase = self.current;
            return Err(TransferFault::OverArrival { warp, phase });
        }
        self.gathered.learn(clock);
        self.arrivals -= 1;
        self.turn();
        Ok(())
    }

    /// The bytes of a copy have come, which began in a phase with this knowledge.
    pub(super) fn receive(
        &mut self,
        bytes: i64,
        (began, clock): (i64, &Clock),
    ) -> Result<(), TransferFault> {
        if began != self.current {
            let ended = self.current;
            return Err(TransferFault::LateBytes { began, ended });
        }
        self.gathered.learn(clock);
        self.bytes -= bytes;
        self.turn();
        Ok(())
    }

    fn turn(&mut self) {
        if self.arrivals == 0 && self.bytes == 0 {
            self.current += 1;
            self.arrivals = self.count;
            self.gathered.raise(self.entry, self.time());
            self.known.learn(&self.gathered);
        }
    }

    /// Whether a phase is over; an error where its parity does not say so.
    pub(super) fn is_over(&self, warp: usize, phase: i64) -> Result<bool, TransferFault> {
        let current = self.current;
        match current - phase {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(TransferFault::WrongPhase {
                warp,
                phase,
                current,
            }),
        }
    }

    /// What phase `phase` waits for.
    pub(super) fn missing(&self, phase: i64) -> String {
        let (arrivals, bytes) = (self.arrivals, self.bytes);
        format!("phase {phase}, which lacks {arrivals} arrivals and {bytes} bytes")
    }

    /// At the end of a program: an error where bytes are missing.
    pub(super) fn no_bytes_left(&self) -> Result<(), TransferFault> {
        if self.bytes == 0 {
            return Ok(());
        }
        let (bytes, phase) = (self.bytes, self.current);
        Err(TransferFault::BytesLeft { bytes, phase })
    }
}

/// A barrier with a number, for a number of warps.
#[derive(Default)]
pub(super) struct Named {
    warps: i64,
    arrived: Vec<usize>,
    /// How often all have met.
    pub(super) over: u64,
    gathered: Clock,
    pub(super) known: Clock,
}

impl Named {
    /// A warp arrives.
    pub(super) fn arrive(
        &mut self,
        (warp, clock): (usize, &Clock),
        (id, warps): (i64, i64),
    ) -> Result<(), TransferFault> {
        if self.arrived.is_empty() {
            self.warps = warps;
        }
        if self.warps != warps || self.arrived.contains(&warp) {
            let warps = self.warps;
            return Err(TransferFault::NamedMismatch { warp, id, warps });
        }
        self.gathered.learn(clock);
        self.arrived.push(warp);
        if self.arrived.len() as i64 == warps {
            self.over += 1;
            self.arrived.clear();
            self.known.learn(&self.gathered);
        }
        Ok(())
    }

    /// What those that are here wait for.
    pub(super) fn missing(&self) -> String {
        format!("{} of {} warps", self.arrived.len(), self.warps)
    }
}
