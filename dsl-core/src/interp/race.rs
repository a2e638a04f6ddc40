//! Finds accesses of two lanes to one address that nothing orders.

use super::clock::Clock;
use crate::ir::AtomicOp;
use crate::target::WARP_LANES;

/// Which lanes touched each address.
#[derive(Clone, Default)]
pub(super) struct Shadow {
    pages: Vec<Option<Box<[Cell]>>>,
}

const PAGE: usize = 128;

/// What lanes of one warp did at one time of theirs, or a bulk copy.
#[derive(Clone, Copy, Default)]
struct Touch {
    /// 0 where nobody did anything.
    time: u64,
    /// A lane, or [`BULK`] and the entry of a clock.
    lane: u32,
    /// A second lane, if it is not `lane` again; the first lane of the warp that started a bulk copy.
    other: u32,
}

const BULK: u32 = 1 << 31;

impl Touch {
    fn by(who: Toucher<'_>) -> Self {
        Self {
            time: who.time(),
            lane: who.bulk.map_or(who.lane, |bulk| BULK | bulk.entry),
            other: who.lane,
        }
    }

    fn is_bulk(&self) -> bool {
        self.lane & BULK != 0
    }

    fn is_over(&self, who: Toucher<'_>) -> bool {
        let clock = who.clock;
        match self.is_bulk() {
            _ if self.time == 0 => true,
            true => clock.knows_entry(self.lane & !BULK, self.time),
            false => clock.knows(self.lane, self.time, who.bulk.is_some_and(|it| it.fenced)),
        }
    }

    fn is_of(&self, who: Toucher<'_>) -> bool {
        let same = match who.bulk {
            Some(bulk) => self.lane == BULK | bulk.entry,
            None => self.lane / WARP_LANES == who.lane / WARP_LANES,
        };
        same && self.time == who.time()
    }

    /// Another lane that did it, if that is not over, and whether by a bulk copy.
    fn by_other(&self, who: Toucher<'_>) -> Option<(u32, bool)> {
        let mut them = [self.lane, self.other].into_iter();
        let other = match (self.is_bulk(), who.bulk) {
            (true, _) => Some(self.other),
            (false, Some(bulk)) => {
                // What its own warp has done came before in any case; it is a fence that is missing.
                let own = self.lane / WARP_LANES == who.lane / WARP_LANES;
                (bulk.fenced || !own).then_some(self.lane)
            }
            (false, None) => them.find(|&them| them != who.lane),
        };
        let other = other.filter(|_| !self.is_over(who));
        other.map(|other| (other, self.is_bulk()))
    }
}

/// The touches that something may yet conflict with, of each warp one at most.
#[derive(Clone, Default)]
struct Touches {
    last: Touch,
    others: Vec<Touch>,
}

impl Touches {
    /// Notes a touch. What is over for whoever touches now is over for all that come after.
    fn note(&mut self, who: Toucher<'_>) {
        if !self.last.is_of(who) {
            if let Some(own) = self.others.iter_mut().find(|touch| touch.is_of(who)) {
                std::mem::swap(own, &mut self.last);
            } else {
                self.others.retain(|touch| !touch.is_over(who));
                let last = std::mem::replace(&mut self.last, Touch::by(who));
                self.others.extend(Some(last).filter(|it| !it.is_over(who)));
                return;
            }
        }
        if !self.last.is_bulk() && self.last.lane != who.lane {
            self.last.other = who.lane;
        }
    }

    /// Another lane that did it, if that is not over, and whether by a bulk copy.
    fn by_other(&self, who: Toucher<'_>) -> Option<(u32, bool)> {
        let mut others = self.others.iter().filter_map(|touch| touch.by_other(who));
        self.last.by_other(who).or_else(|| others.next())
    }

    fn all_over(&self, who: Toucher<'_>) -> bool {
        let mut others = self.others.iter();
        self.last.is_over(who) && others.all(|touch| touch.is_over(who))
    }
}

/// A lane of the thread block, and what its warp knows.
#[derive(Clone, Copy)]
pub(super) struct Toucher<'c> {
    pub(super) lane: u32,
    pub(super) clock: &'c Clock,
    pub(super) bulk: Option<Bulk>,
}

