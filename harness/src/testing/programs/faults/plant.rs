//! The planted faults, each a change to a lane function.

use std::collections::BTreeSet;

use exactile_core::ir::{
    BinaryOp, CompareOp, DType, Func, Inst, Literal, Op, RawOp, TernaryOp, Type, Value, op,
};

use super::super::edit::{add_before, remove, replace};
use exactile_core::random::Random;

fn sites(func: &Func, wanted: impl Fn(&Op) -> bool) -> Vec<Inst> {
    let insts = func.all_insts().into_iter();
    insts.filter(|&inst| wanted(func.op(inst))).collect()
}

/// One of the instructions that are `wanted`.
fn one(func: &Func, random: &mut Random, wanted: impl Fn(&Op) -> bool) -> Option<Inst> {
    let sites = sites(func, wanted);
    (!sites.is_empty()).then(|| random.pick(&sites))
}

pub(super) fn keep_operands(func: &mut Func, _random: &mut Random) -> bool {
    let definitions = func.definitions();
    let shuffle_of = |value: Value, own: Value| {
        let inst = definitions[value];
        inst.is_some_and(
            |inst| matches!(func.op(inst), Op::ShuffleXor(op::ShuffleXor { x, .. }) if *x == own),
        )
    };
    let either = |a: Value, b: Value| shuffle_of(a, b) || shuffle_of(b, a);
    let exchanged = |op: &Op| matches!(op, Op::Select(op) if either(op.on_true, op.on_false));
    let selects = sites(func, exchanged);
    for &inst in &selects {
        if let Op::Select(op::Select { on_false, .. }) = *func.op(inst) {
            replace(func, inst, &[on_false]);
        }
    }
    !selects.is_empty()
}

pub(super) fn wrong_lane_mask(func: &mut Func, random: &mut Random) -> bool {
    let Some(inst) = one(func, random, |op| matches!(op, Op::ShuffleXor(_))) else {
        return false;
    };
    if let Op::ShuffleXor(op::ShuffleXor { lane_mask, .. }) = &mut func.inst_mut(inst).op {
        *lane_mask = if *lane_mask == 1 { 2 } else { *lane_mask / 2 };
    }
    true
}

pub(super) fn drop_barrier(func: &mut Func, random: &mut Random) -> bool {
    let Some(inst) = one(func, random, |op| matches!(op, Op::Barrier(op::Barrier {}))) else {
        return false;
    };
    remove(func, &[inst]);
    true
}

pub(super) fn drop_wait(func: &mut Func, random: &mut Random) -> bool {
    let Some(inst) = one(func, random, |op| matches!(op, Op::WaitCopies(_))) else {
        return false;
    };
    remove(func, &[inst]);
    true
}

pub(super) fn late_wait(func: &mut Func, random: &mut Random) -> bool {
    let Some(inst) = one(func, random, |op| matches!(op, Op::WaitCopies(_))) else {
        return false;
    };
    if let Op::WaitCopies(op::WaitCopies { pending }) = &mut func.inst_mut(inst).op {
        *pending += 1;
    }
    true
}

pub(super) fn start_too_many(func: &mut Func, _random: &mut Random) -> bool {
    let starts = |func: &Func, inst: Inst| {
        let mut found = false;
        for region in func.op(inst).regions() {
            func.walk(region, &mut |inner| {
                found |= matches!(func.op(inner), Op::StartCopy(_));
            });
        }
        found
    };
    let guards = sites(func, |op| matches!(op, Op::If(_)));
    let guards: Vec<Inst> = guards.into_iter().filter(|&it| starts(func, it)).collect();
    for &inst in &guards {
        let value = Literal::from_bits(DType::Bool, 1);
        let always = add_before(func, inst, Op::Constant(op::Constant { value }), Type::BOOL);
        if let Op::If(op::If { condition, .. }) = &mut func.inst_mut(inst).op {
            *condition = always;
        }
    }
    !guards.is_empty()
}

