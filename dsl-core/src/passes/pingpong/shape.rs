//! Loops of tiles that two groups of warps can take in turns.

use std::collections::BTreeSet;
use std::ops::Range;

use super::super::groups::{GROUP, arrays, bytes_of, is_first_warp, numbered, unused, with_nested};
use crate::ir::{Element, Func, Inst, Op, Region, Space, Value, op};

/// The greatest step of a loop that may be doubled.
const LONGEST_STEP: i64 = 1 << 40;

/// What groups take in turns.
pub(super) struct Turns {
    /// What the warps do that multiply.
    pub(super) region: Region,
    /// What gives them a part of their own, beside warps that do other things.
    pub(super) roles: Option<Inst>,
    /// The loop of tiles.
    pub(super) tiles: Inst,
    /// The loop of products.
    pub(super) products: Inst,
    /// The slots of the ring.
    pub(super) slots: i64,
    /// Where in the body of a tile its results begin.
    pub(super) results: usize,
    /// Numbered barriers that nothing uses, one for each group: for products, for results, and for the warps of a group.
    pub(super) barriers: [[i64; 2]; 3],
}

impl Turns {
    pub(super) fn find(func: &Func) -> Option<Self> {
        let (region, roles) = multiplying_part(func)?;
        let body = &func.region(region).insts;
        let tiles = multiplying(func, body)?;
        let at = body.iter().position(|&inst| inst == tiles)?;
        let Op::For(outer) = func.op(tiles) else {
            return None;
        };
        let insts = &func.region(outer.body).insts;
        let products = multiplying(func, insts)?;
        let first = insts.iter().position(|&inst| inst == products)?;
        let slots = slots_of(func, tiles, products)?;
        let rest = &insts[first + 1..];
        let is_result = |&inst: &Inst| !func.is_pure(inst) && !releases(func, inst);
        let results = first + 1 + rest.iter().position(is_result)?;
        let (before, after) = (&body[..at], &body[at + 1..]);
        let of_warps = of_warps(func, before);
        let nested = before.iter().flat_map(|&inst| with_nested(func, inst));
        let mut nested = nested.filter(|inst| !before.contains(inst));
        let is_top = !nested.any(|inst| matches!(func.op(inst), Op::WarpId(_)));
        let mut holds = is_top && before.iter().all(|&inst| is_begin(func, inst, &of_warps));
        holds &= after.iter().all(|&inst| is_end(func, inst));
        holds &= insts[..first]
            .iter()
            .all(|&inst| does_no_more(func, inst, |_| false));
        holds &= outer.step <= LONGEST_STEP && is_free(func, products, rest);
        let mut free = unused(func);
        let mut pair = || Some([free.next()?, free.next()?]);
        let barriers = [pair()?, pair()?, pair()?];
        holds.then_some(Self {
            region,
            roles,
            tiles,
            products,
            slots,
            results,
            barriers,
        })
    }
}

/// What one group of warps does that multiplies, and what gives it that part if it is not all that the program has.
fn multiplying_part(func: &Func) -> Option<(Region, Option<Inst>)> {
    let body = &func.region(func.body()).insts;
    let is_role = |&&inst: &&Inst| matches!(func.op(inst), Op::Roles(_));
    let Some(&roles) = body.iter().find(is_role) else {
        return (func.warps == GROUP).then_some((func.body(), None));
    };
    let Op::Roles(op) = func.op(roles) else {
        return None;
    };
    let is_bare = |&inst: &Inst| inst == roles || matches!(func.op(inst), Op::Alloc(_));
    let &(warps, region) = op.warps.first()?;
    let own = numbers_of(func, region);
    let mut others = op.warps[1..].iter();
    let is_apart = others.all(|&(_, other)| {
        let mut met = numbers_of(func, other).into_iter();
        met.all(|it| {
            own.contains(&it) && it.1 > i64::from(GROUP) || own.iter().all(|own| own.0 != it.0)
        })
    });
    let mut meets_all = false;
    func.walk(region, &mut |inst| {
        meets_all |= matches!(func.op(inst), Op::Barrier(_))
    });
    let is_one = warps == GROUP && is_apart && !meets_all && body.iter().all(is_bare);
    is_one.then_some((region, Some(roles)))
}

/// The numbers of barriers in a region, with the warps of each.
pub(super) fn numbers_of(func: &Func, region: Region) -> BTreeSet<(i64, i64)> {
    let mut found = BTreeSet::new();
    func.walk(region, &mut |inst| found.extend(numbered(func.op(inst))));
    found
}

