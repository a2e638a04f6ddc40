//! The rule of sums that products may still add to: who copied them would read what is not there yet.

use std::collections::BTreeMap;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ir::{Func, Op, Region, Value, op};

/// Errors where such sums are used twice, or in another region than where they are made, and where a wait for them leaves
/// more products under way than have begun after their own. Takes regions to be a tree.
pub(super) fn check(func: &Func, diagnostics: &mut Diagnostics) {
    region(func, func.body(), &mut BTreeMap::new(), diagnostics);
}

fn region(
    func: &Func,
    own: Region,
    unused: &mut BTreeMap<Value, Region>,
    diagnostics: &mut Diagnostics,
) {
    let is_pending = |value: &Value| func.ty(*value).pending().is_some();
    let parameters = func.region(own).parameters.iter().copied();
    unused.extend(parameters.filter(is_pending).map(|it| (it, own)));
    let mut begun = Vec::new();
    for &inst in &func.region(own).insts {
        if let Op::DotSlots(_) | Op::GroupMma(_) = func.op(inst) {
            begun.push(func.inst(inst).results[0]);
        }
        if let &Op::Settle(op::Settle { x, pending }) = func.op(inst) {
            let product = begun.iter().rposition(|&sums| sums == x);
            let later = product.map_or(0, |product| begun.len() - 1 - product) as i64;
            if pending > later {
                let message = format!(
                    "`settle` may leave {later} products under way, those begun after that of `{x}`, found {pending}"
                );
                diagnostics.push(Diagnostic::new(func.inst(inst).loc.clone(), message));
            }
        }
        for operand in func.op(inst).operands().into_iter().filter(is_pending) {
            if unused.remove(&operand) != Some(own) {
                let message = format!(
                    "pending sums have one use, in the region that makes them; `{operand}` has another"
                );
                diagnostics.push(Diagnostic::new(func.inst(inst).loc.clone(), message));
            }
        }
        for nested in func.op(inst).regions() {
            region(func, nested, unused, diagnostics);
        }
        let results = func.inst(inst).results.iter().copied();
        unused.extend(results.filter(is_pending).map(|it| (it, own)));
    }
}
