//! The faults that are planted behind stages, each a change to one instruction; false where nothing changes.

use exactile_core::ir::{DType, Func, Inst, Op, Type, Value, op};
use exactile_core::layout::LinearLayout;

use crate::testing::programs::edit::{added_before, constant_before, remove, replace};

pub(super) fn drop_inst(func: &mut Func, inst: Inst) -> bool {
    remove(func, &[inst]);
    true
}

pub(super) fn drop_convert(func: &mut Func, inst: Inst) -> bool {
    let &Op::Convert(op::Convert { x }) = func.op(inst) else {
        return false;
    };
    replace(func, inst, &[x]);
    true
}

/// Two bits of the index of the first result, of which one a lane holds, change places.
pub(super) fn exchange_bits(func: &mut Func, inst: Inst) -> bool {
    let Some(&value) = func.inst(inst).results.first() else {
        return false;
    };
    let Some(layout) = func.layout(value) else {
        return false;
    };
    let linear = func.linear(layout);
    let [mut register, mut lane] =
        [linear.register_columns(), linear.lane_columns()].map(<[u64]>::to_vec);
    let warp = linear.warp_columns().to_vec();
    let Some(last) = lane.len().checked_sub(1) else {
        return false;
    };
    if register.is_empty() {
        lane.swap(0, last);
    } else {
        std::mem::swap(&mut register[0], &mut lane[0]);
    }
    if register == linear.register_columns() && lane == linear.lane_columns() {
        return false;
    }
    let changed = LinearLayout::new(linear.dim_bits().to_vec(), register, lane, warp);
    let changed = changed.expect("broken invariant: the same bits in another order");
    let changed = func.intern(changed);
    func.set_layout(value, Some(changed));
    true
}

/// The same of what `homes` makes: a tile that goes to a slot.
pub(super) fn exchange_homes(func: &mut Func, inst: Inst) -> bool {
    let Op::SlotStore(op::SlotStore { value, .. }) = *func.op(inst) else {
        return false;
    };
    let definition = func.definitions()[value];
    definition.is_some_and(|inst| exchange_bits(func, inst))
}

/// The slot that an instruction reads or writes.
fn slot(op: &mut Op) -> Option<&mut Value> {
    if let Op::CopyLanes(op::CopyLanes { slot, .. })
    | Op::CopyRun(op::CopyRun { slot, .. })
    | Op::SlotLoad(op::SlotLoad { slot, .. })
    | Op::SlotStore(op::SlotStore { slot, .. })
    | Op::DotSlots(op::DotSlots { b_slot: slot, .. }) = op
    {
        Some(slot)
    } else {
        None
    }
}

/// A slot that is one further.
pub(super) fn next_slot(func: &mut Func, inst: Inst) -> bool {
    let Some(own) = slot(&mut func.inst_mut(inst).op).copied() else {
        return false;
    };
    let next = added_before(func, inst, own, 1);
    if let Some(own) = slot(&mut func.inst_mut(inst).op) {
        *own = next;
    }
    true
}

pub(super) fn late_wait(func: &mut Func, inst: Inst) -> bool {
    let Op::WaitCopies(op) = &mut func.inst_mut(inst).op else {
        return false;
    };
    op.pending += 1;
    true
}

pub(super) fn late_products(func: &mut Func, inst: Inst) -> bool {
    if let Op::WaitProducts(op::WaitProducts { pending }) | Op::Settle(op::Settle { pending, .. }) =
        &mut func.inst_mut(inst).op
    {
        *pending += 1;
    }
    true
}

pub(super) fn wide_copies(func: &mut Func, inst: Inst) -> bool {
    let Op::CopyLanes(op) = &mut func.inst_mut(inst).op else {
        return false;
    };
    op.count *= 2;
    true
}

/// Where a row or a run begins, and how many elements it has.
fn numbers(op: &mut Op) -> Option<[&mut Value; 2]> {
    if let Op::CopyRow(op::CopyRow { start, count, .. })
    | Op::CopyRun(op::CopyRun { start, count, .. }) = op
    {
        Some([start, count])
    } else {
        None
    }
}

/// A row or a run that begins so many elements further and has so many more.
pub(super) fn other_row(func: &mut Func, inst: Inst, by: [i64; 2]) -> bool {
    let own = numbers(&mut func.inst_mut(inst).op).map(|own| own.map(|it| *it));
    let Some([start, count]) = own else {
        return false;
    };
    let [further, more] = by;
    let start = added_before(func, inst, start, further);
    let count = added_before(func, inst, count, more);
    if let Some(own) = numbers(&mut func.inst_mut(inst).op) {
        [start, count]
            .into_iter()
            .zip(own)
            .for_each(|(to, it)| *it = to);
    }
    true
}