/// The values from which the masks of accesses are made by `and`, `splat` and vectors.
fn mask_parts(func: &Func) -> BTreeSet<Value> {
    let definitions = func.definitions();
    let mut pending: Vec<Value> = Vec::new();
    for inst in func.all_insts() {
        if let Op::LaneLoad(op::LaneLoad { mask, .. }) | Op::LaneStore(op::LaneStore { mask, .. }) =
            func.op(inst)
        {
            pending.extend(mask);
        }
    }
    let mut parts = BTreeSet::new();
    while let Some(value) = pending.pop() {
        if !parts.insert(value) {
            continue;
        }
        let Some(inst) = definitions[value] else {
            continue;
        };
        if let op @ (Op::Binary(op::Binary {
            op: BinaryOp::And, ..
        })
        | Op::CheckBounds(_)
        | Op::Extract(_)
        | Op::Splat(_)) = func.op(inst)
        {
            op.visit_operands(&mut |operand| {
                if func.ty(operand).dtype() == Some(DType::Bool) {
                    pending.push(operand);
                }
            });
        }
    }
    parts
}

pub(super) fn loose_mask(func: &mut Func, _random: &mut Random) -> bool {
    let parts = mask_parts(func);
    let mut planted = false;
    for inst in func.all_insts() {
        let masks = func.inst(inst).results.iter().any(|it| parts.contains(it));
        if let Op::Compare(op::Compare { op, .. }) = &mut func.inst_mut(inst).op
            && masks
            && *op == CompareOp::Lt
        {
            *op = CompareOp::Le;
            planted = true;
        }
    }
    planted
}

pub(super) fn drop_plus_zero(func: &mut Func, _random: &mut Random) -> bool {
    let definitions = func.definitions();
    let zero = |value: Value| match definitions[value].map(|inst| func.op(inst)) {
        Some(Op::Constant(op::Constant { value })) => {
            value.is_positive_zero() && value.dtype.is_float()
        }
        Some(Op::Splat(op::Splat { x })) => matches!(
            definitions[*x].map(|inst| func.op(inst)),
            Some(Op::Constant(op::Constant { value })) if value.is_positive_zero() && value.dtype.is_float()
        ),
        Some(_) | None => false,
    };
    let additions = sites(
        func,
        |op| matches!(op, Op::Binary(op::Binary { op: BinaryOp::Add, rhs, .. }) if zero(*rhs)),
    );
    for &inst in &additions {
        if let Op::Binary(op::Binary { lhs, .. }) = *func.op(inst) {
            replace(func, inst, &[lhs]);
        }
    }
    !additions.is_empty()
}

pub(super) fn swap_select(func: &mut Func, random: &mut Random) -> bool {
    let Some(inst) = one(func, random, |op| matches!(op, Op::Select(_))) else {
        return false;
    };
    if let Op::Select(op::Select {
        on_true, on_false, ..
    }) = &mut func.inst_mut(inst).op
    {
        std::mem::swap(on_true, on_false);
    }
    true
}

pub(super) fn ignore_nan(func: &mut Func, _random: &mut Random) -> bool {
    let mut planted = false;
    for inst in func.all_insts() {
        let dtype = func
            .inst(inst)
            .results
            .first()
            .and_then(|&it| func.ty(it).dtype());
        if let Op::Binary(op::Binary { op, .. }) = &mut func.inst_mut(inst).op
            && dtype.is_some_and(DType::is_float)
        {
            if *op == BinaryOp::Minimum {
                *op = BinaryOp::Minnum;
                planted = true;
            } else if *op == BinaryOp::Maximum {
                *op = BinaryOp::Maxnum;
                planted = true;
            }
        }
    }
    planted
}

