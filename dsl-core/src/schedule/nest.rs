//! Loops in loops: which lie around which, how far they run ahead, and what they carry from one run of the innermost body to the next.

use super::append::Appender;
use super::pipeline::LONGEST_STEP;
use super::read_back::insert_before;
use crate::ir::op::Control;
use crate::ir::{Func, Inst, Op, Region, Value, op};

/// The loops around an instruction, from the outermost inwards.
pub(super) fn loops_around(func: &Func, inst: Inst) -> Vec<Inst> {
    let mut found = func.all_insts();
    found.retain(|&it| matches!(func.op(it), Op::For(_) | Op::While(_)) && owns(func, it, inst));
    found
}

/// Whether the runs of an instruction can be counted: the loops around it are counted ones, each in the body of the next, and
/// it is in the last one's.
pub(super) fn is_counted(func: &Func, inst: Inst) -> bool {
    let chain = [loops_around(func, inst), vec![inst]].concat();
    let mut pairs = chain.windows(2);
    pairs.all(|pair| {
        let Op::For(op) = func.op(pair[0]) else {
            return false;
        };
        func.region(op.body).insts.contains(&pair[1])
    })
}

fn owns(func: &Func, owner: Inst, inst: Inst) -> bool {
    let mut found = false;
    for region in func.op(owner).regions() {
        func.walk(region, &mut |inner| found |= inner == inst);
    }
    found
}

/// Lets counted loops, from the outermost inwards, carry values to the innermost body; returns them there. What each run
/// hands on, [`carry_on`] says.
pub(super) fn carry_in(func: &mut Func, loops: &[Inst], mut values: Vec<Value>) -> Vec<Value> {
    for &inst in loops {
        let Op::For(mut op) = func.op(inst).clone() else {
            continue;
        };
        let mut inside = Vec::new();
        for &value in &values {
            let (ty, layout) = (func.ty(value), func.layout(value));
            inside.push(func.add_region_parameter(op.body, ty));
            let behind = func.add_result(inst, ty);
            for value in inside.last().copied().into_iter().chain([behind]) {
                func.set_layout(value, layout);
            }
        }
        op.init.extend(values);
        func.inst_mut(inst).op = Op::For(op);
        values = inside;
    }
    values
}

/// What the innermost body hands on, for the values that it was given last.
pub(super) fn carry_on(func: &mut Func, loops: &[Inst], mut values: Vec<Value>) {
    for &inst in loops.iter().rev() {
        let Op::For(op) = func.op(inst) else { continue };
        let count = values.len();
        if let Some(&last) = func.region(op.body).insts.last()
            && let Op::Yield(op::Yield { values: yielded }) = &mut func.inst_mut(last).op
        {
            yielded.extend(values);
        }
        let results = &func.inst(inst).results;
        values = results[results.len() - count..].to_vec();
    }
}

/// How often the body of the innermost of loops has run before, an `i32` there.
pub(super) fn runs_before(func: &mut Func, loops: &[Inst]) -> Option<Value> {
    let (&outermost, &innermost) = (loops.first()?, loops.last()?);
    let Op::For(op) = func.op(innermost) else {
        return None;
    };
    let end = *func.region(op.body).insts.last()?;
    let (zero, first) = apart(func, outermost, |at| at.int32(0));
    insert_before(func, outermost, first);
    let runs = *carry_in(func, loops, vec![zero]).first()?;
    let (next, last) = apart(func, innermost, |at| {
        let one = at.int32(1);
        at.sum(runs, one)
    });
    insert_before(func, end, last);
    carry_on(func, loops, vec![next]);
    Some(runs)
}

/// What `fill` appends, in no region.
fn apart<T>(
    func: &mut Func,
    inst: Inst,
    fill: impl FnOnce(&mut Appender<'_>) -> T,
) -> (T, Vec<Inst>) {
    let region = func.add_region();
    let filled = fill(&mut Appender { func, region, inst });
    let insts = std::mem::take(&mut func.region_mut(region).insts);
    (filled, insts)
}

/// How many stages a loop is to have. What is stated is that of loops without loops of their own.
pub(super) fn stages_of(func: &Func, op: &op::For, stated: Option<i64>) -> i64 {
    let mut has_loops = false;
    func.walk(op.body, &mut |inst| {
        has_loops |= matches!(func.op(inst), Op::For(_));
    });
    let stated = stated.filter(|_| !has_loops);
    let may_run_ahead = op.step <= LONGEST_STEP && op.stages > 0;
    if may_run_ahead {
        stated.unwrap_or(op.stages)
    } else {
        1
    }
}

/// The instructions of a region and of the branches in it, each with the region that it is in: those that run once at most each
/// time that the region does.
pub(super) fn run_once(func: &Func, region: Region) -> Vec<(Region, Inst)> {
    let mut found = Vec::new();
    let mut pending = vec![region];
    while let Some(region) = pending.pop() {
        for &inst in &func.region(region).insts {
            found.push((region, inst));
            if let Some(Control::If(op)) = func.op(inst).control() {
                pending.extend([op.on_true, op.on_false]);
            }
        }
    }
    found
}
