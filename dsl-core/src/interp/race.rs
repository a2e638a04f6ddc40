//! Finds accesses of two lanes to one address that no barrier orders.

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
}

/// An earlier access that conflicts: its lane, and `read` or `write`.
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
        (cell.write_epoch == epoch && cell.writer != lane).then_some((cell.writer, "write"))
    }

    /// Notes that `lane` writes `address`.
    pub(super) fn write(&mut self, address: usize, epoch: u64, lane: u32) -> Conflict {
        let cell = self.cell(address);
        let written = (cell.write_epoch == epoch && cell.writer != lane).then_some(cell.writer);
        let readers = [cell.reader, cell.other_reader];
        let read = readers
            .into_iter()
            .find(|&reader| cell.read_epoch == epoch && reader != lane);
        cell.write_epoch = epoch;
        cell.writer = lane;
        match written {
            Some(other) => Some((other, "write")),
            None => read.map(|other| (other, "read")),
        }
    }
}
