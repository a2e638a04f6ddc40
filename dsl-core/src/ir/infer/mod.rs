//! The types that an op's results have, and what is wrong when they have none.
//!
//! The builder and the verifier both call [`infer`]; there is no second statement of these rules.

mod accumulator;
mod control;
mod declared;
mod each;
mod expect;
mod inline_ptx;
mod lookup;
mod memory;
pub(crate) mod order;
mod slot;
mod sort;
mod tensor;
mod transfer;
mod value;

use super::{Func, Op, Results, Type, op};
use each::types;
use expect::Rules;
pub use lookup::MAX_BINS;

/// The result types of `op`. `declared` are the types stated where the op is made; rules that infer
/// ignore them. An error is a message without location. Poisoned operands give a poisoned result.
pub fn infer(func: &Func, op: &Op, declared: &[Type]) -> Result<Vec<Type>, String> {
    let mut poisoned = false;
    op.visit_operands(&mut |value| poisoned |= func.ty(value).is_poison());
    if poisoned {
        return Ok(vec![Type::POISON; result_count(op, declared)]);
    }
    types(Rules { func, op }, declared)
}

/// The number of results of `op`, whatever their types.
pub fn result_count(op: &Op, declared: &[Type]) -> usize {
    match op.results() {
        Results::none => 0,
        Results::one | Results::stated => 1,
        Results::sources => op.operands().len(),
        Results::yielded => declared.len(),
        Results::held => {
            if let Op::Accumulate(op::Accumulate { accumulators, .. })
            | Op::Total(op::Total { accumulators, .. })
            | Op::Prefixes(op::Prefixes { accumulators, .. }) = op
            {
                accumulators.len()
            } else {
                0
            }
        }
        Results::carried => {
            if let Op::For(op::For { init, .. }) | Op::While(op::While { init, .. }) = op {
                init.len()
            } else {
                0
            }
        }
    }
}
