//! Waits for products where their sums are used, so that lanes work, and further products start, beside them.

use super::PlacedFunc;
use crate::diagnostic::Diagnostics;
use crate::ir::{Func, Inst, Op};

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
    for region in func.all_regions() {
        let mut insts = std::mem::take(&mut func.region_mut(region).insts);
        for at in (0..insts.len()).rev() {
            if matches!(func.op(insts[at]), Op::Settle(_)) {
                let rest = &insts[at + 1..];
                let passed = rest
                    .iter()
                    .take_while(|&&later| passes(&func, insts[at], later));
                let count = passed.count();
                insts[at..=at + count].rotate_left(1);
            }
        }
        func.region_mut(region).insts = insts;
    }
    PlacedFunc::new(func)
}

/// Whether a wait may come after an instruction that it stands before.
fn passes(func: &Func, wait: Inst, later: Inst) -> bool {
    let op = func.op(later);
    let begins = matches!(op, Op::DotSlots(_) | Op::Pend(_) | Op::WaitBox(_));
    let uses = op.operands().contains(&func.inst(wait).results[0]);
    !uses && op.regions().is_empty() && (begins || func.is_pure(later))
}
