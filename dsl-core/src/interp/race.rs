//! Finds accesses of two lanes to one address that nothing orders.

use super::clock::Clock;
use crate::ir::AtomicOp;
use crate::target::WARP_LANES;

/// Which lanes touched each address.
#[derive(Clone, Default)]
pub(super) struct Shadow {
    pages: Vec<Option<Box<[Cell]>>>,
}

const PAGE: usize = 1024;

/// What lanes of one warp did at one time of theirs.
#[derive(Clone, Copy, Default)]
struct Touch {
    /// 0 where nobody did anything.
    time: u64,
    lane: u32,
    /// A second lane, if it is not `lane` again.
    other: u32,
}

impl Touch {
    fn by(who: Toucher<'_>) -> Self {
        Self {
            time: who.time(),
            lane: who.lane,
            other: who.lane,
        }
    }

    fn is_over(&self, who: Toucher<'_>) -> bool {
        who.clock.knows(self.lane, self.time)
    }

    fn is_of(&self, who: Toucher<'_>) -> bool {
        self.time == who.time() && self.lane / WARP_LANES == who.lane / WARP_LANES
    }

    /// Another lane that did it, if that is not over.
    fn by_other(&self, who: Toucher<'_>) -> Option<u32> {
        let mut them = [self.lane, self.other].into_iter();
        them.find(|&them| them != who.lane)
            .filter(|_| !self.is_over(who))
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
        if self.last.lane != who.lane {
            self.last.other = who.lane;
        }
    }

    /// Another lane that did it, if that is not over.
    fn by_other(&self, who: Toucher<'_>) -> Option<u32> {
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
}

impl Toucher<'_> {
    fn time(self) -> u64 {
        self.clock.time((self.lane / WARP_LANES) as usize)
    }
}

#[derive(Clone, Default)]
struct Cell {
    write: Touch,
    reads: Touches,
    combines: Touches,
    /// What all of `combines` do, unless they do several things.
    op: Option<AtomicOp>,
}

impl Cell {
    /// Another lane that wrote or combined.
    fn changed(&self, who: Toucher<'_>) -> Conflict {
        self.written(who).or_else(|| self.combined(who))
    }

    fn written(&self, who: Toucher<'_>) -> Conflict {
        self.write.by_other(who).map(|other| (other, "write"))
    }

    fn combined(&self, who: Toucher<'_>) -> Conflict {
        self.combines.by_other(who).map(|other| (other, "atomic"))
    }

    fn read(&self, who: Toucher<'_>) -> Conflict {
        self.reads.by_other(who).map(|other| (other, "read"))
    }
}

/// An earlier access that conflicts: its lane, and `read`, `write` or `atomic`.
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
    pub(super) fn combine(&mut self, address: usize, who: Toucher<'_>, op: AtomicOp) -> Conflict {
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
}