/// A run, or a part of a row, that is read as one that begins an element further.
pub(super) fn other_begin(func: &mut Func, inst: Inst) -> bool {
    let (Op::SlotLoad(op::SlotLoad {
        start: Some(begin), ..
    })
    | Op::RowLoad(op::RowLoad {
        at: Some(begin), ..
    })) = *func.op(inst)
    else {
        return false;
    };
    let further = added_before(func, inst, begin, 1);
    let (Op::SlotLoad(op::SlotLoad { start: begin, .. })
    | Op::RowLoad(op::RowLoad { at: begin, .. })) = &mut func.inst_mut(inst).op
    else {
        return false;
    };
    *begin = Some(further);
    true
}

/// Which numbers of a box, or of its last part along an axis.
#[derive(Clone, Copy)]
pub(super) enum BoxPart {
    Origin,
    LastOrigin,
    Extent,
}

/// A box that begins an element further along an axis, or whose array ends an element before its end.
pub(super) fn other_box(func: &mut Func, inst: Inst, part: BoxPart, axis: usize) -> bool {
    let mut op = func.op(inst).clone();
    let (Op::LoadBox(op::LoadBox {
        origin, extents, ..
    })
    | Op::StoreBox(op::StoreBox {
        origin, extents, ..
    })) = &mut op
    else {
        return false;
    };
    let last = origin.len() - extents.len();
    let (numbers, by) = match part {
        BoxPart::Origin => (&mut origin[..], 1),
        BoxPart::LastOrigin if last == 0 => return false,
        BoxPart::LastOrigin => (&mut origin[last..], 1),
        BoxPart::Extent => (&mut extents[..], -1),
    };
    numbers[axis] = added_before(func, inst, numbers[axis], by);
    func.inst_mut(inst).op = op;
    true
}

/// A conversion of another tile of that type, which the same region has before.
pub(super) fn convert_other(func: &mut Func, inst: Inst) -> bool {
    let &Op::Convert(op::Convert { x }) = func.op(inst) else {
        return false;
    };
    let (ty, mut other) = (func.ty(x), None);
    for region in func.all_regions() {
        let insts = &func.region(region).insts;
        let Some(at) = insts.iter().position(|&it| it == inst) else {
            continue;
        };
        let before = insts[..at].iter().flat_map(|&it| &func.inst(it).results);
        other = before.copied().rfind(|&it| it != x && func.ty(it) == ty);
    }
    let Some(x) = other else {
        return false;
    };
    func.inst_mut(inst).op = Op::Convert(op::Convert { x });
    true
}

/// A tile with the layout of a tile of another shape.
pub(super) fn other_shape(func: &mut Func, inst: Inst) -> bool {
    let value = func.inst(inst).results[0];
    let Some(own) = func.layout(value) else {
        return false;
    };
    let dims = func.linear(own).dim_bits().to_vec();
    let mut all = func.values().filter_map(|it| func.layout(it));
    let Some(other) = all.find(|&it| func.linear(it).dim_bits() != dims) else {
        return false;
    };
    func.set_layout(value, Some(other));
    true
}

/// A loop that hands a carried value on as it was, the last one if there are not so many.
pub(super) fn keep_carried(func: &mut Func, inst: Inst, position: usize) -> bool {
    let Op::For(op::For { body, .. }) = *func.op(inst) else {
        return false;
    };
    let region = func.region(body);
    let parameters = region.parameters[1..].to_vec();
    let (Some(&last), Some(end)) = (region.insts.last(), parameters.len().checked_sub(1)) else {
        return false;
    };
    let position = position.min(end);
    let Op::Yield(op::Yield { values }) = &mut func.inst_mut(last).op else {
        return false;
    };
    let changed = values[position] != parameters[position];
    values[position] = parameters[position];
    changed
}

/// A branch that is always taken.
pub(super) fn always(func: &mut Func, inst: Inst) -> bool {
    let always = constant_before(func, inst, DType::Bool, 1);
    if let Op::If(op::If { condition, .. }) = &mut func.inst_mut(inst).op {
        *condition = always;
    }
    true
}

/// A difference of indices that is one more; not one of which a step of one leaves no rest.
pub(super) fn later_index(func: &mut Func, inst: Inst) -> bool {
    let Op::Binary(op::Binary { lhs, .. }) = *func.op(inst) else {
        return false;
    };
    let difference = func.inst(inst).results[0];
    let is_cast = |it: &Inst| matches!(func.op(*it), Op::Cast(op) if op.x == difference);
    if func.ty(lhs) != Type::INDEX || func.all_insts().iter().any(is_cast) {
        return false;
    }
    let later = added_before(func, inst, lhs, 1);
    if let Op::Binary(op::Binary { lhs, .. }) = &mut func.inst_mut(inst).op {
        *lhs = later;
    }
    true
}

/// Whether an instruction reads or writes slots that lie behind those of another buffer.
pub(super) fn is_behind(func: &Func, inst: Inst) -> bool {
    let (Op::SlotStore(op::SlotStore { buffer, .. })
    | Op::DotSlots(op::DotSlots { b: buffer, .. })) = *func.op(inst)
    else {
        return false;
    };
    let made = func.definitions()[buffer];
    made.is_some_and(|made| matches!(func.op(made), Op::Buffer(op) if op.behind.is_some()))
}
