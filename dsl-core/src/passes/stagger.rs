//! Lets groups of warps begin their products one behind the other, in loops that wait for each of their products.
//!
//! The lanes of such a group add what its product gives before they begin the next one, and tensor cores have what other
//! groups have begun meanwhile. Groups that run freely come to begin at the same time, and to add at the same time. So
//! each has a numbered barrier, at which it waits until the group before it has begun.

use std::ops::Range;

use crate::builder::Builder;
use crate::ir::{BinaryOp, DType, Func, Inst, Op, Region, Stage, Value, op};

/// Warps that multiply together.
const GROUP: u32 = 4;

/// A loop with one product in each iteration.
struct Staggered {
    /// Where the loop stands.
    region: Region,
    inner: Inst,
    product: Inst,
}

/// Orders the products of groups of warps where a loop has one in each iteration and its sums at the end.
pub fn stagger_products(func: &mut Func) {
    let groups = func.warps / GROUP;
    if groups < 2 {
        return;
    }
    let all = func.all_regions().into_iter().flat_map(|region| {
        let insts = func.region(region).insts.iter();
        insts.map(move |&inner| (region, inner))
    });
    let found: Vec<Staggered> = all
        .filter_map(|(region, inner)| {
            let product = alone_in(func, inner)?;
            Some(Staggered {
                region,
                inner,
                product,
            })
        })
        .collect();
    for Staggered {
        region,
        inner,
        product,
    } in found
    {
        let Op::For(op) = func.op(inner).clone() else {
            continue;
        };
        let last = groups - 1;
        // The last group lets the first one begin each of its products, as many as there are: a run leaves no barrier half full.
        insert(func, (region, inner), &|builder, inner| {
            let runs = builder.lt(op.lower, op.upper);
            when(builder, runs, |builder| {
                by_group(builder, groups, &|group| {
                    (group == last).then(|| let_begin(0))
                });
            });
            again(builder, inner);
        });
        insert(func, (op.body, product), &|builder, product| {
            by_group(builder, groups, &|group| Some(wait(group)));
            again(builder, product);
            by_group(builder, groups, &|group| {
                (group < last).then(|| let_begin(group + 1))
            });
            let index = builder.parameters(op.body)[0];
            let left = builder.binary(BinaryOp::Sub, op.upper, index);
            let step = builder.index(op.step);
            let [left, step] = [left, step].map(|it| builder.bitcast(it, DType::U64));
            let goes_on = builder.lt(step, left);
            when(builder, goes_on, |builder| {
                by_group(builder, groups, &|group| {
                    (group == last).then(|| let_begin(0))
                });
            });
        });
    }
}

/// The product of a loop that has no other, is over at the end of each iteration, stops no program, and has no barrier of all warps.
fn alone_in(func: &Func, inst: Inst) -> Option<Inst> {
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
    let &[product] = &products[..] else {
        return None;
    };
    let sums = func.inst(product).results[0];
    let mut insts = func.region(body).insts.iter();
    let begins = insts.any(|&inst| inst == product);
    let ends = insts.any(
        |&inst| matches!(*func.op(inst), Op::Settle(op::Settle { x, pending: 0 }) if x == sums),
    );
    (begins && ends && is_free).then_some(product)
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

/// A group waits for its turn. Barrier 0 is that of all warps.
fn wait(group: u32) -> Op {
    let (id, warps) = (i64::from(group + 1), i64::from(2 * GROUP));
    Op::NamedSync(op::NamedSync { id, warps })
}

/// It is the turn of a group.
fn let_begin(group: u32) -> Op {
    let (id, warps) = (i64::from(group + 1), i64::from(2 * GROUP));
    Op::NamedArrive(op::NamedArrive { id, warps })
}

/// Puts what `fill` appends in the place of an instruction.
fn insert(func: &mut Func, (region, at): (Region, Inst), fill: &dyn Fn(&mut Builder, Inst)) {
    let insts = std::mem::take(&mut func.region_mut(region).insts);
    let loc = func.inst(at).loc.clone();
    let owned = std::mem::replace(func, Func::new("", Stage::Lane));
    let mut builder = Builder::resume(owned);
    builder.set_loc(loc);
    let outer = builder.enter(region);
    for inst in insts {
        if inst == at {
            fill(&mut builder, inst);
        } else {
            again(&mut builder, inst);
        }
    }
    builder.enter(outer);
    *func = builder
        .finish()
        .expect("broken invariant: two groups of warps meet at a numbered barrier");
}

fn again(builder: &mut Builder, inst: Inst) {
    let region = builder.region();
    builder.func_mut().region_mut(region).insts.push(inst);
}

fn when(builder: &mut Builder, condition: Value, does: impl FnOnce(&mut Builder)) {
    let on_true = |builder: &mut Builder| {
        does(builder);
        Vec::new()
    };
    builder.if_else(condition, on_true, |_| Vec::new());
}
