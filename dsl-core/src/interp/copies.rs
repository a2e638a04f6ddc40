//! The copies from global to shared memory that lanes have started and not waited for.

use std::collections::VecDeque;

use super::arena::Allocation;
use crate::ir::Inst;
use crate::random::Random;

/// One element under way.
#[derive(Clone, Copy)]
pub(super) struct Copied {
    /// The instruction that started the copy.
    pub(super) inst: Inst,
    /// Where the element goes.
    pub(super) target: Allocation,
    pub(super) index: i64,
    /// The number of the argument that it comes from and the element there, if it is read at all.
    pub(super) source: Option<(usize, i64)>,
    /// Whether its bits have gone over.
    pub(super) moved: bool,
}

/// The copies of all lanes, in the order in which they were started.
pub(super) struct Copies {
    lanes: Vec<LaneCopies>,
}

#[derive(Clone, Default)]
struct LaneCopies {
    /// The number of groups that are closed.
    groups: u64,
    /// Each element with the number of its group.
    under_way: VecDeque<(u64, Copied)>,
}

impl Copies {
    pub(super) fn new(lanes: usize) -> Self {
        Self {
            lanes: vec![LaneCopies::default(); lanes],
        }
    }

    /// Adds an element to the open group of a lane.
    pub(super) fn start(&mut self, lane: usize, copied: Copied) {
        let copies = &mut self.lanes[lane];
        copies.under_way.push_back((copies.groups, copied));
    }

    /// Closes the open group of a lane.
    pub(super) fn close_group(&mut self, lane: usize) {
        self.lanes[lane].groups += 1;
    }

    /// Takes the elements of all closed groups of a lane but the last `pending`.
    pub(super) fn complete(&mut self, lane: usize, pending: u64) -> Vec<Copied> {
        let copies = &mut self.lanes[lane];
        let done = copies.groups.saturating_sub(pending);
        let count = copies.under_way.partition_point(|&(group, _)| group < done);
        copies
            .under_way
            .drain(..count)
            .map(|(_, copied)| copied)
            .collect()
    }

    /// Some of the elements of a lane whose bits have not gone over; they go over now.
    pub(super) fn move_some(&mut self, random: &mut Random) -> Vec<Copied> {
        let lane = random.below(self.lanes.len());
        let under_way = self.lanes[lane].under_way.iter_mut();
        let mut some = Vec::new();
        for (_, copied) in under_way.filter(|(_, copied)| !copied.moved) {
            if random.one_in(4) {
                copied.moved = true;
                some.push(*copied);
            }
        }
        some
    }

    /// Takes the elements of all lanes that are under way.
    pub(super) fn abandon(&mut self) -> Vec<(usize, Copied)> {
        let lanes = self.lanes.iter_mut().enumerate();
        lanes
            .flat_map(|(lane, copies)| {
                let under_way = std::mem::take(&mut copies.under_way);
                under_way.into_iter().map(move |(_, copied)| (lane, copied))
            })
            .collect()
    }

    /// A lane with a copy under way, and the instruction that started it.
    pub(super) fn unfinished(&self) -> Option<(usize, Inst)> {
        let lanes = self.lanes.iter().enumerate();
        lanes
            .filter_map(|(lane, copies)| Some((lane, copies.under_way.front()?.1.inst)))
            .next()
    }
}
