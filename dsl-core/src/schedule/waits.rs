//! Waits for products where their sums are used, so that lanes work, and further products start, beside them.

use std::collections::BTreeSet;

use super::{MayEnd, PlacedFunc};
use crate::diagnostic::Diagnostics;
use crate::ir::infer::order::MAX_PRODUCTS;
use crate::ir::{Cache, Func, Inst, Op, Trait, Value, op};

/// Moves each wait for a product down to what uses its sums, or to what may write what the product reads.
///
/// # Errors
/// None that the function did not have before.
pub fn wait_late(func: PlacedFunc, may_end: MayEnd<'_>) -> Result<PlacedFunc, Diagnostics> {
    let waits = |func: &Func| {
        let insts = func.all_insts();
        insts
            .iter()
            .any(|&inst| matches!(func.op(inst), Op::Settle(_)))
    };
    if !waits(&func) {
        return Ok(func);
    }
    let mut func = func.into_inner();
    let known = Known {
        held: held(&func),
        together: read_together(&func),
        may_end,
    };
    for region in func.all_regions() {
        let mut insts = std::mem::take(&mut func.region_mut(region).insts);
        for at in (0..insts.len()).rev() {
            if matches!(func.op(insts[at]), Op::Settle(_)) {
                let rest = insts[at + 1..].iter().copied();
                let passed = rest.take_while(|&later| {
                    let is_free = known.is_free(&func, later);
                    is_free && passes(&func, insts[at], later, &known.held)
                });
                let count = passed.count();
                insts[at..=at + count].rotate_left(1);
            }
        }
        leave_later(&mut func, &insts);
        await_late(&func, &mut insts, &known);
        release_early(&func, &mut insts);
        func.region_mut(region).insts = insts;
    }
    PlacedFunc::new(func)
}

/// What is known of a function.
struct Known<'a> {
    /// What products read from the registers of lanes.
    held: BTreeSet<Value>,
    /// The two operands of each product.
    together: BTreeSet<[Value; 2]>,
    may_end: MayEnd<'a>,
}

impl Known<'_> {
    /// Whether an instruction does not need to know when a box has come to a buffer: arithmetic, and what products and boxes of other
    /// buffers are begun and waited for by.
    fn is_beside(&self, func: &Func, inst: Inst, buffer: Value) -> bool {
        let op = func.op(inst);
        let begins = matches!(op, Op::DotSlots(_) | Op::Pend(_) | Op::WaitBox(_));
        let ends = matches!(op, Op::Settle(_) | Op::ReleaseSlot(_));
        let mut taken = op.operands();
        for region in op.regions() {
            func.walk(region, &mut |inner| taken.extend(func.op(inner).operands()));
        }
        let free = begins || ends || func.is_pure(inst) || self.fills_released(func, inst);
        free && !taken.contains(&buffer)
    }

    /// Whether an instruction repeats nothing and has no effect but to begin products, wait for boxes, start those for slots that have been
    /// released, or load numbers.
    fn is_free(&self, func: &Func, inst: Inst) -> bool {
        let op = func.op(inst);
        let begins = matches!(op, Op::DotSlots(_) | Op::Pend(_) | Op::WaitBox(_));
        let stays = matches!(op, Op::For(_) | Op::While(_)) || op.is(Trait::terminator);
        let computes = func.is_pure(inst) || self.loads(func, inst);
        !stays && (begins || computes || self.fills_released(func, inst))
    }

    /// Whether an instruction does no more than load numbers, and ends no program.
    fn loads(&self, func: &Func, inst: Inst) -> bool {
        let mut insts = vec![inst];
        for region in func.op(inst).regions() {
            func.walk(region, &mut |inner| insts.push(inner));
        }
        insts.into_iter().all(|inst| {
            let op = func.op(inst);
            let is_load = matches!(op, Op::Load(load) if load.cache != Some(Cache::Volatile));
            let owns = matches!(op, Op::If(_)) || op.is(Trait::terminator) || func.is_pure(inst);
            owns || (is_load && !(self.may_end)(op))
        })
    }

    /// Whether an instruction has no effect but to start boxes in slots that have been released, and to load where these are: what a
    /// wait before it waits for reads none of these.
    fn fills_released(&self, func: &Func, inst: Inst) -> bool {
        let Op::If(op) = func.op(inst) else {
            return false;
        };
        [op.on_true, op.on_false].into_iter().all(|region| {
            // Boxes that a product reads together have one wait, the first one's.
            let mut released = None;
            func.region(region).insts.iter().all(|&inner| {
                let Op::CopyBox(copy) = func.op(inner) else {
                    return self.loads(func, inner) || matches!(func.op(inner), Op::Yield(_));
                };
                if copy.released.is_some() {
                    released = Some(copy.buffer);
                }
                released.is_some_and(|it| self.are_alike(it, copy.buffer))
            })
        })
    }

    /// Whether buffers are one, or a product reads both.
    fn are_alike(&self, one: Value, other: Value) -> bool {
        let pairs = [[one, other], [other, one]];
        one == other || pairs.iter().any(|pair| self.together.contains(pair))
    }
}

