//! Loops of tiles that two groups of warps can take in turns.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::ir::numbers::filling;
use crate::ir::{CompareOp, Effect, Element, Func, Inst, Op, Space, Value, op};

/// The greatest step of a loop that may be doubled.
const LONGEST_STEP: i64 = 1 << 40;

/// What groups take in turns.
pub(super) struct Turns {
    /// The loop of tiles.
    pub(super) tiles: Inst,
    /// The loop of products.
    pub(super) products: Inst,
    /// The slots of the ring.
    pub(super) slots: i64,
    /// Where in the body of a tile its results begin.
    pub(super) results: usize,
}

impl Turns {
    pub(super) fn find(func: &Func) -> Option<Self> {
        let body = &func.region(func.body()).insts;
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
        holds.then_some(Self {
            tiles,
            products,
            slots,
            results,
        })
    }
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

/// An instruction and all that it owns.
pub(super) fn with_nested(func: &Func, inst: Inst) -> Vec<Inst> {
    let mut insts = vec![inst];
    for region in func.op(inst).regions() {
        func.walk(region, &mut |inner| insts.push(inner));
    }
    insts
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
    if func.is_pure(inst) || matches!(func.op(inst), Op::Barrier(_) | Op::ProxyFence(_)) {
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
    let op_of = |value: Value| definitions[value].map(|inst| func.op(inst));
    let is_zero = |value: Value| {
        filling(value, op_of).is_some_and(|literal| literal.dtype.is_integer() && literal.bits == 0)
    };
    let leads = |value: Value| {
        let Some(Op::Compare(compare)) = op_of(value) else {
            return false;
        };
        let of_warp = matches!(op_of(compare.lhs), Some(Op::WarpId(_)));
        compare.op == CompareOp::Eq && of_warp && is_zero(compare.rhs)
    };
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
        !matches!(
            func.op(inst),
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
        )
    });
    let (Some(ring), Some(other)) = (taken(func, &inner), taken(func, &outer)) else {
        return false;
    };
    let meets = |one: &Range<i64>| {
        let mut other = other.iter();
        other.any(|other| one.start < other.end && other.start < one.end)
    };
    let written = arrays(func, &outer, true);
    let reads = arrays(func, &inner, false);
    multiplies && runs_on && !ring.iter().any(meets) && written.is_disjoint(&reads)
}

/// The arrays in global memory that instructions write, or all that they touch.
pub(in crate::passes) fn arrays(func: &Func, insts: &[Inst], written: bool) -> BTreeSet<Value> {
    let definitions = func.definitions();
    let base_of = |map: Value| {
        let Some(Op::TensorMap(map)) = definitions[map].map(|inst| func.op(inst)) else {
            return map;
        };
        map.base
    };
    let mut found = BTreeSet::new();
    for &inst in insts {
        let op = func.op(inst);
        let access = op.access();
        let access = access.filter(|access| !written || access.effect != Effect::Reads);
        found.extend(access.map(|access| access.base));
        if let Op::CopyOut(copy) = op {
            found.insert(base_of(copy.map));
        }
        if let Op::CopyIn(copy) = op
            && !written
        {
            found.insert(base_of(copy.map));
        }
    }
    found
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
        for value in op.operands() {
            let Element::Pointer(dtype, Space::Shared) = func.ty(value).element else {
                continue;
            };
            let &Op::Alloc(op::Alloc { offset, count }) = func.op(definitions[value]?) else {
                return None;
            };
            found.push(offset..offset + count * i64::from(dtype.bytes()));
        }
    }
    Some(found)
}
