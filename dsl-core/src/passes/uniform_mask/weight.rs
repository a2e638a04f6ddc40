//! How much is computed by instructions, as far as it shows before tiles have layouts.

use crate::ir::operand::is_of_tensor_cores;
use crate::ir::{Func, Inst, Op, Trait};

/// Products that tensor cores add to a sum by one instruction, of most types.
const AT_ONCE: usize = 16;

/// Elements that instructions compute in all, nested ones included.
pub(super) fn elements(func: &Func, insts: &[Inst]) -> usize {
    let of = |inst: Inst| nested(func, inst, &mut |inst| results(func, inst));
    let each = insts.iter().map(|&inst| of(inst));
    each.fold(0, usize::saturating_add)
}

/// The steps that an instruction takes for all elements, nested ones included: those of a product are its multiplications, by tensor
/// cores many at once.
pub(super) fn steps(func: &Func, inst: Inst) -> usize {
    nested(func, inst, &mut |inst| own_steps(func, inst))
}

fn nested(func: &Func, inst: Inst, of: &mut dyn FnMut(Inst) -> usize) -> usize {
    let mut sum = of(inst);
    for region in func.op(inst).regions() {
        func.walk(region, &mut |inner| sum = sum.saturating_add(of(inner)));
    }
    sum
}

fn results(func: &Func, inst: Inst) -> usize {
    let results = func.inst(inst).results.iter();
    let sizes = results.map(|&it| func.ty(it).shape.elements());
    sizes.max().unwrap_or(0)
}

fn own_steps(func: &Func, inst: Inst) -> usize {
    let op = func.op(inst);
    let size = results(func, inst);
    if let Op::Reduce(op) = op {
        func.ty(op.sources[0]).shape.elements()
    } else if let Op::Dot(op) = op {
        let shape = func.ty(op.a).shape;
        let products = size.saturating_mul(shape.extent(shape.rank() - 1));
        match is_of_tensor_cores(func, op) {
            true => products / AT_ONCE,
            false => products,
        }
    } else if op.shape().is_some() || op.operands().is_empty() || op.is(Trait::terminator) {
        0
    } else {
        size
    }
}
