//! What a warp knows of the time of the others.

use crate::target::WARP_LANES;

/// For each warp of a thread block, the first of its times that is not over for the owner of the clock.
///
/// A warp's own entry is its time. It goes up where the warp tells the others what it has done, and
/// it only grows, over programs too, so that nothing is ever cleared. Times count from 1.
#[derive(Clone, Default, Debug)]
pub(super) struct Clock(Vec<u64>);

impl Clock {
    pub(super) fn new(warps: usize) -> Self {
        Self(vec![0; warps])
    }

    /// The time of a warp.
    pub(super) fn time(&self, warp: usize) -> u64 {
        self.0[warp]
    }

    /// Whether what a lane of the thread block did at a time of its warp is over.
    pub(super) fn knows(&self, lane: u32, time: u64) -> bool {
        time < self.0[(lane / WARP_LANES) as usize]
    }

    /// Learns what another clock knows.
    pub(super) fn learn(&mut self, other: &Self) {
        for (mine, &theirs) in self.0.iter_mut().zip(&other.0) {
            *mine = theirs.max(*mine);
        }
    }

    /// Ends the present of a warp.
    pub(super) fn advance(&mut self, warp: usize) {
        self.0[warp] += 1;
    }
}
