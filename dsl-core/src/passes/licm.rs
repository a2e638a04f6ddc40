//! Moves loop-invariant pure instructions out of loops. Every op is total, so running one that the
//! loop would not have run changes nothing.

use std::collections::BTreeSet;

use crate::ir::{Func, Inst, Op, Region, Value};

/// Hoists what does not depend on the iteration out of `for` and `while`, innermost loops first.
pub fn licm(func: &mut Func) {
    region(func, func.body());
}

fn region(func: &mut Func, of: Region) {
    let insts = std::mem::take(&mut func.region_mut(of).insts);
    let mut kept = Vec::with_capacity(insts.len());
    for inst in insts {
        let nested = func.op(inst).regions();
        for &inner in &nested {
            region(func, inner);
        }
        if matches!(func.op(inst), Op::For(_) | Op::While(_)) {
            for &inner in &nested {
                kept.extend(hoist(func, inner));
            }
        }
        kept.push(inst);
    }
    func.region_mut(of).insts = kept;
}

/// Takes the invariant instructions out of a loop region, in order.
fn hoist(func: &mut Func, from: Region) -> Vec<Inst> {
    let mut variant: BTreeSet<Value> = func.region(from).parameters.iter().copied().collect();
    let insts = std::mem::take(&mut func.region_mut(from).insts);
    let (mut hoisted, mut kept) = (Vec::new(), Vec::new());
    for inst in insts {
        let invariant = !matches!(func.op(inst), Op::Yield(_))
            && func.is_pure(inst)
            && !depends(func, inst, &variant);
        if invariant {
            hoisted.push(inst);
        } else {
            variant.extend(&func.inst(inst).results);
            kept.push(inst);
        }
    }
    func.region_mut(from).insts = kept;
    hoisted
}

fn depends(func: &Func, inst: Inst, variant: &BTreeSet<Value>) -> bool {
    let mut found = false;
    func.op(inst)
        .visit_operands(&mut |value| found |= variant.contains(&value));
    for nested in func.op(inst).regions() {
        func.walk(nested, &mut |inner| {
            func.op(inner)
                .visit_operands(&mut |value| found |= variant.contains(&value));
        });
    }
    found
}
