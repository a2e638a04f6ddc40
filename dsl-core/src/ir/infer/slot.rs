//! Type rules of what lies in slots of shared memory.

use super::expect::Rules;
use crate::ir::op::SlotOp;
use crate::ir::operand::PIECE;
use crate::ir::{DType, Element, Type, Value, op};

impl Rules<'_> {
    pub(super) fn slots(self, declared: &[Type]) -> Result<Vec<Type>, String> {
        match self
            .op
            .slot()
            .expect("broken invariant: the op is one of slots")
        {
            SlotOp::Buffer(op) => self.stated(declared, &|to| self.buffer(op, to)),
            SlotOp::CopyLanes(op) => self.copy_lanes(op).map(|()| Vec::new()),
            SlotOp::CopyRun(op) => self.copy_run(op).map(|()| Vec::new()),
            SlotOp::CopyBox(op) => {
                let moved = self.slot(op.buffer, op.slot)?;
                if let Some(released) = op.released {
                    self.expect("released", self.ty(released), Type::scalar(DType::I32))?;
                }
                let numbers = [&op.origin[..], &op.extents, &op.strides];
                self.array_box(op.base, numbers, op.along, moved)?;
                self.only_read(op.base).map(|()| Vec::new())
            }
            SlotOp::WaitBox(op) => {
                self.slot(op.buffer, op.slot)?;
                let number = Type::scalar(DType::I32);
                self.expect("turn", self.ty(op.turn), number)?;
                Ok(Vec::new())
            }
            SlotOp::ReleaseSlot(op) => self.slot(op.buffer, op.slot).map(|_| Vec::new()),
            SlotOp::CopySlot(op) => {
                let moved = self.slot(op.buffer, op.slot)?;
                let numbers = [&op.origin[..], &op.extents, &op.strides];
                self.array_box(op.base, numbers, None, moved)
                    .map(|()| Vec::new())
            }
            SlotOp::WaitSlots(op) => self.wait_slots(op.pending).map(|()| Vec::new()),
            SlotOp::WaitWritten(op::WaitWritten {}) => Ok(Vec::new()),
            SlotOp::CopyRow(op) => self.stated(declared, &|to| self.copy_row(op, to)),
            SlotOp::WaitRow(op) => self.row(op.row).map(|_| Vec::new()),
            SlotOp::RowLoad(op) => self.stated(declared, &|to| self.row_load(op, to)),
            SlotOp::SlotLoad(op) => self.stated(declared, &|to| self.slot_load(op, to)),
            SlotOp::SlotStore(op) => self.slot_store(op).map(|()| Vec::new()),
            SlotOp::DotSlots(op) => self.dot_slots(op).map(|ty| vec![ty]),
        }
    }

    /// That the function may not write an array: bulk copies come in no order with what lanes write.
    fn only_read(self, base: Value) -> Result<(), String> {
        match self.func.written(base) {
            None => Ok(()),
            Some(name) => Err(format!(
                "`{}` reads `{name}`, which the kernel may write: use `load`, or leave out `write` at the parameter",
                self.name()
            )),
        }
    }

    fn buffer(self, op: &op::Buffer, to: Type) -> Result<(), String> {
        if to.buffer().is_none_or(|(_, slots)| slots == 0) {
            return Err(format!("`{}` gives no `{to}`", self.name()));
        }
        let Some(front) = op.behind.map(|front| self.ty(front)) else {
            return Ok(());
        };
        match front.element == to.element {
            true => Ok(()),
            false => Err(format!(
                "the slots of `{to}` cannot lie behind those of `{front}`"
            )),
        }
    }

    /// The type of the tiles in a buffer.
    fn slot(self, buffer: Value, slot: Value) -> Result<Type, String> {
        let ty = self.ty(buffer);
        let Some((dtype, _)) = ty.buffer() else {
            return Err(format!("`{}` takes a buffer, found `{ty}`", self.name()));
        };
        let number = Type::scalar(DType::I32);
        self.expect("slot", self.ty(slot), number)?;
        Ok(ty.with_dtype(dtype))
    }

    fn copy_lanes(self, op: &op::CopyLanes) -> Result<(), String> {
        let loaded = self.access(&op.access())?;
        let slot = self.slot(op.buffer, op.slot)?;
        self.expect("slot", slot, loaded)?;
        let bytes = loaded.dtype().map_or(0, |dtype| i64::from(dtype.bytes()));
        match [4, 8, 16].contains(&op.count.saturating_mul(bytes)) {
            true => Ok(()),
            false => Err(format!(
                "`copy_lanes` moves {} elements of `{loaded}`, expected 4, 8 or 16 bytes",
                op.count
            )),
        }
    }

    fn copy_run(self, op: &op::CopyRun) -> Result<(), String> {
        let loaded = self.access(&op.access())?;
        let slot = self.slot(op.buffer, op.slot)?;
        self.expect("slot", slot, loaded)?;
        self.run(op.base, [op.start, op.count])?;
        let bytes = loaded.dtype().map_or(0, |dtype| dtype.bytes() as usize);
        match loaded.shape.elements() * bytes >= PIECE as usize {
            true => Ok(()),
            false => Err(format!(
                "`copy_run` moves `{loaded}`, expected {PIECE} bytes or more"
            )),
        }
    }

    /// The numbers of elements that lie side by side, from where on and how many, in memory of which pieces are copied.
    fn run(self, base: Value, [start, count]: [Value; 2]) -> Result<(), String> {
        for (what, number) in [("start", start), ("count", count)] {
            self.expect(what, self.ty(number), Type::INDEX)?;
        }
        self.copied_in_pieces(base)?;
        self.only_read(base)
    }

    fn copy_row(self, op: &op::CopyRow, to: Type) -> Result<(), String> {
        let loaded = self.access(&op.access())?;
        let elements = loaded.shape.elements() as i64;
        if !(1..=elements).contains(&op.room) {
            let room = op.room;
            return Err(format!(
                "`copy_row` has room for {room} elements of `{loaded}`, expected 1 to {elements}"
            ));
        }
        self.run(op.base, [op.start, op.count])?;
        let row = loaded.dtype().map(Element::Row);
        let row = row.map(|element| Type { element, ..loaded });
        self.expect("result", to, row.unwrap_or(loaded))
    }

    /// The type of the elements of a row, as a tile.
    fn row(self, row: Value) -> Result<Type, String> {
        let ty = self.ty(row);
        let dtype = ty.row();
        dtype
            .map(|dtype| ty.with_dtype(dtype))
            .ok_or_else(|| format!("`{}` takes a row, found `{ty}`", self.name()))
    }

    fn row_load(self, op: &op::RowLoad, to: Type) -> Result<(), String> {
        let row = self.row(op.row)?;
        let loaded = match op.at {
            Some(at) => {
                self.expect("`at`", self.ty(at), Type::INDEX)?;
                row.with_shape(to.shape)
            }
            None => row,
        };
        self.mask(loaded, op.mask)?;
        match op.other {
            Some(_) if op.mask.is_none() => {
                return Err("`row_load` has `other` but no mask".to_string());
            }
            Some(other) => self.expect("`other`", self.ty(other), loaded)?,
            None => {}
        }
        self.expect("result", to, loaded)
    }

    fn slot_store(self, op: &op::SlotStore) -> Result<(), String> {
        let slot = self.slot(op.buffer, op.slot)?;
        self.expect("value", self.ty(op.value), slot)
    }

    /// The accumulator's type.
    fn dot_slots(self, op: &op::DotSlots) -> Result<Type, String> {
        let a = match op.a_slot {
            Some(slot) => self.slot(op.a, slot)?,
            None => self.ty(op.a),
        };
        let b = self.slot(op.b, op.b_slot)?;
        let (dtype, sums) = (self.pending(op.accumulator)?, self.ty(op.accumulator));
        self.product([a, b, sums.with_dtype(dtype)], op.precision)?;
        Ok(sums)
    }

    fn slot_load(self, op: &op::SlotLoad, to: Type) -> Result<(), String> {
        let slot = self.slot(op.buffer, op.slot)?;
        if let Some(start) = op.start {
            self.expect("start", self.ty(start), Type::INDEX)?;
        }
        self.expect("result", to, slot)
    }
}
