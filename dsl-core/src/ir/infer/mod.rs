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

use super::{DType, Func, Op, Results, Type, op};
use expect::Rules;

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

/// The one list of all ops outside of the table: each names its rule.
fn types(rules: Rules<'_>, declared: &[Type]) -> Result<Vec<Type>, String> {
    let one = |ty: Result<Type, String>| ty.map(|ty| vec![ty]);
    let none = |checked: Result<(), String>| checked.map(|()| Vec::new());
    let stated = |check: &dyn Fn(Type) -> Result<(), String>| rules.stated(declared, check);
    match rules.op {
        Op::Unary(_) | Op::Binary(_) | Op::Ternary(_) => one(rules.family()),
        Op::Raw(_) | Op::Function(_) | Op::Approximate(_) => one(rules.family()),
        Op::Compare(_) => one(rules.family().map(|x| x.with_dtype(DType::Bool))),
        Op::Select(it) => one(rules.select(it)),
        Op::Constant(it) => stated(&|to| rules.expect("result", to, to.with_dtype(it.value.dtype))),
        Op::Cast(it) => stated(&|to| rules.cast(it, to)),
        Op::RawCast(it) => stated(&|to| rules.raw_cast(it, to)),
        Op::Bitcast(it) => stated(&|to| rules.bitcast(it, to)),
        Op::Splat(it) => stated(&|to| rules.splat(it, to)),
        Op::Broadcast(it) => stated(&|to| rules.broadcast(it, to)),
        Op::Reshape(it) => stated(&|to| rules.reshape(it, to)),
        Op::LaneLoad(it) => stated(&|to| rules.lane_load(it, to)),
        Op::Alloc(it) => stated(&|to| rules.alloc(it, to)),
        Op::ExpandDims(it) => one(rules.expand_dims(it)),
        Op::Transpose(it) => one(rules.transpose(it)),
        Op::Arange(it) => one(rules.arange(it)),
        Op::ProgramId(op::ProgramId { axis }) => one(rules.grid(*axis)),
        Op::NumPrograms(op::NumPrograms { axis }) => one(rules.grid(*axis)),
        Op::Load(it) => one(rules.load(it)),
        Op::Dot(it) => one(rules.dot(it)),
        Op::Histogram(it) => one(rules.histogram(it)),
        Op::Gather(it) => one(rules.gather(it)),
        Op::Store(it) => none(rules.access(&it.access()).map(|_| ())),
        Op::AtomicReduce(it) => none(rules.atomic_reduce(it)),
        Op::Reduce(it) => rules.reduce(it),
        Op::Scan(it) => rules.scan(it),
        Op::Sort(it) => rules.sort(it),
        Op::For(it) => rules.counted_loop(it),
        Op::While(it) => rules.while_loop(it),
        Op::If(it) => rules.branch(it),
        Op::Yield(_) | Op::Barrier(_) | Op::GroupCopies(_) => Ok(Vec::new()),
        Op::LaneId(_) | Op::WarpId(_) => Ok(vec![Type::scalar(DType::I32)]),
        Op::LaneStore(it) => none(rules.lane_access(&it.access(), rules.ty(it.value), it.align)),
        Op::LaneAtomic(it) => none(rules.lane_atomic(it)),
        Op::CheckBounds(it) => one(rules.check_bounds(it)),
        Op::StopOutside(it) => none(rules.stop_outside(it)),
        Op::InBounds(it) => one(rules.in_bounds(it)),
        Op::CheckIndex(it) => none(rules.index([it.index, it.element], [it.extent, it.site])),
        Op::StopIndex(it) => none(rules.stop_index(it)),
        Op::StartCopy(it) => none(rules.start_copy(it)),
        Op::WaitCopies(it) => none(rules.wait_copies(it)),
        Op::ShuffleXor(it) => one(rules.shuffle_xor(it)),
        Op::WarpReduce(it) => one(rules.one_of(it.x, &[DType::I32, DType::U32])),
        Op::ShuffleIndex(it) => one(rules.shuffle_index(it)),
        Op::Extract(it) => one(rules.extract(it)),
        Op::Vector(it) => one(rules.vector(it)),
        Op::ShuffleVector(it) => one(rules.shuffle_vector(it)),
    }
}

/// The number of results of `op`, whatever their types.
pub fn result_count(op: &Op, declared: &[Type]) -> usize {
    match op.results() {
        Results::none => 0,
        Results::one | Results::stated => 1,
        Results::sources => op.operands().len(),
        Results::yielded => declared.len(),
        Results::carried => {
            if let Op::For(op::For { init, .. }) | Op::While(op::While { init, .. }) = op {
                init.len()
            } else {
                0
            }
        }
    }
}
