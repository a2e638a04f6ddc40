//! Finds accesses of two lanes to one address that no barrier orders.

use crate::ir::AtomicOp;

/// Which lane touched each address since the last barrier.
///
/// An epoch is the time between two barriers; it only grows, over programs too, so nothing is ever
/// cleared.
#[derive(Clone, Default)]
pub(super) struct Shadow {
    pages: Vec<Option<Box<[Cell]>>>,
}

const PAGE: usize = 1024;

#[derive(Clone, Copy, Default)]
struct Cell {
    write_epoch: u64,
    read_epoch: u64,
    writer: u32,
    reader: u32,
    /// A second reader, if it is not `reader` again.
    other_reader: u32,
    combine_epoch: u64,
    combiner: u32,
    /// A second lane that combines, if it is not `combiner` again.
    other_combiner: u32,
    /// What all of them do, unless they do several things.
    op: Option<AtomicOp>,
}

impl Cell {
    /// Another lane that wrote or combined in this epoch.
    fn changed(&self, epoch: u64, lane: u32) -> Conflict {
        if self.write_epoch == epoch && self.writer != lane {
            return Some((self.writer, "write"));
        }
        self.combined(epoch, lane)
    }

    fn combined(&self, epoch: u64, lane: u32) -> Conflict {
        let them = [self.combiner, self.other_combiner].into_iter();
        let mut others = them.filter(|&other| self.combine_epoch == epoch && other != lane);
        others.next().map(|other| (other, "atomic"))
    }

    fn read(&self, epoch: u64, lane: u32) -> Conflict {
        let them = [self.reader, self.other_reader].into_iter();
        let mut others = them.filter(|&other| self.read_epoch == epoch && other != lane);
        others.next().map(|other| (other, "read"))
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

    /// Notes that `lane` reads `address`. Epochs count from 1.
    pub(super) fn read(&mut self, address: usize, epoch: u64, lane: u32) -> Conflict {
        let cell = self.cell(address);
        if cell.read_epoch != epoch {
            cell.read_epoch = epoch;
            cell.reader = lane;
            cell.other_reader = lane;
        } else if cell.reader != lane {
            cell.other_reader = lane;
        }
        cell.changed(epoch, lane)
    }

    /// Notes that `lane` combines a number into `address`: no conflict with the same op.
    pub(super) fn combine(
        &mut self,
        address: usize,
        epoch: u64,
        lane: u32,
        op: AtomicOp,
    ) -> Conflict {
        let cell = self.cell(address);
        let known = *cell;
        if cell.combine_epoch != epoch {
            cell.combine_epoch = epoch;
            cell.combiner = lane;
            cell.other_combiner = lane;
            cell.op = Some(op);
        } else {
            if cell.combiner != lane {
                cell.other_combiner = lane;
            }
            cell.op = cell.op.filter(|&known| known == op);
        }
        let written = known.write_epoch == epoch && known.writer != lane;
        let written = written.then_some((known.writer, "write"));
        let mixed = known.combined(epoch, lane).filter(|_| known.op != Some(op));
        written.or(mixed).or_else(|| known.read(epoch, lane))
    }

    /// Notes that `lane` writes `address`.
    pub(super) fn write(&mut self, address: usize, epoch: u64, lane: u32) -> Conflict {
        let cell = self.cell(address);
        let known = *cell;
        cell.write_epoch = epoch;
        cell.writer = lane;
        known
            .changed(epoch, lane)
            .or_else(|| known.read(epoch, lane))
    }
}
