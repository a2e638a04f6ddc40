//! How much code the function of a lane of a GPU leads to, told before a backend makes it: LLVM and the assembler take time
//! for each instruction.

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::Loc;
use crate::ir::{Func, Inst, Op, Trait, Type, Value, op};

/// Bytes of a register.
const WORD: usize = 4;

/// About as many instructions as a lane function has on a GPU: one for each word that is computed or that a region hands on, and
/// for each access. What is known when the function is made is none.
#[must_use]
pub fn instructions(func: &Func) -> usize {
    let mut sum = 0_usize;
    each(func, &mut |_, count| sum = sum.saturating_add(count));
    sum
}

/// As many of them as there would be if each lane had one word of every tile.
#[must_use]
pub(crate) fn steps(func: &Func) -> usize {
    let mut sum = 0;
    each(func, &mut |_, count| sum += usize::from(count > 0));
    sum
}

/// The place in the source that leads to most of them.
pub(crate) fn longest(func: &Func) -> Loc {
    let mut counts: BTreeMap<&Loc, usize> = BTreeMap::new();
    each(func, &mut |inst, instructions| {
        let count = counts.entry(&func.inst(inst).loc).or_default();
        *count = count.saturating_add(instructions);
    });
    let known = counts.into_iter().filter(|(loc, _)| loc.is_known());
    let longest = known.max_by_key(|&(_, count)| count);
    longest.map_or_else(Loc::none, |(loc, _)| loc.clone())
}

/// The most registers that a loop carries in a lane, and of how many values.
pub(crate) fn carried(func: &Func) -> (usize, usize) {
    let mut most = (0, 0);
    func.walk(func.body(), &mut |inst| {
        if matches!(func.op(inst), Op::While(_) | Op::For(_)) {
            let results = &func.inst(inst).results;
            let bytes: usize = results.iter().map(|&it| bytes(func.ty(it))).sum();
            most = most.max((bytes.div_ceil(WORD), results.len()));
        }
    });
    most
}

/// Hands each instruction with its count to `take`.
fn each(func: &Func, take: &mut dyn FnMut(Inst, usize)) {
    let mut known = BTreeSet::new();
    func.walk(func.body(), &mut |inst| {
        let (op, operands) = (func.op(inst), func.op(inst).operands());
        let is_known = op.is(Trait::pure)
            && match operands.is_empty() {
                true => matches!(op, Op::Constant(_) | Op::Places(_)),
                false => operands.iter().all(|it| known.contains(it)),
            };
        if is_known {
            known.extend(func.inst(inst).results.iter().copied());
        } else if !matches!(op, Op::Select(op::Select { condition, .. }) if known.contains(condition)) {
            take(inst, of_inst(func, inst, &operands));
        }
    });
}

fn of_inst(func: &Func, inst: Inst, operands: &[Value]) -> usize {
    let op = func.op(inst);
    if names_registers(op) {
        return 0;
    }
    let elements = |value: Value| func.ty(value).shape.elements();
    if op.is(Trait::terminator) {
        return operands.iter().copied().map(elements).sum();
    }
    let values = || operands.iter().chain(&func.inst(inst).results).copied();
    if let Op::LaneLoad(op::LaneLoad { offset, align, .. })
    | Op::LaneStore(op::LaneStore { offset, align, .. }) = *op
    {
        let bytes = values().map(|it| bytes(func.ty(it))).max().unwrap_or(0);
        let piece = usize::try_from(align).unwrap_or(1).max(1);
        return elements(offset).max(bytes.div_ceil(piece));
    }
    let words = |value: Value| {
        let dtype = func.ty(value).dtype();
        dtype.map_or(1, |dtype| (dtype.bytes() as usize).div_ceil(WORD))
    };
    let most = values().map(elements).fold(1, usize::max);
    most * values().map(words).fold(1, usize::max)
}

/// Whether an op says which registers hold what, and lanes compute nothing for it.
fn names_registers(op: &Op) -> bool {
    matches!(
        op,
        Op::Constant(_)
            | Op::Splat(_)
            | Op::Extract(_)
            | Op::Vector(_)
            | Op::ShuffleVector(_)
            | Op::Bitcast(_)
            | Op::Places(_)
            | Op::Alloc(_)
            | Op::Pend(_)
            | Op::GroupMma(_)
            | Op::If(_)
            | Op::While(_)
            | Op::For(_)
    )
}

fn bytes(ty: Type) -> usize {
    let dtype = ty.dtype().or_else(|| ty.pending());
    ty.shape.elements() * dtype.map_or(0, |dtype| dtype.bytes() as usize)
}

#[cfg(test)]
mod tests {
    use super::{carried, instructions, steps};
    use crate::text::parse;

    #[test]
    fn words_and_accesses_count_and_names_of_registers_do_not() {
        let source = "func @f lane warps=1 (%x: ptr<f32> divisor=4, %y: ptr<f64> write, %n: i64) {
             %p = places values=[0, 1, 2, 3] : tile<4xi32>
             %two = constant value=i32(2) : tile<4xi32>
             %q = mul %p, %two : tile<4xi32>
             %i = constant value=i64(0) : i64
             %v = lane_load %x, %i, align=16 : tile<4xf32>
             %w = add %v, %v : tile<4xf32>
             %d = cast %w : tile<4xf64>
             %e = for %i, %n, [%d], step=1, stages=1 (%k: i64, %c: tile<4xf64>) {
               %s = add %c, %c : tile<4xf64>
               yield [%s]
             } : tile<4xf64>
             lane_store %y, %i, %e, align=8
           }";
        let func = parse(source, "test.bir").expect("parses");
        // A load, an addition, a conversion to two words each, as much in the loop with what it hands on, and a store of pieces.
        assert_eq!(instructions(&func), 1 + 4 + 8 + 8 + 4 + 4);
        assert_eq!(steps(&func), 6);
        assert_eq!(carried(&func), (8, 1));
    }
}
