//! Lets groups of warps begin their products one behind the other, in loops that wait for each of their products.
//!
//! The lanes of such a group add what its product gives before they begin the next one, and tensor cores have what other
//! groups have begun meanwhile. Groups that run freely come to begin at the same time, and to add at the same time. So
//! each has a numbered barrier, at which it waits until the group before it has begun.

use std::ops::Range;

use super::groups::{GROUP, arrive, sync};
use super::rewrite::rewrite;
use crate::builder::Builder;
use crate::ir::numbers::filling;
use crate::ir::{Func, Inst, Op, Stage, Value, op};

/// Orders the products of groups of warps in all loops that begin those of an iteration together and have their sums at its end.
pub fn stagger_products(func: &mut Func) {
    let groups = func.warps / GROUP;
    if groups < 2 {
        return;
    }
    let insts = func.all_insts().into_iter();
    let runs: Vec<[Inst; 2]> = insts.filter_map(|inst| run_in(func, inst)).collect();
    if runs.is_empty() {
        return;
    }
    let last = groups - 1;
    rewrite(func, &mut |rewriter, inst| {
        let begins = runs.iter().any(|run| run[0] == inst);
        let ends = runs.iter().any(|run| run[1] == inst);
        (begins || ends).then(|| {
            let builder = &mut rewriter.builder;
            if begins {
                by_group(builder, groups, &|group| Some(wait(group)));
            }
            let region = builder.region();
            let func = builder.func_mut();
            func.region_mut(region).insts.push(inst);
            let results = func.inst(inst).results.clone();
            let next = |group| if group == last { 0 } else { group + 1 };
            if ends {
                by_group(builder, groups, &|group| Some(let_begin(next(group))));
            }
            results
        })
    });
    let owned = std::mem::replace(func, Func::new("", Stage::Lane));
    let mut builder = Builder::resume(owned);
    let body = builder.func().body();
    let insts = std::mem::take(&mut builder.func_mut().region_mut(body).insts);
    // Between two products it is the turn of the first group, in whatever loop the next one is.
    by_group(&mut builder, groups, &|group| {
        (group == last).then(|| let_begin(0))
    });
    builder.func_mut().region_mut(body).insts.extend(insts);
    *func = builder
        .finish()
        .expect("broken invariant: two groups of warps meet at a numbered barrier");
}

/// The first and the last product of a loop that begins all before it waits for one and has their sums at the end of each iteration,
/// each from sums of its own where there are several. The loop stops no program, and has no barrier of all warps.
fn run_in(func: &Func, inst: Inst) -> Option<[Inst; 2]> {
    let Op::For(op::For { body, .. }) = *func.op(inst) else {
        return None;
    };
    let mut products = Vec::new();
    let mut is_free = true;
    func.walk(body, &mut |inst| {
        let op = func.op(inst);
        products.extend(matches!(op, Op::GroupMma(_)).then_some(inst));
        let stops = matches!(
            op,
            Op::StopOutside(_) | Op::StopIndex(_) | Op::StopAssertion(_)
        );
        is_free &= !stops && !matches!(op, Op::Barrier(_));
    });
    let (&first, &last) = (products.first()?, products.last()?);
    let sums = func.inst(last).results[0];
    let mut insts = func.region(body).insts.iter();
    let begun = insts.by_ref().take_while(|&&inst| inst != last);
    let begun: Vec<Inst> = begun.copied().chain([last]).collect();
    let settles = begun
        .iter()
        .any(|&inst| matches!(func.op(inst), Op::Settle(_)));
    let begins = products.iter().all(|inst| begun.contains(inst));
    let ends = insts.any(
        |&inst| matches!(*func.op(inst), Op::Settle(op::Settle { x, pending: 0 }) if x == sums),
    );
    let definitions = func.definitions();
    let op_of = |value: Value| definitions[value].map(|inst| func.op(inst));
    let is_new = |&product: &Inst| {
        let Op::GroupMma(op) = func.op(product) else {
            return false;
        };
        let sums = match op_of(op.accumulator) {
            Some(Op::Pend(pend)) => pend.x,
            Some(_) | None => op.accumulator,
        };
        filling(sums, op_of).is_some()
    };
    let is_alone = first == last || (!settles && products.iter().all(is_new));
    (begins && ends && is_alone && is_free).then_some([first, last])
}

/// What each group does, if anything.
fn by_group(builder: &mut Builder, groups: u32, does: &dyn Fn(u32) -> Option<Op>) {
    let warp = builder.value(Op::WarpId(op::WarpId {}));
    from_group(builder, warp, 0..groups, does);
}

/// The same for some of the groups, of which the warp is in one.
fn from_group(
    builder: &mut Builder,
    warp: Value,
    groups: Range<u32>,
    does: &dyn Fn(u32) -> Option<Op>,
) {
    let first = groups.start;
    let one = |builder: &mut Builder| {
        if let Some(op) = does(first) {
            builder.emit(op, &[]);
        }
        Vec::new()
    };
    if groups.len() == 1 {
        one(builder);
        return;
    }
    let bound = builder.int32(((first + 1) * GROUP) as i32);
    let is_first = builder.lt(warp, bound);
    builder.if_else(is_first, one, |builder| {
        from_group(builder, warp, first + 1..groups.end, does);
        Vec::new()
    });
}

/// A group waits for its turn.
fn wait(group: u32) -> Op {
    sync(i64::from(group + 1), 2 * GROUP)
}

/// It is the turn of a group.
fn let_begin(group: u32) -> Op {
    arrive(i64::from(group + 1), 2 * GROUP)
}
