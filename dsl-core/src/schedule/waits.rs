//! Waits for products where their sums are used, so that lanes work, and further products start, beside them.

use std::collections::BTreeSet;

use super::PlacedFunc;
use crate::diagnostic::Diagnostics;
use crate::ir::{Func, Inst, Op, Value, op};

/// Moves each wait for a product down to what uses its sums, or to what may write what the product reads.
///
/// # Errors
/// None that the function did not have before.
pub fn wait_late(func: PlacedFunc) -> Result<PlacedFunc, Diagnostics> {
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
    let held = held(&func);
    for region in func.all_regions() {
        let mut insts = std::mem::take(&mut func.region_mut(region).insts);
        for at in (0..insts.len()).rev() {
            if matches!(func.op(insts[at]), Op::Settle(_)) {
                let rest = &insts[at + 1..];
                let passed = rest
                    .iter()
                    .take_while(|&&later| passes(&func, insts[at], later, &held));
                let count = passed.count();
                insts[at..=at + count].rotate_left(1);
            }
        }
        func.region_mut(region).insts = insts;
    }
    PlacedFunc::new(func)
}

/// What products read from the registers of lanes.
fn held(func: &Func) -> BTreeSet<Value> {
    let insts = func.all_insts().into_iter();
    let operand = |inst| {
        let Op::DotSlots(op::DotSlots {
            a, a_slot: None, ..
        }) = *func.op(inst)
        else {
            return None;
        };
        Some(a)
    };
    insts.filter_map(operand).collect()
}

/// Whether a wait may come after an instruction that it stands before. Nothing but a product touches what products read
/// from registers.
fn passes(func: &Func, wait: Inst, later: Inst, held: &BTreeSet<Value>) -> bool {
    let op = func.op(later);
    let begins = matches!(op, Op::DotSlots(_) | Op::Pend(_) | Op::WaitBox(_));
    let uses = op.operands().contains(&func.inst(wait).results[0]);
    let touches = op.operands().iter().any(|it| held.contains(it));
    let touches = touches && !matches!(op, Op::DotSlots(_));
    !uses && !touches && op.regions().is_empty() && (begins || func.is_pure(later))
}
