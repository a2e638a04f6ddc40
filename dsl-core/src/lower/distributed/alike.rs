//! Values that are made anew where they are used: which of them hold the same elements.

use std::collections::HashMap;

use crate::entity::EntityMap;
use crate::ir::{Func, Op, Trait, Type, Value, op};

/// For each value the first one that is made in the same way of the same values, whatever its layout.
pub(super) fn firsts(func: &Func) -> EntityMap<Value, Value> {
    let mut firsts = EntityMap::new();
    for value in func.values() {
        let _: Value = firsts.push(value);
    }
    let mut known: HashMap<(Op, Type), Value> = HashMap::new();
    for inst in func.all_insts() {
        let data = func.inst(inst);
        let &[result] = &data.results[..] else {
            continue;
        };
        if let &Op::Convert(op::Convert { x }) = &data.op {
            firsts[result] = firsts[x];
        } else if data.op.is(Trait::pointwise) {
            let mut op = data.op.clone();
            op.map_operands(&mut |value| firsts[value]);
            firsts[result] = *known.entry((op, func.ty(result))).or_insert(result);
        }
    }
    firsts
}
