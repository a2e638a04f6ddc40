//! Removes instructions whose results nothing needs.

use crate::entity::{Entity, EntityMap};
use crate::ir::{Func, Inst, Op, Region, Value, op};

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

/// Where a value comes from, with its place in the list.
#[derive(Clone, Copy)]
enum Source {
    Result(Inst, usize),
    /// A parameter of a region that the instruction owns.
    Parameter(Inst, usize),
}

/// Values that an effect depends on. A carried value is live only if its result or its parameter is.
fn live_values(func: &Func) -> EntityMap<Value, bool> {
    let mut liveness = Liveness {
        func,
        live: EntityMap::filled(func.value_count(), false),
        sources: EntityMap::filled(func.value_count(), None),
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
        match liveness.sources[value] {
            Some(Source::Result(inst, index)) => {
                liveness.enter(inst);
                liveness.carry(inst, index);
            }
            Some(Source::Parameter(inst, index)) => liveness.carry(inst, index),
            None => {}
        }
    }
    liveness.live
}

struct Liveness<'a> {
    func: &'a Func,
    live: EntityMap<Value, bool>,
    sources: EntityMap<Value, Option<Source>>,
    /// Instructions whose own operands are live.
    entered: Vec<bool>,
    pending: Vec<Value>,
}

impl Liveness<'_> {
    fn learn(&mut self, inst: Inst) {
        let data = self.func.inst(inst);
        for (index, &result) in data.results.iter().enumerate() {
            self.sources[result] = Some(Source::Result(inst, index));
        }
        let mut learn = |region: Region, first: usize| {
            let parameters = self.func.region(region).parameters.iter().skip(first);
            for (index, &parameter) in parameters.enumerate() {
                self.sources[parameter] = Some(Source::Parameter(inst, index));
            }
        };
        match data.op {
            Op::For(op::For { body, .. }) => learn(body, 1),
            Op::While(op::While { before, body, .. }) => {
                learn(before, 0);
                learn(body, 0);
            }
            _ => {}
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
        match func.op(inst) {
            Op::Yield(_) => {}
            Op::For(op::For { lower, upper, .. }) => {
                self.set(*lower);
                self.set(*upper);
            }
            Op::While(op::While { before, .. }) => self.set(func.yielded(*before)[0]),
            Op::If(op::If { condition, .. }) => self.set(*condition),
            Op::Reduce(op::Reduce {
                sources, combine, ..
            })
            | Op::Scan(op::Scan {
                sources, combine, ..
            }) => {
                let needed = sources.iter().chain(func.yielded(*combine));
                needed.for_each(|&value| self.set(value));
            }
            op => op.visit_operands(&mut |value| self.set(value)),
        }
    }

    /// Marks what one carried value or result of control flow comes from.
    fn carry(&mut self, inst: Inst, index: usize) {
        let func = self.func;
        match func.op(inst) {
            Op::For(op::For { init, body, .. }) => {
                let parameter = func.region(*body).parameters[index + 1];
                for value in [init[index], func.yielded(*body)[index], parameter] {
                    self.set(value);
                }
            }
            Op::While(op::While { init, before, body }) => {
                let tested = func.yielded(*before)[index + 1];
                let next = func.yielded(*body)[index];
                let outer = func.region(*before).parameters[index];
                let inner = func.region(*body).parameters[index];
                for value in [init[index], tested, next, outer, inner] {
                    self.set(value);
                }
            }
            Op::If(op::If {
                on_true, on_false, ..
            }) => {
                for region in [on_true, on_false] {
                    self.set(func.yielded(*region)[index]);
                }
            }
            _ => {}
        }
    }
}

fn remove_insts(func: &mut Func, region: Region, live: &EntityMap<Value, bool>) -> bool {
    let mut removed = false;
    let insts = std::mem::take(&mut func.region_mut(region).insts);
    let mut kept = Vec::with_capacity(insts.len());
    for inst in insts {
        let data = func.inst(inst);
        let used = data.results.iter().any(|&value| live[value]);
        let terminator = matches!(data.op, Op::Yield(_));
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
            Op::For(op::For { body, .. }) => {
                let parameters = &func.region(*body).parameters[1..];
                data.results
                    .iter()
                    .zip(parameters)
                    .map(|(&a, &b)| live[a] || live[b])
                    .collect()
            }
            Op::While(op::While { before, .. }) => {
                let parameters = &func.region(*before).parameters;
                data.results
                    .iter()
                    .zip(parameters)
                    .map(|(&a, &b)| live[a] || live[b])
                    .collect()
            }
            Op::If(_) => data.results.iter().map(|&value| live[value]).collect(),
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
        Op::For(op::For { init, body, .. }) => {
            retain(init, keep, 0);
            retain(&mut func.region_mut(*body).parameters, keep, 1);
            retain_yield(func, *body, keep, 0);
        }
        Op::While(op::While { init, before, body }) => {
            retain(init, keep, 0);
            retain(&mut func.region_mut(*before).parameters, keep, 0);
            retain(&mut func.region_mut(*body).parameters, keep, 0);
            retain_yield(func, *before, keep, 1);
            retain_yield(func, *body, keep, 0);
        }
        Op::If(op::If {
            on_true, on_false, ..
        }) => {
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
        && let Op::Yield(op::Yield { values }) = &mut func.inst_mut(last).op
    {
        retain(values, keep, skip);
    }
}
