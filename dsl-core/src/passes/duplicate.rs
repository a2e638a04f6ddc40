//! Copies instructions with everything they own.

use std::collections::BTreeMap;

use crate::ir::{Func, Inst, Region, Type, Value};

/// Copies `insts` in order; operands are replaced by `map`, which learns the copies of the results.
pub fn duplicate(func: &mut Func, insts: &[Inst], map: &mut BTreeMap<Value, Value>) -> Vec<Inst> {
    insts.iter().map(|&inst| copy(func, inst, map)).collect()
}

/// Copies a region with everything in it.
pub fn duplicate_region(func: &mut Func, region: Region) -> Region {
    copy_region(func, region, &mut BTreeMap::new())
}

fn copy(func: &mut Func, inst: Inst, map: &mut BTreeMap<Value, Value>) -> Inst {
    let data = func.inst(inst).clone();
    let mut op = data.op;
    op.map_operands(&mut |value| map.get(&value).copied().unwrap_or(value));
    op.map_regions(&mut |region| copy_region(func, region, map));
    let types: Vec<Type> = data.results.iter().map(|&value| func.ty(value)).collect();
    let copied = func.add_inst(op, &types, data.loc);
    func.inst_mut(copied).site = data.site;
    let results = func.inst(copied).results.clone();
    for (&from, &to) in data.results.iter().zip(&results) {
        func.set_layout(to, func.layout(from));
    }
    map.extend(data.results.into_iter().zip(results));
    copied
}

fn copy_region(func: &mut Func, region: Region, map: &mut BTreeMap<Value, Value>) -> Region {
    let data = func.region(region).clone();
    let copied = func.add_region();
    for parameter in data.parameters {
        let ty = func.ty(parameter);
        let value = func.add_region_parameter(copied, ty);
        map.insert(parameter, value);
    }
    let insts = duplicate(func, &data.insts, map);
    func.region_mut(copied).insts = insts;
    copied
}
