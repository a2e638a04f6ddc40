//! Operands that are put together of parts along an axis, each a load of a box, as those are whose rows lie in pages of memory.

use super::{Array, Known, Multiplied};
use crate::ir::index_map::{dim_bits, dim_offset};
use crate::ir::numbers::filling;
use crate::ir::operand::PIECE_ROW_BITS;
use crate::ir::{Axis, Cache, Inst, Literal, Op, Value, op};
use crate::semantics::scalar::holds;

/// The loads of the parts along an axis of which a tile is put together.
pub(super) struct Along {
    pub(super) axis: Axis,
    pub(super) parts: Vec<Inst>,
}

/// What is known of a bit of an index.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bit {
    Known(bool),
    /// That of the index of the whole tile.
    Of(u32),
}

impl Known<'_> {
    /// The array of which a tile is several boxes, each part along an axis one, in as few parts as there are.
    pub(super) fn in_parts(&self, tile: Inst, of: Multiplied) -> Option<Array> {
        let &[value] = &self.func.inst(tile).results[..] else {
            return None;
        };
        let bits = dim_bits(&self.func.ty(value).shape);
        (bits.len() == 2).then_some(())?;
        let of_axis = |axis: usize| {
            (1..=bits[axis].saturating_sub(PIECE_ROW_BITS)).map(move |count| (axis, count))
        };
        let mut ways = (0..2).flat_map(of_axis);
        ways.find_map(|(axis, count)| self.joined(value, (axis, count), of))
    }

    /// The same, if the tile has so many parts along this axis, as a power of two.
    fn joined(&self, value: Value, (axis, count): (usize, u32), of: Multiplied) -> Option<Array> {
        let loads = (0..1_u64 << count).map(|part| self.load_of(value, (axis, count), part));
        let loads = loads.collect::<Option<Vec<Inst>>>()?;
        let arrays = loads.iter().map(|&load| self.array(load, of));
        let mut arrays = arrays.collect::<Option<Vec<Array>>>()?.into_iter();
        let mut all = arrays.next()?;
        (all.inner() == Some(1 - axis)).then_some(())?;
        self.fits(value, 1 - axis, of).then_some(())?;
        for (array, &load) in arrays.zip(&loads[1..]) {
            let same = array.extents == all.extents && array.strides == all.strides;
            (same && self.source(load) == self.source(loads[0])).then_some(())?;
            all.origin.extend(array.origin);
        }
        let axis = Axis(axis as u8);
        all.along = Some(Along { axis, parts: loads });
        Some(all)
    }

    /// What a load reads, and how.
    fn source(&self, load: Inst) -> Option<(Value, Option<Cache>)> {
        let Op::Load(op) = self.func.op(load) else {
            return None;
        };
        Some((op.base, op.cache))
    }

    /// The load that gives the elements of a part, in their order.
    fn load_of(&self, value: Value, (axis, count): (usize, u32), part: u64) -> Option<Inst> {
        let bits = dim_bits(&self.func.ty(value).shape);
        let own = bits[axis] - count;
        let start = dim_offset(&bits, axis);
        let index = (0..bits.iter().sum()).map(|bit| match bit.checked_sub(start + own) {
            Some(at) if at < count => Bit::Known(part >> at & 1 == 1),
            Some(_) | None => Bit::Of(bit),
        });
        let (load, index) = self.leaf(value, index.collect())?;
        let mut own_bits = bits.clone();
        own_bits[axis] = own;
        let result = self.func.inst(load).results[0];
        let kept = (0..bits.iter().sum::<u32>())
            .filter(|&bit| !(start + own..start + own + count).contains(&bit));
        let whole = dim_bits(&self.func.ty(result).shape) == own_bits
            && index.into_iter().eq(kept.map(Bit::Of));
        whole.then_some(load)
    }

    /// What makes the elements of a tile whose index has such bits, behind views and choices that these bits decide, and the bits of
    /// its own index.
    fn leaf(&self, value: Value, index: Vec<Bit>) -> Option<(Inst, Vec<Bit>)> {
        let inst = self.definitions[value]?;
        let op = self.func.op(inst);
        if let Op::View(view) = op {
            return self.leaf(view.x, self.through(view, &index)?);
        }
        if let Op::Select(select) = op {
            let chosen = match self.holds(select.condition, &index)? {
                true => select.on_true,
                false => select.on_false,
            };
            return self.leaf(chosen, index);
        }
        matches!(op, Op::Load(_)).then_some((inst, index))
    }

    /// The bits of the index that a view takes an element from.
    fn through(&self, view: &op::View, index: &[Bit]) -> Option<Vec<Bit>> {
        (view.offset == 0).then_some(())?;
        let count = dim_bits(&self.func.ty(view.x).shape).iter().sum::<u32>();
        let mut from = vec![Bit::Known(false); count as usize];
        for (&bit, &to) in index.iter().zip(&view.bits) {
            let Some(to) = to else {
                continue;
            };
            let to = &mut from[usize::from(to)];
            (*to == Bit::Known(false)).then_some(())?;
            *to = bit;
        }
        Some(from)
    }

    /// Whether a comparison of numbers that the bits of an index decide holds.
    fn holds(&self, condition: Value, index: &[Bit]) -> Option<bool> {
        if let Op::View(view) = self.op(condition)? {
            return self.holds(view.x, &self.through(view, index)?);
        }
        let Op::Compare(op::Compare { op, lhs, rhs }) = *self.op(condition)? else {
            return None;
        };
        let [lhs, rhs] = [lhs, rhs].map(|it| self.number(it, index));
        Some(holds(op, &lhs?, &rhs?))
    }

    /// A number that is the same wherever an index has such bits.
    fn number(&self, value: Value, index: &[Bit]) -> Option<i64> {
        let op = |value: Value| self.op(value);
        if let Some(literal) = filling(value, op).and_then(Literal::integer) {
            return i64::try_from(literal).ok();
        }
        if let Op::View(view) = self.op(value)? {
            return self.number(view.x, &self.through(view, index)?);
        }
        let Op::Arange(arange) = self.op(value)? else {
            return None;
        };
        let bits = index.iter().enumerate().map(|(at, bit)| match bit {
            Bit::Known(set) => Some(i64::from(*set) << at),
            Bit::Of(_) => None,
        });
        Some(arange.start + bits.sum::<Option<i64>>()?)
    }
}