/// A bulk copy that the lane has started.
#[derive(Clone, Copy)]
pub(super) struct Bulk {
    /// The entry of clocks that says when it is over, and its time there.
    pub(super) entry: u32,
    pub(super) time: u64,
    /// Whether it asks for fences.
    pub(super) fenced: bool,
}

impl Toucher<'_> {
    fn time(self) -> u64 {
        let own = || self.clock.time((self.lane / WARP_LANES) as usize);
        self.bulk.map_or_else(own, |bulk| bulk.time)
    }
}

#[derive(Clone, Default)]
struct Cell {
    write: Touch,
    reads: Touches,
    combines: Touches,
    /// What all of `combines` do, unless they do several things; `None` inside for atomics with results.
    op: Option<Option<AtomicOp>>,
}

impl Cell {
    /// Another lane that wrote or combined.
    fn changed(&self, who: Toucher<'_>) -> Conflict {
        self.written(who).or_else(|| self.combined(who))
    }

    fn written(&self, who: Toucher<'_>) -> Conflict {
        let found = self.write.by_other(who);
        found.map(|(other, bulk)| (other, if bulk { "bulk write" } else { "write" }))
    }

    fn combined(&self, who: Toucher<'_>) -> Conflict {
        let found = self.combines.by_other(who);
        found.map(|(other, _)| (other, "atomic"))
    }

    fn read(&self, who: Toucher<'_>) -> Conflict {
        let found = self.reads.by_other(who);
        found.map(|(other, bulk)| (other, if bulk { "bulk read" } else { "read" }))
    }
}

/// An earlier access that conflicts: its lane, and `read`, `write`, `atomic`, `bulk read` or `bulk write`.
pub(super) type Conflict = Option<(u32, &'static str)>;

impl Shadow {
    fn cell(&mut self, address: usize) -> &mut Cell {
        let page = address / PAGE;
        if self.pages.len() <= page {
            self.pages.resize(page + 1, None);
        }
        let page = self.pages[page].get_or_insert_with(|| vec![Cell::default(); PAGE].into());
        &mut page[address % PAGE]
    }

    /// Notes that a lane reads `address`.
    pub(super) fn read(&mut self, address: usize, who: Toucher<'_>) -> Conflict {
        let cell = self.cell(address);
        cell.reads.note(who);
        cell.changed(who)
    }

    /// Notes that a lane combines a number into `address`: no conflict with the same op.
    pub(super) fn combine(
        &mut self,
        address: usize,
        who: Toucher<'_>,
        op: Option<AtomicOp>,
    ) -> Conflict {
        let cell = self.cell(address);
        let mixed = cell.combined(who).filter(|_| cell.op != Some(op));
        let first = cell.combines.all_over(who);
        cell.combines.note(who);
        cell.op = Some(op).filter(|_| first || cell.op == Some(op));
        cell.written(who).or(mixed).or_else(|| cell.read(who))
    }

    /// Notes that a lane writes `address`.
    pub(super) fn write(&mut self, address: usize, who: Toucher<'_>) -> Conflict {
        let cell = self.cell(address);
        let conflict = cell.changed(who).or_else(|| cell.read(who));
        cell.write = Touch::by(who);
        conflict
    }

    /// Notes what a bulk copy does, and says whether a fence would do where there is a conflict.
    pub(super) fn bulk(
        &mut self,
        address: usize,
        (who, bulk): (Toucher<'_>, Bulk),
        writes: bool,
    ) -> (Conflict, bool) {
        let cell = self.cell(address);
        let conflict = |fenced| {
            let bulk = Some(Bulk { fenced, ..bulk });
            let who = Toucher { bulk, ..who };
            let read = || cell.read(who).filter(|_| writes);
            cell.changed(who).or_else(read)
        };
        let (found, without) = (conflict(true), conflict(false));
        let who = Toucher {
            bulk: Some(bulk),
            ..who
        };
        if writes {
            cell.write = Touch::by(who);
        } else {
            cell.reads.note(who);
        }
        (found, without.is_none())
    }
}
