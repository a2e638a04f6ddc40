//! Gives whole tiles a path without masks: where scalars prove that a bounds comparison such as
//! `offsets < n` holds for every element, one branch per program skips the mask altogether.
//!
//! A comparison is analysed when both sides are a scalar plus a constant range. The branch tests
//! the ends of the ranges, and that they do not wrap, so it is exact about machine integers.

use std::collections::{BTreeMap, BTreeSet};

use super::duplicate::duplicate;
use super::mask_ranges::{Definitions, Ranges};
use crate::builder::Builder;
use crate::ir::op::Control;
use crate::ir::{BinaryOp, DType, Func, Inst, Literal, Op, Region, Stage, Trait, Value, op};

/// Splits each region whose accesses are masked by provable comparisons into two versions.
pub fn split_uniform_masks(func: &mut Func) {
    func.keep_sites();
    let mut definitions = Definitions::default();
    definitions.learn(func);
    region(func, func.body(), &mut definitions);
}

/// Splits the region, then those inside it; after a split only those of the version without masks,
/// since the other is for the few programs at an edge and code costs time to compile.
fn region(func: &mut Func, of: Region, definitions: &mut Definitions) {
    let inside = split(func, of, definitions).unwrap_or(of);
    definitions.learn(func);
    for inst in func.region(inside).insts.clone() {
        let inner = match func.op(inst).control() {
            Some(Control::For(op)) => vec![op.body],
            Some(Control::While(op)) => vec![op.body],
            Some(Control::If(op)) => vec![op.on_true, op.on_false],
            None => Vec::new(),
        };
        for inner in inner {
            region(func, inner, definitions);
        }
    }
}

/// The region of the version without masks, where there is one.
fn split(func: &mut Func, of: Region, definitions: &Definitions) -> Option<Region> {
    let (head, tail) = pure_first(func, of);
    let defined: BTreeSet<Value> = head
        .iter()
        .flat_map(|&inst| func.inst(inst).results.clone())
        .collect();
    let comparisons: Vec<Value> = mask_leaves(func, &tail, definitions)
        .into_iter()
        .filter(|leaf| defined.contains(leaf))
        .collect();
    if comparisons.is_empty() {
        return None;
    }
    let owned = std::mem::replace(func, Func::new("", Stage::Block));
    let mut builder = Builder::resume(owned);
    builder.func_mut().region_mut(of).insts.clone_from(&head);
    builder.enter(of);
    let mut proven = Vec::new();
    let mut condition = None;
    let mut known = BTreeMap::new();
    for comparison in comparisons {
        let mut ranges = Ranges {
            builder: &mut builder,
            definitions,
            known: &mut known,
            inside: head.len(),
        };
        if let Some(holds) = ranges.comparison(comparison) {
            condition = Some(match condition {
                Some(condition) => builder.and(condition, holds),
                None => holds,
            });
            proven.push(comparison);
        }
    }
    let insts = [dependents(builder.func(), &head, &proven), tail.clone()].concat();
    let unchecked =
        condition.map(|condition| branch(&mut builder, &proven, condition, (&insts, &tail)));
    if unchecked.is_none() {
        builder.func_mut().region_mut(of).insts.extend(tail);
    }
    *func = builder
        .finish()
        .expect("broken invariant: ranges are scalar indices");
    unchecked
}

/// The instructions of a region in two lists: pure ones that depend on no effect of the region, and
/// the rest.
fn pure_first(func: &Func, of: Region) -> (Vec<Inst>, Vec<Inst>) {
    let mut late: BTreeSet<Value> = BTreeSet::new();
    func.region(of).insts.iter().partition(|&&inst| {
        let op = func.op(inst);
        let mut depends = false;
        op.visit_operands(&mut |value| depends |= late.contains(&value));
        let early = op.is(Trait::pure) && op.regions().is_empty() && !depends;
        if !early {
            late.extend(&func.inst(inst).results);
        }
        early
    })
}

/// The values whose conjunction is a mask of an access that `insts` reach.
fn mask_leaves(func: &Func, insts: &[Inst], definitions: &Definitions) -> BTreeSet<Value> {
    let mut pending = Vec::new();
    let mut visit = |inst: Inst| {
        pending.extend(func.op(inst).access().and_then(|access| access.mask));
    };
    for &inst in insts {
        visit(inst);
        for nested in func.op(inst).regions() {
            func.walk(nested, &mut visit);
        }
    }
    let (mut leaves, mut seen) = (BTreeSet::new(), BTreeSet::new());
    while let Some(value) = pending.pop() {
        if !seen.insert(value) {
            continue;
        }
        let Some(op) = definitions.op(func, value) else {
            continue;
        };
        if let Some(shape) = op.shape() {
            pending.push(shape.x());
        } else if let Op::Binary(op::Binary {
            op: BinaryOp::And,
            lhs,
            rhs,
        }) = op
        {
            pending.extend([*lhs, *rhs]);
        } else if matches!(op, Op::Compare(_)) {
            leaves.insert(value);
        }
    }
    leaves
}

