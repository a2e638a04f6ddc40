//! What reads the slots of loads that have run ahead.

use std::collections::{BTreeMap, BTreeSet};

use super::rings::{Fed, Ring, other_of};
use crate::ir::{Func, Inst, Op, Value, op};
use crate::passes::rewrite::replace_uses;

/// Makes loads, or the products that they feed, read this slot of their buffers. Masked elements are zero there,
/// which becomes `other`.
pub(super) fn read_back(
    func: &mut Func,
    rings: &BTreeMap<Inst, Ring>,
    buffers: BTreeMap<Inst, Value>,
    slot: Value,
) {
    let mut gone = BTreeSet::new();
    let begun = func.definitions();
    for (load, buffer) in buffers {
        if let Some(fed) = rings[&load].fed {
            gone.extend([load, fed.store]);
            gone.extend(begun.get(fed.buffer).copied().flatten());
            feed(func, &fed, buffer, slot);
            continue;
        }
        let read = Op::SlotLoad(op::SlotLoad { buffer, slot });
        let Some((condition, on_false)) = other_of(func, load) else {
            func.inst_mut(load).op = read;
            continue;
        };
        let data = func.inst(load);
        let (result, loc) = (data.results[0], data.loc.clone());
        let inst = func.add_inst(read, &[func.ty(result)], loc);
        let on_true = func.inst(inst).results[0];
        func.set_layout(on_true, func.layout(result));
        func.inst_mut(load).op = Op::Select(op::Select {
            condition,
            on_true,
            on_false,
        });
        insert_before(func, load, vec![inst]);
    }
    for region in func.all_regions() {
        let mut insts = std::mem::take(&mut func.region_mut(region).insts);
        insts.retain(|inst| !gone.contains(inst));
        func.region_mut(region).insts = settled(func, insts, slot);
    }
    merge_branches(func);
}

/// Does without a branch where both sides are one product and the same: of masked tiles and of whole ones, once
/// copies have brought both.
fn merge_branches(func: &mut Func) {
    let mut same = BTreeMap::new();
    for region in func.all_regions() {
        let mut insts = Vec::new();
        for inst in std::mem::take(&mut func.region_mut(region).insts) {
            match only_inst(func, inst) {
                Some(inner) => {
                    let results = func.inst(inst).results.iter();
                    same.extend(results.copied().zip(func.inst(inner).results.clone()));
                    insts.push(inner);
                }
                None => insts.push(inst),
            }
        }
        func.region_mut(region).insts = insts;
    }
    if !same.is_empty() {
        replace_uses(func, &|value| same.get(&value).copied().unwrap_or(value));
    }
}

/// The one instruction of either branch, which hands on what it gives.
fn only_inst(func: &Func, inst: Inst) -> Option<Inst> {
    let &Op::If(op::If {
        on_true, on_false, ..
    }) = func.op(inst)
    else {
        return None;
    };
    let [one, other] = [on_true, on_false].map(|branch| match func.region(branch).insts[..] {
        [inner, _] => Some(inner).filter(|&it| func.yielded(branch) == func.inst(it).results),
        _ => None,
    });
    let (one, other) = (one?, other?);
    let product = matches!(func.op(one), Op::DotSlots(_));
    (product && func.op(one) == func.op(other)).then_some(one)
}

fn feed(func: &mut Func, fed: &Fed, ring: Value, slot: Value) {
    if let Op::DotSlots(op) = &mut func.inst_mut(fed.dot).op {
        let sides = [(&mut op.a, &mut op.a_slot), (&mut op.b, &mut op.b_slot)];
        for (buffer, own) in sides {
            if *buffer == fed.buffer {
                (*buffer, *own) = (ring, slot);
            }
        }
    }
}

/// The instructions without a fence and a barrier before a product of which both operands have run ahead: the
/// head of the iteration has them.
fn settled(func: &Func, insts: Vec<Inst>, slot: Value) -> Vec<Inst> {
    let mut left: Vec<Inst> = Vec::new();
    for inst in insts {
        if let Op::DotSlots(op) = func.op(inst)
            && [op.a_slot, op.b_slot] == [slot; 2]
        {
            let needless =
                |inst: &Inst| matches!(func.op(*inst), Op::ProxyFence(_) | Op::Barrier(_));
            while left.last().is_some_and(needless) {
                left.pop();
            }
        }
        left.push(inst);
    }
    left
}

/// Puts instructions before another one, into its region.
pub(super) fn insert_before(func: &mut Func, inst: Inst, insts: Vec<Inst>) {
    for region in func.all_regions() {
        let found = &mut func.region_mut(region).insts;
        if let Some(at) = found.iter().position(|&it| it == inst) {
            found.splice(at..at, insts);
            return;
        }
    }
}
