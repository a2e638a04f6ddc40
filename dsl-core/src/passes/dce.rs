//! Removes instructions whose results nothing needs.

use crate::entity::EntityMap;
use crate::ir::{Func, Inst, Op, Region, Value};

/// Removes pure instructions without uses, and carried values and results that only feed
/// themselves.
pub fn dce(func: &mut Func) {
    loop {
        let live = live_values(func);
        let removed = remove_insts(func, func.body(), &live) | drop_results(func, &live);
        if !removed {
            return;
        }
    }
}

/// Values that an effect depends on. A carried value is live only if its result or its parameter is.
fn live_values(func: &Func) -> EntityMap<Value, bool> {
    let mut live = EntityMap::filled(func.value_count(), false);
    let insts = func.all_insts();
    loop {
        let mut changed = false;
        for &inst in insts.iter().rev() {
            mark(func, inst, &mut live, &mut changed);
        }
        if !changed {
            return live;
        }
    }
}

fn mark(func: &Func, inst: Inst, live: &mut EntityMap<Value, bool>, changed: &mut bool) {
    let data = func.inst(inst);
    let mut set = |live: &mut EntityMap<Value, bool>, value: Value| {
        *changed |= !std::mem::replace(&mut live[value], true);
    };
    let used = data.results.iter().any(|&value| live[value]);
    if !used && func.is_pure(inst) {
        return;
    }
    match &data.op {
        Op::Yield { .. } => {}
        Op::For {
            lower,
            upper,
            init,
            body,
            ..
        } => {
            set(live, *lower);
            set(live, *upper);
            let parameters = &func.region(*body).parameters[1..];
            let yielded = func.yielded(*body);
            for (index, &start) in init.iter().enumerate() {
                if live[data.results[index]] || live[parameters[index]] {
                    set(live, start);
                    set(live, yielded[index]);
                    set(live, parameters[index]);
                }
            }
        }
        Op::While { init, before, body } => {
            let outer = func.region(*before).parameters.clone();
            let inner = func.region(*body).parameters.clone();
            let tested = func.yielded(*before);
            let next = func.yielded(*body);
            set(live, tested[0]);
            for (index, &start) in init.iter().enumerate() {
                if live[data.results[index]] || live[outer[index]] || live[inner[index]] {
                    for value in [
                        start,
                        tested[index + 1],
                        next[index],
                        outer[index],
                        inner[index],
                    ] {
                        set(live, value);
                    }
                }
            }
        }
        Op::If {
            condition,
            on_true,
            on_false,
        } => {
            set(live, *condition);
            for region in [on_true, on_false] {
                for (index, &value) in func.yielded(*region).iter().enumerate() {
                    if live[data.results[index]] {
                        set(live, value);
                    }
                }
            }
        }
        Op::Reduce {
            sources, combine, ..
        }
        | Op::Scan {
            sources, combine, ..
        } => {
            sources.iter().for_each(|&source| set(live, source));
            func.yielded(*combine)
                .iter()
                .for_each(|&value| set(live, value));
        }
        op => op.visit_operands(&mut |value| set(live, value)),
    }
}

fn remove_insts(func: &mut Func, region: Region, live: &EntityMap<Value, bool>) -> bool {
    let mut removed = false;
    let insts = std::mem::take(&mut func.region_mut(region).insts);
    let mut kept = Vec::with_capacity(insts.len());
    for inst in insts {
        let data = func.inst(inst);
        let used = data.results.iter().any(|&value| live[value]);
        let terminator = matches!(data.op, Op::Yield { .. });
        if !used && !terminator && func.is_pure(inst) {
            removed = true;
            continue;
        }
        for nested in data.op.regions() {
            removed |= remove_insts(func, nested, live);
        }
        kept.push(inst);
    }
    func.region_mut(region).insts = kept;
    removed
}

fn drop_results(func: &mut Func, live: &EntityMap<Value, bool>) -> bool {
    let mut dropped = false;
    for inst in func.all_insts() {
        let data = func.inst(inst);
        let keep: Vec<bool> = match &data.op {
            Op::For { body, .. } => {
                let parameters = &func.region(*body).parameters[1..];
                data.results
                    .iter()
                    .zip(parameters)
                    .map(|(&a, &b)| live[a] || live[b])
                    .collect()
            }
            Op::While { before, .. } => {
                let parameters = &func.region(*before).parameters;
                data.results
                    .iter()
                    .zip(parameters)
                    .map(|(&a, &b)| live[a] || live[b])
                    .collect()
            }
            Op::If { .. } => data.results.iter().map(|&value| live[value]).collect(),
            _ => continue,
        };
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
    let mut op = func.op(inst).clone();
    match &mut op {
        Op::For { init, body, .. } => {
            retain(init, keep, 0);
            retain(&mut func.region_mut(*body).parameters, keep, 1);
            retain_yield(func, *body, keep, 0);
        }
        Op::While { init, before, body } => {
            retain(init, keep, 0);
            retain(&mut func.region_mut(*before).parameters, keep, 0);
            retain(&mut func.region_mut(*body).parameters, keep, 0);
            retain_yield(func, *before, keep, 1);
            retain_yield(func, *body, keep, 0);
        }
        Op::If {
            on_true, on_false, ..
        } => {
            retain_yield(func, *on_true, keep, 0);
            retain_yield(func, *on_false, keep, 0);
        }
        _ => return,
    }
    let data = func.inst_mut(inst);
    data.op = op;
    retain(&mut data.results, keep, 0);
}

fn retain(values: &mut Vec<Value>, keep: &[bool], skip: usize) {
    let mut index = 0;
    values.retain(|_| {
        index += 1;
        index <= skip || keep[index - 1 - skip]
    });
}

fn retain_yield(func: &mut Func, region: Region, keep: &[bool], skip: usize) {
    if let Some(&last) = func.region(region).insts.last()
        && let Op::Yield { values } = &mut func.inst_mut(last).op
    {
        retain(values, keep, skip);
    }
}