/// Those of `insts`, in order, that follow from `values`, such as a mask of two comparisons.
fn dependents(func: &Func, insts: &[Inst], values: &[Value]) -> Vec<Inst> {
    let mut affected: BTreeSet<Value> = values.iter().copied().collect();
    let mut found = Vec::new();
    for &inst in insts {
        let data = func.inst(inst);
        let mut depends = false;
        data.op
            .visit_operands(&mut |operand| depends |= affected.contains(&operand));
        if depends {
            affected.extend(&data.results);
            found.push(inst);
        }
    }
    found
}

/// Ends the region with `if condition { whole } else { tail }`, where the comparisons are true in
/// `whole`; returns the region of these.
fn branch(
    builder: &mut Builder,
    proven: &[Value],
    condition: Value,
    (whole, tail): (&[Inst], &[Inst]),
) -> Region {
    let func = builder.func();
    let terminator = tail
        .last()
        .copied()
        .filter(|&inst| func.op(inst).is(Trait::terminator));
    let unchecked = builder.new_region(&[]);
    let outer = builder.enter(unchecked);
    let mut map = BTreeMap::new();
    for &comparison in proven {
        let shape = builder.ty(comparison).shape;
        let always = builder.filled(Literal::from_bits(DType::Bool, 1), shape);
        map.insert(comparison, always);
    }
    let copies = duplicate(builder.func_mut(), whole, &mut map);
    builder
        .func_mut()
        .region_mut(unchecked)
        .insts
        .extend(copies);
    let checked = builder.new_region(&[]);
    builder.func_mut().region_mut(checked).insts = tail.to_vec();
    if terminator.is_none() {
        for region in [unchecked, checked] {
            builder.enter(region);
            builder.emit(Op::Yield(op::Yield { values: Vec::new() }), &[]);
        }
    }
    builder.enter(outer);
    let op = Op::If(op::If {
        condition,
        on_true: unchecked,
        on_false: checked,
    });
    let inst = builder.emit(op, &[]);
    if terminator.is_some() {
        let values = builder.results(inst).to_vec();
        builder.emit(Op::Yield(op::Yield { values }), &[]);
    }
    unchecked
}

#[cfg(test)]
mod tests {
    use crate::passes::tidy;
    use crate::text::parse;
    use crate::verify;

    #[test]
    fn a_whole_tile_is_accessed_without_a_mask() {
        let source = "func @f block (%x: ptr<f32>, %y: ptr<f32> write, %n: i64) {
             %p = program_id axis=0 : i64
             %b = constant value=i64(8) : i64
             %s = mul %p, %b : i64
             %t = splat %s : tile<8xi64>
             %a = arange start=0, end=8 : tile<8xi64>
             %o = add %t, %a : tile<8xi64>
             %l = splat %n : tile<8xi64>
             %m = lt %o, %l : tile<8xbool>
             %v = load %x, %o, mask=%m : tile<8xf32>
             store %y, %o, %v, mask=%m
           }";
        let mut func = parse(source, "f.bir").expect("parses");
        super::split_uniform_masks(&mut func);
        tidy(&mut func);
        let func = verify::block(func).expect("is valid");
        let text = func.to_string();
        let condition = "  %12 = add %5, %11 : i64
  %13 = lt %12, %2 : bool
  %14 = le %5, %12 : bool
  %15 = and %13, %14 : bool
  if %15 () {
    %16 = load %0, %8 : tile<8xf32>";
        assert!(text.contains(condition), "{text}");
        assert_eq!(text.matches("mask=").count(), 2, "{text}");
        assert_eq!(text.matches("load ").count(), 2, "{text}");
    }
    /// Both comparisons are proved, and what joins them is computed before the access.
    #[test]
    fn masks_of_two_comparisons_go_too() {
        let source = "func @f block (%x: ptr<f32>, %y: ptr<f32> write, %n: i64) {
             %p = program_id axis=0 : i64
             %t = splat %p : tile<8xi64>
             %a = arange start=0, end=8 : tile<8xi64>
             %o = add %t, %a : tile<8xi64>
             %l = splat %n : tile<8xi64>
             %z = constant value=i64(0) : tile<8xi64>
             %below = lt %o, %l : tile<8xbool>
             %above = ge %o, %z : tile<8xbool>
             %m = and %below, %above : tile<8xbool>
             %v = load %x, %o, mask=%m : tile<8xf32>
             store %y, %o, %v, mask=%m
           }";
        let mut func = parse(source, "f.bir").expect("parses");
        super::split_uniform_masks(&mut func);
        tidy(&mut func);
        let text = verify::block(func).expect("is valid").to_string();
        assert_eq!(text.matches("mask=").count(), 2, "{text}");
        assert_eq!(text.matches("load ").count(), 2, "{text}");
    }
}