/// Whether all warps that multiply meet, before there are two groups of them.
pub(super) fn meets(op: &Op) -> bool {
    let is_numbered = matches!(op, Op::NamedSync(_));
    let of_group = numbered(op).is_some_and(|(_, warps)| warps == i64::from(GROUP));
    matches!(op, Op::Barrier(_)) || (is_numbered && of_group)
}

/// The one instruction that multiplies, if it is a loop.
fn multiplying(func: &Func, insts: &[Inst]) -> Option<Inst> {
    let multiplies = |&&inst: &&Inst| {
        let inner = with_nested(func, inst);
        inner
            .iter()
            .any(|&inst| matches!(func.op(inst), Op::GroupMma(_)))
    };
    let mut found = insts.iter().filter(multiplies);
    let &inst = found.next()?;
    let is_one = found.next().is_none() && matches!(func.op(inst), Op::For(_));
    is_one.then_some(inst)
}

/// The slots of the ring of a loop of products, if the loop around carries nothing but its slot and its turn, and all runs have
/// equally many iterations.
fn slots_of(func: &Func, tiles: Inst, products: Inst) -> Option<i64> {
    let (Op::For(outer), Op::For(inner)) = (func.op(tiles), func.op(products)) else {
        return None;
    };
    let own = func.region(outer.body);
    let at = inner.init.len().checked_sub(2)?;
    let results = &func.inst(products).results;
    let carries =
        inner.init[at..] == own.parameters[1..] && func.yielded(outer.body) == &results[at..];
    let made = own.insts.iter();
    let made = made.flat_map(|&inst| &func.inst(inst).results);
    let mut made = made.chain(&own.parameters);
    let alike = !made.any(|&value| [inner.lower, inner.upper].contains(&value));
    let &[slot, turn] = func.region(inner.body).parameters.get(at + 1..)? else {
        return None;
    };
    let mut insts = func.region(inner.body).insts.iter();
    let word = insts.find_map(|&inst| {
        let Op::MbarrierWait(wait) = func.op(inst) else {
            return None;
        };
        (wait.at == slot && wait.phase == turn).then_some(wait.word)
    })?;
    let Op::Alloc(op::Alloc { count, .. }) = func.op(func.definitions()[word]?) else {
        return None;
    };
    (carries && alike).then_some(*count)
}

/// Whether an instruction does no more than compute, wait for products, and what is `allowed`.
fn does_no_more(func: &Func, inst: Inst, allowed: impl Fn(&Op) -> bool) -> bool {
    let mut insts = with_nested(func, inst).into_iter();
    insts.all(|inst| {
        let op = func.op(inst);
        let owns = matches!(op, Op::If(_) | Op::For(_) | Op::While(_) | Op::Yield(_));
        let computes = func.is_pure(inst) || matches!(op, Op::Pend(_) | Op::Settle(_));
        owns || computes || allowed(op)
    })
}

/// Whether an instruction does no more than say that slots have been read, or wait for products.
fn releases(func: &Func, inst: Inst) -> bool {
    does_no_more(func, inst, |op| matches!(op, Op::MbarrierArrive(_)))
}

/// Whether an instruction before the loop does nothing but make barriers and start copies, by the first warp where it has
/// results.
fn is_begin(func: &Func, inst: Inst, of_warps: &BTreeSet<Value>) -> bool {
    let op = func.op(inst);
    let is_met = numbered(op).is_some_and(|(_, warps)| warps >= i64::from(GROUP));
    let waits = matches!(op, Op::NamedSync(_)) && is_met;
    if func.is_pure(inst) || waits || matches!(op, Op::Barrier(_) | Op::ProxyFence(_)) {
        return true;
    }
    let begins = does_no_more(func, inst, |op| {
        matches!(
            op,
            Op::MbarrierInit(_) | Op::MbarrierExpect(_) | Op::MbarrierArrive(_) | Op::CopyIn(_)
        )
    });
    begins && (func.inst(inst).results.is_empty() || is_led(func, inst, of_warps))
}

