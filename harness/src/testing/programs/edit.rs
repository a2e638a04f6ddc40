//! Changes to functions that shrinking and planted faults make.

use exactile_core::ir::{Func, Inst, Region, Value};

/// Removes these instructions from their regions.
pub(super) fn remove(func: &mut Func, insts: &[Inst]) {
    for region in regions(func) {
        func.region_mut(region)
            .insts
            .retain(|inst| !insts.contains(inst));
    }
}

fn regions(func: &Func) -> Vec<Region> {
    let mut regions = vec![func.body()];
    for inst in func.all_insts() {
        regions.extend(func.op(inst).regions());
    }
    regions
}

/// Puts the instructions `new` before `inst`.
pub(super) fn insert_before(func: &mut Func, inst: Inst, new: &[Inst]) {
    for region in regions(func) {
        let insts = &mut func.region_mut(region).insts;
        if let Some(at) = insts.iter().position(|&it| it == inst) {
            insts.splice(at..at, new.iter().copied());
            return;
        }
    }
}

/// Uses `values` wherever the results of `inst` are used, and removes `inst`.
pub(super) fn replace(func: &mut Func, inst: Inst, values: &[Value]) {
    let results = func.inst(inst).results.clone();
    for user in func.all_insts() {
        func.inst_mut(user).op.map_operands(&mut |value| {
            let index = results.iter().position(|&result| result == value);
            index
                .and_then(|index| values.get(index).copied())
                .unwrap_or(value)
        });
    }
    remove(func, &[inst]);
}