pub(super) fn wrap_shifts(func: &mut Func, _random: &mut Random) -> bool {
    let shifts = sites(func, |op| {
        matches!(
            op,
            Op::Raw(op::Raw {
                op: RawOp::Shl | RawOp::Shr,
                ..
            })
        )
    });
    let mut planted = false;
    for inst in shifts {
        let Op::Raw(op::Raw { op, lhs, rhs }) = *func.op(inst) else {
            continue;
        };
        let ty = func.ty(rhs);
        let Some(dtype) = ty.dtype() else {
            continue;
        };
        let (amount, is_guarded) = without_guard(func, inst, rhs);
        planted |= is_guarded;
        let value = Literal::from_bits(dtype, u64::from(dtype.bits() - 1));
        let limit = add_before(func, inst, Op::Constant(op::Constant { value }), ty);
        let and = Op::Binary(op::Binary {
            op: BinaryOp::And,
            lhs: amount,
            rhs: limit,
        });
        let rhs = add_before(func, inst, and, ty);
        func.inst_mut(inst).op = Op::Raw(op::Raw { op, lhs, rhs });
    }
    planted
}

/// The amount of a raw shift as it was written, and whether it had a guard, which is gone: one that
/// holds the amount below the width, or one that takes the shifted number for such amounts alone.
fn without_guard(func: &mut Func, shift: Inst, amount: Value) -> (Value, bool) {
    if let Some(inst) = func.definitions()[amount]
        && let Op::Select(op::Select { on_true, .. }) = *func.op(inst)
    {
        return (on_true, true);
    }
    let shifted = func.inst(shift).results[0];
    let of_shifted =
        |op: &Op| matches!(*op, Op::Select(op::Select { on_true, .. }) if on_true == shifted);
    let guards = sites(func, of_shifted);
    for &guard in &guards {
        if let Op::Select(op::Select { on_false, .. }) = &mut func.inst_mut(guard).op {
            *on_false = shifted;
        }
    }
    (amount, !guards.is_empty())
}

pub(super) fn wrong_vector_element(func: &mut Func, random: &mut Random) -> bool {
    let wanted = |op: &Op| {
        matches!(op, Op::Extract(_) | Op::ShuffleVector(_))
            || matches!(op, Op::Vector(op::Vector { elements }) if elements.len() > 1)
    };
    let Some(inst) = one(func, random, wanted) else {
        return false;
    };
    let op = &mut func.inst_mut(inst).op;
    if let Op::Extract(op::Extract { index, .. }) = op {
        *index ^= 1;
    } else if let Op::ShuffleVector(op::ShuffleVector { indices, .. }) = op {
        indices.reverse();
    } else if let Op::Vector(op::Vector { elements }) = op {
        elements.swap(0, 1);
    }
    true
}

pub(super) fn shift_offset(func: &mut Func, random: &mut Random) -> bool {
    let wanted = |op: &Op| matches!(op, Op::LaneLoad(_) | Op::LaneStore(_));
    let Some(inst) = one(func, random, wanted) else {
        return false;
    };
    let Some(offset) = func.op(inst).access().map(|access| access.offsets) else {
        return false;
    };
    let ty = func.ty(offset);
    let Some(dtype) = ty.dtype() else {
        return false;
    };
    let value = Literal::from_bits(dtype, 1);
    let one = add_before(func, inst, Op::Constant(op::Constant { value }), ty);
    let add = Op::Binary(op::Binary {
        op: BinaryOp::Add,
        lhs: offset,
        rhs: one,
    });
    let moved = add_before(func, inst, add, ty);
    if let Op::LaneLoad(op::LaneLoad { offset, .. }) | Op::LaneStore(op::LaneStore { offset, .. }) =
        &mut func.inst_mut(inst).op
    {
        *offset = moved;
    }
    true
}