/// Whether the first warp alone does what an instruction does.
fn is_led(func: &Func, inst: Inst, of_warps: &BTreeSet<Value>) -> bool {
    let definitions = func.definitions();
    let leads = |value: Value| is_first_warp(func, &definitions, value);
    let asks = |inst: Inst| {
        let op = func.op(inst);
        let led = matches!(op, Op::If(op) if leads(op.condition));
        matches!(op, Op::Compare(_)) || (led && func.inst(inst).results.is_empty())
    };
    let mut insts = with_nested(func, inst).into_iter();
    let is_alike = insts.all(|inst| {
        let mut operands = func.op(inst).operands().into_iter();
        !operands.any(|value| of_warps.contains(&value)) || asks(inst)
    });
    let mut pending = vec![inst];
    while let Some(inst) = pending.pop() {
        let op = func.op(inst);
        if func.is_pure(inst) || matches!(op, Op::Yield(_)) {
            continue;
        }
        let mut regions = op.regions();
        if regions.is_empty() {
            return false;
        }
        if let Op::If(op) = op
            && leads(op.condition)
        {
            regions = vec![op.on_false];
        }
        let inner = regions.into_iter();
        pending.extend(inner.flat_map(|region| func.region(region).insts.clone()));
    }
    is_alike
}

/// What differs between warps, of what instructions make.
pub(super) fn of_warps(func: &Func, insts: &[Inst]) -> BTreeSet<Value> {
    let mut found = BTreeSet::new();
    for &owner in insts {
        for inst in with_nested(func, owner) {
            let op = func.op(inst);
            let mut operands = op.operands().into_iter();
            if matches!(op, Op::WarpId(_)) || operands.any(|value| found.contains(&value)) {
                found.extend(&func.inst(inst).results);
                found.extend(&func.inst(owner).results);
            }
        }
    }
    found
}

/// Whether an instruction behind the loop does no more than wait for copies of its own.
fn is_end(func: &Func, inst: Inst) -> bool {
    does_no_more(func, inst, |op| {
        matches!(op, Op::WaitCopiesRead(_) | Op::WaitCopiesOut(_))
    })
}

/// Whether the loop of products does no more than multiply what copies bring, nothing behind it stops the program or counts
/// phases, and neither touches memory that only the other one may.
fn is_free(func: &Func, products: Inst, results: &[Inst]) -> bool {
    let multiplies = does_no_more(func, products, |op| {
        matches!(
            op,
            Op::GroupMma(_)
                | Op::WaitProducts(_)
                | Op::MbarrierWait(_)
                | Op::MbarrierExpect(_)
                | Op::MbarrierArrive(_)
                | Op::CopyIn(_)
                | Op::LaneLoad(_)
        )
    });
    let inner = with_nested(func, products);
    let all = results.iter().flat_map(|&inst| with_nested(func, inst));
    let outer: Vec<Inst> = all.collect();
    let first = results.iter().take_while(|&&inst| releases(func, inst));
    let released: Vec<Inst> = first.flat_map(|&inst| with_nested(func, inst)).collect();
    let mut rest = outer.iter().filter(|inst| !released.contains(inst));
    let runs_on = rest.all(|&inst| {
        let op = func.op(inst);
        let leaves_alone = !matches!(
            op,
            Op::StopOutside(_)
                | Op::StopIndex(_)
                | Op::StopAssertion(_)
                | Op::NamedSync(_)
                | Op::NamedArrive(_)
                | Op::MbarrierInit(_)
                | Op::MbarrierWait(_)
                | Op::MbarrierExpect(_)
                | Op::MbarrierArrive(_)
                | Op::CopyIn(_)
                | Op::CopySpan(_)
                | Op::Roles(_)
        );
        leaves_alone || meets(op)
    });
    let (Some(ring), Some(other)) = (taken(func, &inner), taken(func, &outer)) else {
        return false;
    };
    let overlaps = |one: &Range<i64>| {
        let mut other = other.iter();
        other.any(|other| one.start < other.end && other.start < one.end)
    };
    let written = arrays(func, &outer, true);
    let reads = arrays(func, &inner, false);
    multiplies && runs_on && !ring.iter().any(overlaps) && written.is_disjoint(&reads)
}

/// The bytes of shared memory that instructions take, words of barriers left out; `None` where they are not known.
fn taken(func: &Func, insts: &[Inst]) -> Option<Vec<Range<i64>>> {
    let definitions = func.definitions();
    let mut found = Vec::new();
    for &inst in insts {
        let op = func.op(inst);
        if matches!(
            op,
            Op::MbarrierArrive(_) | Op::MbarrierWait(_) | Op::MbarrierExpect(_)
        ) {
            continue;
        }
        let operands = op.operands().into_iter();
        let shared = operands
            .filter(|&value| matches!(func.ty(value).element, Element::Pointer(_, Space::Shared)));
        for value in shared {
            found.push(bytes_of(func, &definitions, value)?);
        }
    }
    Some(found)
}
