//! What lanes compute while products are under way. LLVM moves arithmetic behind a wait that does not need it, and the
//! assembler the wait before the arithmetic, so both are told.

use std::collections::{BTreeMap, BTreeSet};

use exactile_core::ir::{Func, Inst, Op, Value, op};

/// For each wait for sums, the tiles that are computed between the product and the wait, and used after it.
pub(super) fn computed_beside(func: &Func) -> BTreeMap<Inst, Vec<Value>> {
    let mut found = BTreeMap::new();
    for region in func.all_regions() {
        let insts = &func.region(region).insts;
        for (at, &inst) in insts.iter().enumerate() {
            let Op::Settle(op::Settle { x, .. }) = *func.op(inst) else {
                continue;
            };
            // The wait before this one is behind them already.
            if at > 0 && found.contains_key(&insts[at - 1]) {
                continue;
            }
            let product = insts[..at].iter().rposition(|&it| gives(func, it, x));
            let Some(product) = product else { continue };
            let mut used = BTreeSet::new();
            for &later in &insts[at + 1..] {
                used.extend(func.op(later).operands());
                for inner in func.op(later).regions() {
                    func.walk(inner, &mut |it| used.extend(func.op(it).operands()));
                }
            }
            let beside = insts[product + 1..at]
                .iter()
                .filter(|&&it| func.is_pure(it));
            let made = beside.flat_map(|&it| func.inst(it).results.iter().copied());
            let made = made.filter(|&it| !func.ty(it).is_scalar() && used.contains(&it));
            let made: Vec<Value> = made.collect();
            if !made.is_empty() {
                found.insert(inst, made);
            }
        }
    }
    found
}

/// Whether an instruction is the product that adds to these sums.
fn gives(func: &Func, inst: Inst, sums: Value) -> bool {
    matches!(func.op(inst), Op::GroupMma(_)) && func.inst(inst).results.contains(&sums)
}