/// Moves each wait for a box down behind products that do not read it, to the first one that does.
fn await_late(func: &Func, insts: &mut [Inst], known: &Known<'_>) {
    for at in (0..insts.len()).rev() {
        let Op::WaitBox(op::WaitBox { buffer, .. }) = *func.op(insts[at]) else {
            continue;
        };
        let others = insts[at + 1..].iter();
        let others = others.take_while(|&&later| known.is_beside(func, later, buffer));
        let others: Vec<Inst> = others.copied().collect();
        if others
            .iter()
            .any(|&inst| matches!(func.op(inst), Op::DotSlots(_)))
        {
            insts[at..=at + others.len()].rotate_left(1);
        }
    }
}

/// Moves each release of a slot up to where the last product that reads it is over.
fn release_early(func: &Func, insts: &mut [Inst]) {
    for at in 0..insts.len() {
        let Op::ReleaseSlot(op::ReleaseSlot { buffer, slot }) = *func.op(insts[at]) else {
            continue;
        };
        let reads = |sums: Value| {
            let mut products = insts.iter().map(|&inst| (inst, func.op(inst)));
            products.any(|(inst, op)| {
                let product = matches!(op, Op::DotSlots(_)) && op.operands().contains(&buffer);
                product && func.inst(inst).results[0] == sums
            })
        };
        let over = |inst: Inst| matches!(func.op(inst), Op::Settle(settle) if reads(settle.x));
        let last = insts[..at].iter().rposition(|&inst| over(inst));
        let Some(last) = last else { continue };
        let mut between = insts[last + 1..at].iter();
        let passes =
            |inst: Inst| !func.inst(inst).results.contains(&slot) && !is_covered(func, insts, inst);
        if between.all(|&inst| passes(inst)) {
            insts[last + 1..=at].rotate_right(1);
        }
    }
}

/// Whether an instruction waits for a product that reads boxes whose slots nobody releases: the release of another buffer may say
/// that they have been read.
fn is_covered(func: &Func, insts: &[Inst], wait: Inst) -> bool {
    let Op::Settle(op::Settle { x, .. }) = *func.op(wait) else {
        return false;
    };
    let product = insts.iter().find(|&&it| func.inst(it).results.contains(&x));
    let Some(Op::DotSlots(product)) = product.map(|&it| func.op(it)) else {
        return false;
    };
    let read = [product.a_slot.map(|_| product.a), Some(product.b)];
    let all = func.all_insts();
    let boxed = |buffer: Value| {
        let mut copies = all.iter().map(|&it| func.op(it));
        copies.any(|op| matches!(op, Op::CopyBox(op) if op.buffer == buffer))
    };
    let released = |buffer: Value| {
        let mut own = insts.iter().map(|&it| func.op(it));
        own.any(|op| matches!(op, Op::ReleaseSlot(op) if op.buffer == buffer))
    };
    let mut read = read.into_iter().flatten();
    read.any(|buffer| boxed(buffer) && !released(buffer))
}

/// Lets each wait of a region leave the products under way that begin after that of its sums.
pub(super) fn leave_later(func: &mut Func, insts: &[Inst]) {
    let mut begun: Vec<Value> = Vec::new();
    for &inst in insts {
        let result = func.inst(inst).results.first().copied();
        if let Op::DotSlots(_) = func.op(inst) {
            begun.extend(result);
        } else if let Op::Settle(op) = &mut func.inst_mut(inst).op {
            let product = begun.iter().rposition(|&sums| sums == op.x);
            let later = product.map_or(0, |product| begun.len() - 1 - product) as i64;
            op.pending = later.min(MAX_PRODUCTS);
        }
    }
}

/// What products read from the registers of lanes.
fn held(func: &Func) -> BTreeSet<Value> {
    let insts = func.all_insts();
    let operand = |&inst: &Inst| {
        let Op::DotSlots(op::DotSlots {
            a, a_slot: None, ..
        }) = *func.op(inst)
        else {
            return None;
        };
        Some(a)
    };
    let mut held: BTreeSet<Value> = insts.iter().filter_map(operand).collect();
    // What a loop carries on for such a value comes to lie in the same registers.
    for &inst in &insts {
        for carried in func.carried(inst) {
            if carried.parameters.iter().any(|it| held.contains(it)) {
                held.extend(carried.yielded);
            }
        }
    }
    held
}

/// Whether a wait may come after an instruction that it stands before, which has no effect that it orders. Nothing but a product
/// touches what products read from registers.
fn passes(func: &Func, wait: Inst, later: Inst, held: &BTreeSet<Value>) -> bool {
    let op = func.op(later);
    let mut operands = op.operands();
    for region in op.regions() {
        func.walk(region, &mut |inner| {
            operands.extend(func.op(inner).operands())
        });
    }
    let uses = operands.contains(&func.inst(wait).results[0]);
    let results = &func.inst(later).results;
    let mut touched = operands.iter().chain(results);
    let touches = touched.any(|it| held.contains(it)) && !matches!(op, Op::DotSlots(_));
    !uses && !touches
}

/// The two operands of each product.
fn read_together(func: &Func) -> BTreeSet<[Value; 2]> {
    let insts = func.all_insts().into_iter();
    let pairs = insts.filter_map(|inst| {
        let Op::DotSlots(op) = func.op(inst) else {
            return None;
        };
        Some([op.a, op.b])
    });
    pairs.collect()
}
