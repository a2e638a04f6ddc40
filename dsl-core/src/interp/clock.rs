//! What a warp knows of the time of the others.

use crate::target::WARP_LANES;

/// For each warp of a thread block, the first of its times that is not over for the owner of the clock.
///
/// A warp's own entry is its time. It goes up where the warp tells the others what it has done, and
/// it only grows, over programs too, so that nothing is ever cleared. Times count from 1. Further entries
/// are of what bulk copies do.
#[derive(Clone, Default, Debug)]
pub(super) struct Clock {
    plain: Vec<u64>,
    /// The same for what a bulk copy may take to be over: it needs a fence.
    fenced: Vec<u64>,
}

impl Clock {
    pub(super) fn new(warps: usize) -> Self {
        Self {
            plain: vec![0; warps],
            fenced: vec![0; warps],
        }
    }

    /// The time of a warp.
    pub(super) fn time(&self, warp: usize) -> u64 {
        self.plain[warp]
    }

    /// Whether what a lane of the thread block did at a time of its warp is over; `fenced` for a bulk
    /// copy.
    pub(super) fn knows(&self, lane: u32, time: u64, fenced: bool) -> bool {
        let entries = if fenced { &self.fenced } else { &self.plain };
        time < entries[(lane / WARP_LANES) as usize]
    }

    /// Whether what happened at this time of a further entry is over.
    pub(super) fn knows_entry(&self, entry: u32, time: u64) -> bool {
        self.plain
            .get(entry as usize)
            .is_some_and(|&own| time < own)
    }

    /// Learns what another clock knows.
    pub(super) fn learn(&mut self, other: &Self) {
        let learn = |mine: &mut Vec<u64>, theirs: &[u64]| {
            mine.resize(mine.len().max(theirs.len()), 0);
            for (mine, &theirs) in mine.iter_mut().zip(theirs) {
                *mine = theirs.max(*mine);
            }
        };
        learn(&mut self.plain, &other.plain);
        learn(&mut self.fenced, &other.fenced);
    }

    /// Ends the present of a warp.
    pub(super) fn advance(&mut self, warp: usize) {
        self.plain[warp] += 1;
    }

    /// Learns that a further entry has come to this time.
    pub(super) fn raise(&mut self, entry: u32, time: u64) {
        let entry = entry as usize;
        self.plain.resize(self.plain.len().max(entry + 1), 0);
        self.plain[entry] = time.max(self.plain[entry]);
    }

    /// Lets bulk copies take everything to be over that is known to be.
    pub(super) fn fence(&mut self) {
        for (fenced, &plain) in self.fenced.iter_mut().zip(&self.plain) {
            *fenced = plain.max(*fenced);
        }
    }
}
