//! Moves loop-invariant pure instructions out of loops. Every op is total, so running one that the
//! loop would not have run changes nothing.

use crate::entity::EntityMap;
use crate::ir::{Func, Inst, Op, Region, Value};

/// Hoists what does not depend on the iteration out of `for` and `while`, innermost loops first.
pub fn licm(func: &mut Func) {
    let mut variant = EntityMap::filled(func.value_count(), false);
    region(func, func.body(), &mut variant);
}

/// Nothing in `variant` is true before or after.
fn region(func: &mut Func, of: Region, variant: &mut EntityMap<Value, bool>) {
    let insts = std::mem::take(&mut func.region_mut(of).insts);
    let mut kept = Vec::with_capacity(insts.len());
    for inst in insts {
        let nested = func.op(inst).regions();
        for &inner in &nested {
            region(func, inner, variant);
        }
        if matches!(func.op(inst), Op::For(_) | Op::While(_)) {
            for &inner in &nested {
                kept.extend(hoist(func, inner, variant));
            }
        }
        kept.push(inst);
    }
    func.region_mut(of).insts = kept;
}

/// Takes the invariant instructions out of a loop region, in order.
fn hoist(func: &mut Func, from: Region, variant: &mut EntityMap<Value, bool>) -> Vec<Inst> {
    let mut varying: Vec<Value> = func.region(from).parameters.clone();
    for &value in &varying {
        variant[value] = true;
    }
    let insts = std::mem::take(&mut func.region_mut(from).insts);
    let (mut hoisted, mut kept) = (Vec::new(), Vec::new());
    for inst in insts {
        let invariant = !matches!(func.op(inst), Op::Yield(_))
            && func.is_pure(inst)
            && !depends(func, inst, variant);
        if invariant {
            hoisted.push(inst);
        } else {
            for &value in &func.inst(inst).results {
                variant[value] = true;
                varying.push(value);
            }
            kept.push(inst);
        }
    }
    func.region_mut(from).insts = kept;
    for value in varying {
        variant[value] = false;
    }
    hoisted
}

fn depends(func: &Func, inst: Inst, variant: &EntityMap<Value, bool>) -> bool {
    let mut found = false;
    func.op(inst)
        .visit_operands(&mut |value| found |= variant[value]);
    for nested in func.op(inst).regions() {
        func.walk(nested, &mut |inner| {
            func.op(inner)
                .visit_operands(&mut |value| found |= variant[value]);
        });
    }
    found
}
