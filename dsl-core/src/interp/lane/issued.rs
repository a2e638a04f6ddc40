//! What a warp has started, which ends in that order: copies out, and products.

use super::runner::Warp;
use crate::interp::clock::Clock;
use crate::interp::race::Bulk;
use crate::ir::Inst;

/// Counted over all programs.
#[derive(Clone, Copy)]
pub(super) struct Issued {
    /// The entry of clocks that says how many are over.
    entry: u32,
    started: u64,
    finished: u64,
    last: Option<Inst>,
}

impl Issued {
    pub(super) fn new(entry: usize) -> Self {
        Self {
            entry: entry as u32,
            started: 0,
            finished: 0,
            last: None,
        }
    }

    /// One more, whose time is its number.
    pub(super) fn start(&mut self, inst: Inst) -> Bulk {
        self.started += 1;
        self.last = Some(inst);
        Bulk {
            entry: self.entry,
            time: self.started,
            fenced: true,
        }
    }

    /// The number of the last one but `pending`.
    pub(super) fn all_but(&self, pending: i64) -> u64 {
        self.started.saturating_sub(pending.cast_unsigned())
    }

    /// Learns that those up to this number are over.
    pub(super) fn finish(&mut self, number: u64, clock: &mut Clock) {
        self.finished = number.max(self.finished);
        clock.raise(self.entry, number + 1);
    }

    fn unfinished(&self) -> Option<Inst> {
        self.last.filter(|_| self.started > self.finished)
    }
}

impl Warp {
    /// What it has started and not waited for, and its first lane.
    pub(super) fn unfinished(&self) -> Option<(u64, Inst)> {
        let left = [self.read, self.products]
            .iter()
            .find_map(Issued::unfinished);
        left.map(|inst| (self.lane(0) as u64, inst))
    }

    /// What it has started is over, as a program has ended.
    pub(super) fn abandon(&mut self) {
        for issued in [&mut self.out, &mut self.read, &mut self.products] {
            issued.finish(issued.started, &mut self.clock);
        }
    }
}