pub(super) fn split_fma(func: &mut Func, _random: &mut Random) -> bool {
    let fused = sites(func, |op| {
        matches!(
            op,
            Op::Ternary(op::Ternary {
                op: TernaryOp::Fma,
                ..
            })
        )
    });
    for &inst in &fused {
        let Op::Ternary(op::Ternary { a, b, c, .. }) = *func.op(inst) else {
            continue;
        };
        let ty = func.ty(a);
        let multiply = Op::Binary(op::Binary {
            op: BinaryOp::Mul,
            lhs: a,
            rhs: b,
        });
        let product = add_before(func, inst, multiply, ty);
        func.inst_mut(inst).op = Op::Binary(op::Binary {
            op: BinaryOp::Add,
            lhs: product,
            rhs: c,
        });
    }
    !fused.is_empty()
}

/// The values that depend on the lane or the warp.
fn lane_dependent(func: &Func) -> BTreeSet<Value> {
    let mut dependent = BTreeSet::new();
    for inst in func.all_insts() {
        let op = func.op(inst);
        let mut depends = matches!(op, Op::LaneId(op::LaneId {}) | Op::WarpId(op::WarpId {}));
        op.visit_operands(&mut |value| depends |= dependent.contains(&value));
        if depends && !matches!(op, Op::LaneLoad(_)) {
            dependent.extend(&func.inst(inst).results);
        }
    }
    dependent
}

pub(super) fn store_replicas(func: &mut Func, _random: &mut Random) -> bool {
    let dependent = lane_dependent(func);
    let alone = |op: &op::LaneStore| {
        let masked = op.mask.is_some_and(|mask| dependent.contains(&mask));
        masked && !dependent.contains(&op.offset)
    };
    let guarded = sites(func, |op| matches!(op, Op::LaneStore(op) if alone(op)));
    for &inst in &guarded {
        if let Op::LaneStore(op::LaneStore { mask, .. }) = &mut func.inst_mut(inst).op {
            *mask = None;
        }
    }
    !guarded.is_empty()
}

pub(super) fn double_rounding(func: &mut Func, _random: &mut Random) -> bool {
    let casts = sites(func, |op| matches!(op, Op::Cast(_)));
    let mut planted = false;
    for inst in casts {
        let Op::Cast(op::Cast { x }) = *func.op(inst) else {
            continue;
        };
        let (from, to) = (func.ty(x), func.ty(func.inst(inst).results[0]));
        let narrow = to.dtype().is_some_and(DType::is_narrow_float);
        if from.dtype() == Some(DType::F64) && narrow {
            let middle = from.with_dtype(DType::F32);
            let x = add_before(func, inst, Op::Cast(op::Cast { x }), middle);
            func.inst_mut(inst).op = Op::Cast(op::Cast { x });
            planted = true;
        }
    }
    planted
}

pub(super) fn swap_carried(func: &mut Func, _random: &mut Random) -> bool {
    let mut planted = false;
    for inst in sites(func, |op| matches!(op, Op::For(_))) {
        let Op::For(op::For { body, .. }) = *func.op(inst) else {
            continue;
        };
        let yielded = func.yielded(body).to_vec();
        let pairs = (1..yielded.len()).flat_map(|second| (0..second).map(move |it| (it, second)));
        let swapped = pairs.into_iter().find(|&(first, second)| {
            yielded[first] != yielded[second] && func.ty(yielded[first]) == func.ty(yielded[second])
        });
        let last = func.region(body).insts.last().copied();
        if let (Some((first, second)), Some(last)) = (swapped, last)
            && let Op::Yield(op::Yield { values }) = &mut func.inst_mut(last).op
        {
            values.swap(first, second);
            planted = true;
        }
    }
    planted
}

pub(super) fn swap_subtraction(func: &mut Func, random: &mut Random) -> bool {
    let wanted = |op: &Op| {
        matches!(
            op,
            Op::Binary(op::Binary {
                op: BinaryOp::Sub,
                ..
            })
        )
    };
    let Some(inst) = one(func, random, wanted) else {
        return false;
    };
    if let Op::Binary(op::Binary { lhs, rhs, .. }) = &mut func.inst_mut(inst).op {
        std::mem::swap(lhs, rhs);
    }
    true
}
