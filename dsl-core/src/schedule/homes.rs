//! Puts the operands of products that groups of warps compute into slots of shared memory.

use super::PlacedFunc;
use super::form::is_of_groups;
use crate::diagnostic::Diagnostics;
use crate::ir::index_map::dim_bits;
use crate::ir::{DType, Element, Func, Inst, Literal, Op, Precision, Region, Type, Value, op};
use crate::layout::group::operand_slot;
use crate::layout::{Holder, LinearLayout};

/// Makes `dot_slots` of each `dot` whose result lies as groups of warps have it.
///
/// # Errors
/// None that the function did not have before.
pub fn homes(func: PlacedFunc) -> Result<PlacedFunc, Diagnostics> {
    let dots = |func: &Func| {
        let insts = func.all_insts().into_iter();
        insts.filter(|&inst| is_grouped(func, inst)).collect()
    };
    let found: Vec<Inst> = dots(&func);
    if found.is_empty() {
        return Ok(func);
    }
    let mut func = func.into_inner();
    for region in func.all_regions() {
        for inst in std::mem::take(&mut func.region_mut(region).insts) {
            if found.contains(&inst) {
                housed(&mut func, region, inst);
            }
            func.region_mut(region).insts.push(inst);
        }
    }
    PlacedFunc::new(func)
}

fn is_grouped(func: &Func, inst: Inst) -> bool {
    let Op::Dot(op) = func.op(inst) else {
        return false;
    };
    let layout = func.layout(func.inst(inst).results[0]);
    let layout = layout.filter(|_| op.precision == Precision::Hopper);
    layout.is_some_and(|layout| is_of_groups(func, op, func.linear(layout)))
}

/// Appends what brings the operands of a dot to shared memory, and makes it one of slots.
fn housed(func: &mut Func, region: Region, inst: Inst) {
    let Op::Dot(op) = func.op(inst).clone() else {
        return;
    };
    let append = |func: &mut Func, op: Op, types: &[Type]| {
        let loc = func.inst(inst).loc.clone();
        let made = func.add_inst(op, types, loc);
        func.region_mut(region).insts.push(made);
        func.inst(made).results.first().copied()
    };
    let zero = Op::Constant(op::Constant {
        value: Literal::from_bits(DType::I32, 0),
    });
    let slot = append(func, zero, &[Type::scalar(DType::I32)]).unwrap_or(op.accumulator);
    let [a, b] = [op.a, op.b].map(|value| {
        let (ty, layout) = buffer_of(func, value);
        let buffer = append(func, Op::Buffer(op::Buffer {}), &[ty]).unwrap_or(value);
        let layout = func.intern(layout);
        func.set_layout(buffer, Some(layout));
        let store = op::SlotStore {
            value,
            buffer,
            slot,
        };
        append(func, Op::SlotStore(store), &[]);
        buffer
    });
    append(func, Op::ProxyFence(op::ProxyFence {}), &[]);
    append(func, Op::Barrier(op::Barrier {}), &[]);
    let layout = func.layout(op.accumulator);
    let sums = func.ty(op.accumulator).with_pending(DType::F32);
    let make = |func: &mut Func, op: Op| {
        let made = append(func, op, &[sums]).expect("broken invariant: the op has a result");
        func.set_layout(made, layout);
        made
    };
    let accumulator = make(func, Op::Pend(op::Pend { x: op.accumulator }));
    let x = make(
        func,
        Op::DotSlots(op::DotSlots {
            a,
            a_slot: slot,
            b,
            b_slot: slot,
            accumulator,
            precision: op.precision,
        }),
    );
    func.inst_mut(inst).op = Op::Settle(op::Settle { x });
}

/// A buffer for an operand: what registers hold side by side is so there too.
fn buffer_of(func: &Func, value: Value) -> (Type, LinearLayout) {
    let ty = func.ty(value);
    let bits = dim_bits(&ty.shape);
    let held = func.layout(value).map(|layout| func.linear(layout));
    let is_first = |layout: &LinearLayout| layout.holder(bits[1]) == Holder::Register(0);
    let inner = if held.is_some_and(is_first) { 0 } else { 1 };
    let dtype = ty.dtype().unwrap_or(DType::F16);
    let ty = Type {
        element: Element::Buffer(dtype, 1),
        shape: ty.shape,
    };
    let layout = operand_slot(&bits, inner);
    let layout = layout.expect("broken invariant: operands of groups of warps fill chunks");
    (ty, layout)
}
