//! Removes instructions whose results nothing needs.

use std::collections::BTreeSet;

use crate::entity::{Entity, EntityMap};
use crate::ir::{Carried, Func, Inst, Op, Region, Trait, Value, op};

/// Removes pure instructions without uses, and carried values and results that only feed
/// themselves.
pub fn dce(func: &mut Func) {
    loop {
        let live = live_values(func);
        remove_insts(func, func.body(), &live);
        // What is left is as live as it was without what nothing needed.
        if !drop_results(func, &live) {
            return;
        }
    }
}

/// Takes out what `is_such` says where nothing uses its results, whatever effect it has.
pub fn drop_unused(func: &mut Func, is_such: &dyn Fn(&Func, Inst) -> bool) {
    let mut used = BTreeSet::new();
    for inst in func.all_insts() {
        func.op(inst).visit_operands(&mut |value| {
            used.insert(value);
        });
    }
    for region in func.all_regions() {
        let mut insts = std::mem::take(&mut func.region_mut(region).insts);
        insts.retain(|&inst| {
            let is_used = func.inst(inst).results.iter().any(|it| used.contains(it));
            is_used || !is_such(func, inst)
        });
        func.region_mut(region).insts = insts;
    }
}

/// Values that an effect depends on. A carried value is live only if its result or its parameter is.
fn live_values(func: &Func) -> EntityMap<Value, bool> {
    let mut liveness = Liveness {
        func,
        live: EntityMap::filled(func.value_count(), false),
        definitions: func.definitions(),
        carried: Vec::new(),
        carries: EntityMap::filled(func.value_count(), None),
        entered: vec![false; func.inst_count()],
        pending: Vec::new(),
    };
    let insts = func.all_insts();
    for &inst in &insts {
        liveness.learn(inst);
    }
    for &inst in &insts {
        if !func.is_pure(inst) {
            liveness.enter(inst);
        }
    }
    while let Some(value) = liveness.pending.pop() {
        if let Some(inst) = liveness.definitions[value] {
            liveness.enter(inst);
        }
        if let Some(index) = liveness.carries[value] {
            liveness.carry(index);
        }
    }
    liveness.live
}

struct Liveness<'a> {
    func: &'a Func,
    live: EntityMap<Value, bool>,
    definitions: EntityMap<Value, Option<Inst>>,
    carried: Vec<Carried>,
    /// For each parameter and result of control flow, its place among the carried.
    carries: EntityMap<Value, Option<usize>>,
    /// Instructions whose own operands are live.
    entered: Vec<bool>,
    pending: Vec<Value>,
}

impl Liveness<'_> {
    fn learn(&mut self, inst: Inst) {
        for carried in self.func.carried(inst) {
            for &value in carried.parameters.iter().chain([&carried.result]) {
                self.carries[value] = Some(self.carried.len());
            }
            self.carried.push(carried);
        }
    }

    fn set(&mut self, value: Value) {
        if !std::mem::replace(&mut self.live[value], true) {
            self.pending.push(value);
        }
    }

    /// Marks what an instruction needs whichever of its results is live.
    fn enter(&mut self, inst: Inst) {
        if std::mem::replace(&mut self.entered[inst.index()], true) {
            return;
        }
        let func = self.func;
        let op = func.op(inst);
        if let Some(deciding) = func.deciding(inst) {
            deciding.into_iter().for_each(|value| self.set(value));
        } else if !op.is(Trait::terminator) {
            op.visit_operands(&mut |value| self.set(value));
            let combined = op.regions().into_iter();
            combined
                .flat_map(|region| func.yielded(region))
                .for_each(|&value| self.set(value));
        }
    }

    /// Marks what one carried value or result of control flow comes from.
    fn carry(&mut self, index: usize) {
        let Carried {
            init,
            parameters,
            yielded,
            ..
        } = self.carried[index].clone();
        let sources = init.into_iter().chain(parameters).chain(yielded);
        sources.for_each(|value| self.set(value));
    }
}

fn remove_insts(func: &mut Func, region: Region, live: &EntityMap<Value, bool>) {
    let insts = std::mem::take(&mut func.region_mut(region).insts);
    let mut kept = Vec::with_capacity(insts.len());
    for inst in insts {
        let data = func.inst(inst);
        let used = data.results.iter().any(|&value| live[value]);
        let terminator = data.op.is(Trait::terminator);
        if !used && !terminator && func.is_pure(inst) {
            continue;
        }
        for nested in data.op.regions() {
            remove_insts(func, nested, live);
        }
        kept.push(inst);
    }
    func.region_mut(region).insts = kept;
}

fn drop_results(func: &mut Func, live: &EntityMap<Value, bool>) -> bool {
    let mut dropped = false;
    for inst in func.all_insts() {
        let carried = func.carried(inst).into_iter();
        let keep: Vec<bool> = carried
            .map(|carried| live[carried.result] || carried.parameters.iter().any(|&it| live[it]))
            .collect();
        if keep.iter().all(|&keep| keep) {
            continue;
        }
        dropped = true;
        retain_carried(func, inst, &keep);
    }
    dropped
}

/// Keeps the carried values and results of a control-flow instruction that `keep` marks.
pub(super) fn retain_carried(func: &mut Func, inst: Inst, keep: &[bool]) {
    for region in func.op(inst).regions() {
        retain(&mut func.region_mut(region).parameters, keep);
        if let Some(&last) = func.region(region).insts.last()
            && let Op::Yield(op::Yield { values }) = &mut func.inst_mut(last).op
        {
            retain(values, keep);
        }
    }
    let data = func.inst_mut(inst);
    if let Op::For(op::For { init, .. }) | Op::While(op::While { init, .. }) = &mut data.op {
        retain(init, keep);
    }
    retain(&mut data.results, keep);
}

/// Keeps of the last values, which are the carried ones, those that `keep` marks. A branch has no
/// parameters.
fn retain(values: &mut Vec<Value>, keep: &[bool]) {
    let Some(first) = values.len().checked_sub(keep.len()) else {
        return;
    };
    let mut index = 0;
    values.retain(|_| {
        index += 1;
        index <= first || keep[index - 1 - first]
    });
}
