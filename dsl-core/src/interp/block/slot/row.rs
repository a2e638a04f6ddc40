//! Rows of arrays in shared memory.

use super::super::{Fault, Machine};
use crate::interp::elements::Elements;
use crate::interp::fault::RowFault;
use crate::ir::{Inst, MemoryAccess, op};

/// A row that is copied, or has come.
pub(super) struct Row {
    /// What started the copy.
    pub(super) inst: Inst,
    /// Its elements, and zero bits behind them.
    elements: Elements,
    count: i64,
    has_come: bool,
}

impl Row {
    /// Whether nobody has waited for it.
    pub(super) fn is_under_way(&self) -> bool {
        !self.has_come
    }
}

impl Machine<'_> {
    pub(super) fn copy_row(
        &mut self,
        inst: Inst,
        op: &op::CopyRow,
    ) -> Result<Vec<Elements>, Fault> {
        let numbers = (self.index(op.start), self.index(op.count), op.room);
        let elements = self.run(inst, &op.access(), numbers)?;
        let row = Row {
            inst,
            elements,
            count: numbers.1,
            has_come: false,
        };
        let made = self.func.inst(inst).results[0];
        match self.shared.rows.insert(made, row) {
            Some(before) if before.is_under_way() => {
                Err(self.fault(inst, RowFault::Copying.into()))
            }
            Some(_) | None => Ok(vec![Elements::uniform(0)]),
        }
    }

    /// What a load reads of the `count` elements from `start` on, for which there is `room`, and zero bits behind them.
    pub(super) fn run(
        &mut self,
        inst: Inst,
        access: &MemoryAccess,
        (start, count, room): (i64, i64, i64),
    ) -> Result<Elements, Fault> {
        let (offsets, mask) = (self.read(access.offsets), self.read_or(access.mask, 1));
        let elements = self.shape(access.offsets).elements();
        let wrong = (0..elements).find(|&element| {
            let is_of_row = (element as i64) < count;
            let place = offsets.get(element).cast_signed();
            let moved = is_of_row && place != start.wrapping_add(element as i64);
            moved || is_of_row != (mask.get(element) != 0)
        });
        let fault = match wrong {
            Some(element) => Some(RowFault::Elsewhere {
                element,
                start,
                count,
            }),
            None if count < 0 || count > room => Some(RowFault::NoRoom { count, room }),
            None => None,
        };
        if let Some(fault) = fault {
            return Err(self.fault(inst, fault.into()));
        }
        let at = |element| (mask.get(element) != 0).then(|| offsets.get(element).cast_signed());
        self.gathered(inst, access.base, elements, &at, &Elements::uniform(0))
    }

    pub(super) fn wait_row(&mut self, op: &op::WaitRow) -> Vec<Elements> {
        if let Some(row) = self.shared.rows.get_mut(&op.row) {
            row.has_come = true;
        }
        Vec::new()
    }

    pub(super) fn row_load(&self, inst: Inst, op: &op::RowLoad) -> Result<Vec<Elements>, Fault> {
        let (mask, other) = (self.read_or(op.mask, 1), self.read_or(op.other, 0));
        let row = self.shared.rows.get(&op.row);
        let row = row.expect("broken invariant: a row is used behind its copy");
        if row.is_under_way() {
            return Err(self.fault(inst, RowFault::Copying.into()));
        }
        let elements = self.shape(self.func.inst(inst).results[0]).elements();
        let first = op.at.map_or(0, |at| self.index(at));
        let place = |at: usize| first.wrapping_add(at as i64);
        let is_outside = |at: usize| !(0..row.count).contains(&place(at));
        let beyond = (0..elements).find(|&at| mask.get(at) != 0 && is_outside(at));
        if let Some(at) = beyond {
            let (element, count) = (place(at), row.count);
            return Err(self.fault(inst, RowFault::Beyond { element, count }.into()));
        }
        let read = |at| match mask.get(at) {
            0 => other.get(at),
            _ => row.elements.get(place(at) as usize),
        };
        let read = (0..elements).map(read).collect();
        Ok(vec![Elements::new(read)])
    }
}
