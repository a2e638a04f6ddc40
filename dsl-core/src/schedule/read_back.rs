//! What reads the slots of loads that have run ahead.

use std::collections::{BTreeMap, BTreeSet};

use super::rings::{Fed, Ring, other_of};
use crate::ir::{Func, Inst, Op, Region, Value, op};
use crate::passes::rewrite::replace_uses;

/// Makes loads, or the products that they feed, read this slot of their buffers. Masked elements are zero there,
/// which becomes `other`.
pub(super) fn read_back(
    func: &mut Func,
    rings: &BTreeMap<Inst, Ring>,
    buffers: &BTreeMap<Inst, Value>,
    (body, slot): (Region, Value),
) {
    let written = stored_in(func, body);
    let mut gone = BTreeSet::new();
    let begun = func.definitions();
    for (&load, &buffer) in buffers {
        if let Some(fed) = rings[&load].fed {
            gone.extend([load, fed.store]);
            gone.extend(begun.get(fed.buffer).copied().flatten());
            feed(func, &fed, buffer, slot);
            continue;
        }
        if let Some(convert) = rings[&load].moved {
            gone.insert(load);
            func.inst_mut(convert).op = Op::SlotLoad(op::SlotLoad {
                buffer,
                slot,
                start: None,
            });
            continue;
        }
        let start = rings[&load].run.map(|[start, _]| start);
        let read = Op::SlotLoad(op::SlotLoad {
            buffer,
            slot,
            start,
        });
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
        func.region_mut(region).insts = settled(func, insts, (&written, slot));
    }
    merge_branches(func);
}

/// Does without a branch where both sides do the same with one product: of masked tiles and of whole ones, once
/// copies have brought both.
fn merge_branches(func: &mut Func) {
    let mut same = BTreeMap::new();
    for region in func.all_regions() {
        let mut insts = Vec::new();
        for inst in std::mem::take(&mut func.region_mut(region).insts) {
            match common(func, inst) {
                Some((inner, values)) => {
                    let results = func.inst(inst).results.iter();
                    same.extend(results.copied().zip(values));
                    insts.extend(inner);
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

/// What both branches of an instruction do, and what they hand on, if it is the same.
fn common(func: &Func, inst: Inst) -> Option<(Vec<Inst>, Vec<Value>)> {
    let &Op::If(op::If {
        on_true, on_false, ..
    }) = func.op(inst)
    else {
        return None;
    };
    let [ours, theirs] = [on_true, on_false].map(|branch| needed(func, branch));
    let mut renamed: BTreeMap<Value, Value> = BTreeMap::new();
    let mut products = 0;
    for (&one, &other) in ours.iter().zip(&theirs) {
        let mut op = func.op(other).clone();
        op.map_operands(&mut |value| renamed.get(&value).copied().unwrap_or(value));
        if *func.op(one) != op || !op.regions().is_empty() || !alike(func, one, other) {
            return None;
        }
        products += usize::from(matches!(op, Op::DotSlots(_) | Op::Dot(_)));
        let results = |inst: Inst| func.inst(inst).results.iter().copied();
        renamed.extend(results(other).zip(results(one)));
    }
    let whole = ours.len() == theirs.len() && products == 1;
    let (_, inner) = ours.split_last()?;
    whole.then(|| (inner.to_vec(), func.yielded(on_true).to_vec()))
}

/// Whether the results of two instructions have the same types and layouts.
fn alike(func: &Func, one: Inst, other: Inst) -> bool {
    let results = |inst: Inst| {
        let results = func.inst(inst).results.iter();
        results.map(|&it| (func.ty(it), func.layout(it)))
    };
    results(one).eq(results(other))
}

/// The instructions of a branch that do something, or from which that follows.
fn needed(func: &Func, branch: Region) -> Vec<Inst> {
    let mut used = BTreeSet::new();
    let mut found: Vec<Inst> = Vec::new();
    for &inst in func.region(branch).insts.iter().rev() {
        let results = &func.inst(inst).results;
        if !func.is_pure(inst) || results.iter().any(|it| used.contains(it)) {
            used.extend(func.op(inst).operands());
            found.push(inst);
        }
    }
    found.reverse();
    found
}

fn feed(func: &mut Func, fed: &Fed, ring: Value, slot: Value) {
    if let Op::DotSlots(op) = &mut func.inst_mut(fed.dot).op {
        if op.a == fed.buffer {
            (op.a, op.a_slot) = (ring, Some(slot));
        }
        if op.b == fed.buffer {
            (op.b, op.b_slot) = (ring, slot);
        }
    }
}

/// The buffers that lanes store tiles to in a loop.
fn stored_in(func: &Func, body: Region) -> BTreeSet<Value> {
    let mut stored = BTreeSet::new();
    func.walk(body, &mut |inst| {
        if let Op::SlotStore(op::SlotStore { buffer, .. }) = *func.op(inst) {
            stored.insert(buffer);
        }
    });
    stored
}

/// The instructions without a fence and a barrier before a product of whose operands each has run ahead, or is not
/// written in the loop: the head of the iteration has them.
fn settled(func: &Func, insts: Vec<Inst>, (written, slot): (&BTreeSet<Value>, Value)) -> Vec<Inst> {
    let is_ready = |buffer: Value, own: Value| own == slot || !written.contains(&buffer);
    let mut left: Vec<Inst> = Vec::new();
    for inst in insts {
        if let Op::DotSlots(op) = func.op(inst)
            && op.a_slot.is_none_or(|own| is_ready(op.a, own))
            && is_ready(op.b, op.b_slot)
            && (op.a_slot == Some(slot) || op.b_slot == slot)
        {
            let needless =
                |inst: &Inst| matches!(func.op(*inst), Op::ProxyFence(_) | Op::Barrier(_));
            let begins = |inst: &Inst| matches!(func.op(*inst), Op::Pend(_));
            let sums = left.pop_if(|last| begins(last));
            while left.last().is_some_and(needless) {
                left.pop();
            }
            left.extend(sums);
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

/// Puts an instruction behind another one, into its region.
pub(super) fn insert_after(func: &mut Func, inst: Inst, after: Inst) {
    for region in func.all_regions() {
        let found = &mut func.region_mut(region).insts;
        if let Some(at) = found.iter().position(|&it| it == inst) {
            found.insert(at + 1, after);
            return;
        }
    }
}
