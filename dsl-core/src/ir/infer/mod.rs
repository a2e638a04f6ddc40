//! The types that an op's results have, and what is wrong when they have none.
//!
//! The builder and the verifier both call [`infer`]; there is no second statement of these rules.

mod control;
mod declared;
mod expect;
mod lane;
mod lookup;
mod memory;
mod sort;
mod value;

use super::{Func, Op, Rule, Type, op};
use control::{check_if, check_loop, infer_reduce, infer_scan};
use declared::check_declared;
use memory::{check_lane_effect, check_store};
use sort::infer_sort;
use value::{check_elementwise, infer_one};

/// The result types of `op`. `declared` are the types stated where the op is made; rules that infer
/// ignore them. An error is a message without location. Poisoned operands give a poisoned result.
pub fn infer(func: &Func, op: &Op, declared: &[Type]) -> Result<Vec<Type>, String> {
    let mut poisoned = false;
    op.visit_operands(&mut |value| poisoned |= func.ty(value).is_poison());
    if poisoned {
        return Ok(vec![Type::POISON; result_count(op, declared)]);
    }
    check_elementwise(func, op)?;
    match op.rule() {
        Rule::none => check_lane_effect(func, op).map(|()| Vec::new()),
        Rule::declared => {
            let [ty] = declared else {
                return Err(format!(
                    "`{}` has one result, found {}",
                    op.mnemonic(),
                    declared.len()
                ));
            };
            check_declared(func, op, *ty).map(|()| vec![*ty])
        }
        Rule::store => check_store(func, op).map(|()| Vec::new()),
        Rule::carried => check_loop(func, op),
        Rule::yielded => check_if(func, op),
        Rule::reduce => infer_reduce(func, op),
        Rule::scan => infer_scan(func, op),
        Rule::sort => infer_sort(func, op),
        Rule::index
        | Rule::index32
        | Rule::condition
        | Rule::like_first
        | Rule::compare
        | Rule::arange
        | Rule::select
        | Rule::expand_dims
        | Rule::transpose
        | Rule::load
        | Rule::dot
        | Rule::histogram
        | Rule::gather
        | Rule::extract
        | Rule::vector
        | Rule::shuffle_vector => infer_one(func, op).map(|ty| vec![ty]),
    }
}

/// The number of results of `op`, whatever their types.
pub fn result_count(op: &Op, declared: &[Type]) -> usize {
    match op.rule() {
        Rule::none | Rule::store => 0,
        Rule::reduce | Rule::scan | Rule::sort => op.operands().len(),
        Rule::yielded => declared.len(),
        Rule::carried => {
            if let Op::For(op::For { init, .. }) | Op::While(op::While { init, .. }) = op {
                init.len()
            } else {
                0
            }
        }
        Rule::declared
        | Rule::index
        | Rule::index32
        | Rule::condition
        | Rule::like_first
        | Rule::compare
        | Rule::arange
        | Rule::select
        | Rule::expand_dims
        | Rule::transpose
        | Rule::load
        | Rule::dot
        | Rule::histogram
        | Rule::gather
        | Rule::extract
        | Rule::vector
        | Rule::shuffle_vector => 1,
    }
}
