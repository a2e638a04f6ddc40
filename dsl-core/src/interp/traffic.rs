//! What accesses to memory cost.

use crate::ir::Space;

/// What the accesses of one instruction cost, summed over warps and programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// How often a warp executed the access with at least one lane.
    pub requests: u64,
    /// Distinct 32-byte sectors of global memory that the requests touched.
    pub sectors: u64,
    /// Cycles that shared memory spends beyond the first of each phase because lanes want
    /// different words of one bank. A phase is a warp, half a warp for 8 bytes a lane, or a
    /// quarter for 16.
    pub bank_conflicts: u64,
}

impl Traffic {
    /// Adds the traffic of another access.
    pub fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.sectors += other.sectors;
        self.bank_conflicts += other.bank_conflicts;
    }

    /// Counts one access of a warp: the first byte that each lane touches, in order of lanes, and the
    /// bytes a lane moves.
    pub(super) fn count(&mut self, space: Space, lanes: &[(usize, i64)], bytes: i64) {
        if lanes.is_empty() {
            return;
        }
        self.requests += 1;
        match space {
            Space::Global => {
                let sectors = lanes.iter().flat_map(|&(_, at)| pieces(at, bytes, 32));
                self.sectors += distinct(sectors).len() as u64;
            }
            Space::Shared => self.bank_conflicts += bank_conflicts(lanes, bytes),
            Space::Scratch => {}
        }
    }
}

/// The pieces of `size` bytes that an access of `bytes` bytes touches. It may lie anywhere: whether it
/// is in bounds is checked when it is made.
fn pieces(at: i64, bytes: i64, size: i64) -> std::ops::RangeInclusive<i64> {
    at.div_euclid(size)..=at.saturating_add(bytes - 1).div_euclid(size)
}

fn distinct(pieces: impl Iterator<Item = i64>) -> Vec<i64> {
    let mut pieces: Vec<i64> = pieces.collect();
    pieces.sort_unstable();
    pieces.dedup();
    pieces
}

fn bank_conflicts(warp: &[(usize, i64)], bytes: i64) -> u64 {
    let phase_lanes = (128 / bytes.max(4)).max(1) as usize;
    let phase_of = |&(lane, _): &(usize, i64)| lane / phase_lanes;
    let mut conflicts = 0;
    for phase in warp.chunk_by(|a, b| phase_of(a) == phase_of(b)) {
        let words = phase.iter().flat_map(|&(_, at)| pieces(at, bytes, 4));
        let mut banks = [0u64; 32];
        for word in distinct(words) {
            banks[word.rem_euclid(32) as usize] += 1;
        }
        conflicts += banks.iter().max().map_or(0, |&most| most - 1);
    }
    conflicts
}
