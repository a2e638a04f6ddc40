//! Groups of warps, the numbered barriers by which they meet, and the memory that they touch.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::entity::EntityMap;
use crate::ir::numbers::filling;
use crate::ir::{CompareOp, Effect, Element, Func, Inst, Op, Space, Value, op};

/// Warps that multiply together.
pub(crate) const GROUP: u32 = 4;

/// Waits at a numbered barrier until so many warps have come to it.
pub(super) fn sync(id: i64, warps: u32) -> Op {
    let warps = i64::from(warps);
    Op::NamedSync(op::NamedSync { id, warps })
}

/// Comes to a numbered barrier of so many warps, and goes on.
pub(super) fn arrive(id: i64, warps: u32) -> Op {
    let warps = i64::from(warps);
    Op::NamedArrive(op::NamedArrive { id, warps })
}

/// The numbers of barriers that nothing uses, the least first. Barrier 0 is that of all warps.
pub(super) fn unused(func: &Func) -> impl Iterator<Item = i64> {
    let insts = func.all_insts().into_iter();
    let numbers = insts.filter_map(|inst| Some(numbered(func.op(inst))?.0));
    let used: BTreeSet<i64> = numbers.collect();
    (1..16).filter(move |id| !used.contains(id))
}

/// The number of a numbered barrier and its warps.
pub(super) fn numbered(op: &Op) -> Option<(i64, i64)> {
    if let Op::NamedSync(op::NamedSync { id, warps })
    | Op::NamedArrive(op::NamedArrive { id, warps }) = op
    {
        return Some((*id, *warps));
    }
    None
}

/// An instruction and all that it owns.
pub(super) fn with_nested(func: &Func, inst: Inst) -> Vec<Inst> {
    let mut insts = vec![inst];
    for region in func.op(inst).regions() {
        func.walk(region, &mut |inner| insts.push(inner));
    }
    insts
}

/// Whether a value is that the number of the warp is zero.
pub(super) fn is_first_warp(
    func: &Func,
    definitions: &EntityMap<Value, Option<Inst>>,
    value: Value,
) -> bool {
    let op_of = |value: Value| definitions[value].map(|inst| func.op(inst));
    let Some(Op::Compare(compare)) = op_of(value) else {
        return false;
    };
    let is_zero = filling(compare.rhs, op_of)
        .is_some_and(|literal| literal.dtype.is_integer() && literal.bits == 0);
    let of_warp = matches!(op_of(compare.lhs), Some(Op::WarpId(_)));
    compare.op == CompareOp::Eq && of_warp && is_zero
}

/// The bytes of shared memory that an allocation takes; `None` for what is no allocation there.
pub(super) fn bytes_of(
    func: &Func,
    definitions: &EntityMap<Value, Option<Inst>>,
    value: Value,
) -> Option<Range<i64>> {
    let Element::Pointer(dtype, Space::Shared) = func.ty(value).element else {
        return None;
    };
    let Op::Alloc(op::Alloc { offset, count }) = *func.op(definitions[value]?) else {
        return None;
    };
    Some(offset..offset + count * i64::from(dtype.bytes()))
}

/// The arrays in global memory that instructions write, or all that they touch.
pub(super) fn arrays(func: &Func, insts: &[Inst], written: bool) -> BTreeSet<Value> {
    let definitions = func.definitions();
    let base_of = |map: Value| {
        let Some(Op::TensorMap(map)) = definitions[map].map(|inst| func.op(inst)) else {
            return map;
        };
        map.base
    };
    let mut found = BTreeSet::new();
    for &inst in insts {
        let op = func.op(inst);
        let access = op.access();
        let access = access.filter(|access| !written || access.effect != Effect::Reads);
        found.extend(access.map(|access| access.base));
        if let Op::CopyOut(copy) = op {
            found.insert(base_of(copy.map));
        }
        if let Op::CopyIn(copy) = op
            && !written
        {
            found.insert(base_of(copy.map));
        }
    }
    found
}
