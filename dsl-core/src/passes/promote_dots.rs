//! Writes out products of matrices in parts: those whose sums are promoted, and those that shared memory does not hold.

use std::collections::{BTreeMap, BTreeSet};

use super::rewrite::rewrite;
use crate::builder::Builder;
use crate::ir::operand::is_multiplied_in_fragments;
use crate::ir::{Axis, Func, Inst, Literal, Op, Value, op};
use crate::target::{Distribution, Target};

/// Replaces each `dot_promoted` by a `dot` of each part and the additions of those.
///
/// The last part of one comes to the sums behind the first part of the next, where that adds to its sums and nothing else does:
/// tensor cores multiply the one while lanes add the other.
pub fn promote_dots(func: &mut Func) {
    let insts = func.all_insts();
    if !insts
        .iter()
        .any(|&inst| matches!(func.op(inst), Op::DotPromoted(_)))
    {
        return;
    }
    let before = before(func);
    let led: BTreeSet<Inst> = before.values().copied().collect();
    let mut last = BTreeMap::new();
    rewrite(func, &mut |rewriter, inst| {
        let Op::DotPromoted(op) = rewriter.builder.func().op(inst).clone() else {
            return None;
        };
        let mut waiting = before.get(&inst).and_then(|led| last.remove(led));
        let builder = &mut rewriter.builder;
        let mut sum = op.accumulator;
        let shape = builder.ty(op.a).shape;
        let products = shape.extent(shape.rank() - 1) as i64;
        for start in (0..products).step_by(op.count as usize) {
            let part = promoted(builder, &op, start);
            if let Some(part) = waiting.take() {
                sum = builder.add(sum, part);
            }
            if start + op.count == products && led.contains(&inst) {
                last.insert(inst, part);
            } else {
                sum = builder.add(sum, part);
            }
        }
        Some(vec![sum])
    });
}

/// Products whose sums are those of another one in the same region, which nothing else uses, with that one.
fn before(func: &Func) -> BTreeMap<Inst, Inst> {
    let mut uses: BTreeMap<Value, usize> = BTreeMap::new();
    for inst in func.all_insts() {
        func.op(inst)
            .visit_operands(&mut |value| *uses.entry(value).or_default() += 1);
    }
    let mut found = BTreeMap::new();
    for region in func.all_regions() {
        let mut sums: BTreeMap<Value, Inst> = BTreeMap::new();
        for &inst in &func.region(region).insts {
            let Op::DotPromoted(op) = func.op(inst) else {
                continue;
            };
            let led = sums.get(&op.accumulator);
            let led = led.filter(|_| uses[&op.accumulator] == 1);
            found.extend(led.map(|&led| (inst, led)));
            sums.insert(func.inst(inst).results[0], inst);
        }
    }
    found
}

/// The product of a part from sums of zero.
fn promoted(builder: &mut Builder, op: &op::DotPromoted, start: i64) -> Value {
    let ty = builder.ty(op.accumulator);
    let dtype = ty
        .dtype()
        .expect("broken invariant: an accumulator is of numbers");
    let accumulator = builder.filled(Literal::from_bits(dtype, 0), ty.shape);
    let [a, b] = part(builder, [op.a, op.b], start, op.count);
    builder.value(Op::Dot(op::Dot {
        a,
        b,
        accumulator,
        precision: op.precision,
    }))
}

/// Makes a chain of each `dot` that lanes multiply and whose operands take more than half of a GPU's shared memory.
pub fn part_dots(func: &mut Func, target: &Target) {
    if target.distribution == Distribution::Sequential {
        return;
    }
    let most = u64::from(target.gpu.shared_bytes) / 2;
    rewrite(func, &mut |rewriter, inst| {
        let builder = &mut rewriter.builder;
        let func = builder.func();
        let Op::Dot(dot) = func.op(inst).clone() else {
            return None;
        };
        let operand = func.ty(dot.a).dtype()?;
        if !dot.precision.is_chain(operand) || is_multiplied_in_fragments(func, &dot) {
            return None;
        }
        let shape = func.ty(dot.a).shape;
        let products = shape.extent(shape.rank() - 1) as i64;
        let bytes = |value: Value| {
            let ty = func.ty(value);
            let bytes = ty.dtype().map_or(0, |dtype| u64::from(dtype.bytes()));
            ty.shape.elements() as u64 * bytes
        };
        let parts = (bytes(dot.a) + bytes(dot.b)).div_ceil(most);
        let count = products / (parts.next_power_of_two() as i64).min(products);
        (count < products).then(|| {
            let mut accumulator = dot.accumulator;
            for start in (0..products).step_by(count as usize) {
                let [a, b] = part(builder, [dot.a, dot.b], start, count);
                accumulator = builder.value(Op::Dot(op::Dot {
                    a,
                    b,
                    accumulator,
                    precision: dot.precision,
                }));
            }
            vec![accumulator]
        })
    });
}

/// So many products of two operands, from `start` on.
fn part(builder: &mut Builder, [a, b]: [Value; 2], start: i64, count: i64) -> [Value; 2] {
    let column = builder.ty(a).shape.rank() - 1;
    [(a, column), (b, column - 1)].map(|(x, axis)| {
        match builder.ty(x).shape.extent(axis) as i64 == count {
            true => x,
            false => builder.value(Op::Slice(op::Slice {
                x,
                axis: Axis(axis as u8),
                start,
                count,
            })),
        }
    })
}
