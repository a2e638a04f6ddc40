//! Gives whole tiles a path without masks: where scalars prove that a bounds comparison such as
//! `offsets < n` holds for every element, one branch per program skips the mask altogether.
//!
//! A comparison is analysed when both sides are a scalar plus a constant range. The branch tests
//! the ends of the ranges, and that they do not wrap, so it is exact about machine integers.

use std::collections::{BTreeMap, BTreeSet};

use super::duplicate::duplicate;
use crate::builder::Builder;
use crate::entity::EntityMap;
use crate::ir::{
    BinaryOp, CompareOp, DType, Func, Inst, Literal, Op, Region, Stage, Trait, Type, Value,
};

/// Splits each region whose accesses are masked by provable comparisons into two versions.
pub fn split_uniform_masks(func: &mut Func) {
    let accesses = func.all_insts();
    let accesses = accesses
        .into_iter()
        .filter(|&inst| func.op(inst).is_checked());
    for (site, inst) in (0..).zip(accesses.collect::<Vec<_>>()) {
        func.inst_mut(inst).site = Some(site);
    }
    region(func, func.body());
}

/// Splits the region, then those inside it; after a split only those of the version without masks,
/// since the other is for the few programs at an edge and code costs time to compile.
fn region(func: &mut Func, of: Region) {
    let inside = split(func, of).unwrap_or(of);
    for inst in func.region(inside).insts.clone() {
        match func.op(inst).clone() {
            Op::For { body, .. } | Op::While { body, .. } => region(func, body),
            Op::If {
                on_true, on_false, ..
            } => {
                region(func, on_true);
                region(func, on_false);
            }
            _ => {}
        }
    }
}

/// The region of the version without masks, where there is one.
fn split(func: &mut Func, of: Region) -> Option<Region> {
    let definitions = func.definitions();
    let (head, tail) = pure_first(func, of);
    let defined: BTreeSet<Value> = head
        .iter()
        .flat_map(|&inst| func.inst(inst).results.clone())
        .collect();
    let comparisons: Vec<Value> = mask_leaves(func, &tail, &definitions)
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
    for comparison in comparisons {
        let mut ranges = Ranges {
            builder: &mut builder,
            definitions: &definitions,
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
fn mask_leaves(
    func: &Func,
    insts: &[Inst],
    definitions: &EntityMap<Value, Option<Inst>>,
) -> BTreeSet<Value> {
    let mut pending = Vec::new();
    let mut visit = |inst: Inst| {
        if let Op::Load {
            mask: Some(mask), ..
        }
        | Op::Store {
            mask: Some(mask), ..
        }
        | Op::AtomicReduce {
            mask: Some(mask), ..
        } = func.op(inst)
        {
            pending.push(*mask);
        }
    };
    for &inst in insts {
        visit(inst);
        for nested in func.op(inst).regions() {
            func.walk(nested, &mut visit);
        }
    }
    let mut leaves = BTreeSet::new();
    while let Some(value) = pending.pop() {
        match definitions[value].map(|inst| func.op(inst)) {
            Some(Op::Binary {
                op: BinaryOp::And,
                lhs,
                rhs,
            }) => pending.extend([*lhs, *rhs]),
            Some(
                Op::Broadcast { x }
                | Op::ExpandDims { x, .. }
                | Op::Reshape { x }
                | Op::Transpose { x, .. },
            ) => pending.push(*x),
            Some(Op::Compare { .. }) => {
                leaves.insert(value);
            }
            _ => {}
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
            builder.emit(Op::Yield { values: Vec::new() }, &[]);
        }
    }
    builder.enter(outer);
    let op = Op::If {
        condition,
        on_true: unchecked,
        on_false: checked,
    };
    let inst = builder.emit(op, &[]);
    if terminator.is_some() {
        let values = builder.results(inst).to_vec();
        builder.emit(Op::Yield { values }, &[]);
    }
    unchecked
}

/// A set of integers: `base + r` for `r` in `low..=high`, wrapping.
#[derive(Clone, Copy)]
struct Range {
    base: Option<Value>,
    low: i64,
    high: i64,
}

struct Ranges<'a> {
    builder: &'a mut Builder,
    definitions: &'a EntityMap<Value, Option<Inst>>,
}

impl Ranges<'_> {
    /// A scalar that is true only if the comparison holds for every element.
    fn comparison(&mut self, value: Value) -> Option<Value> {
        let inst = self.definitions[value]?;
        let &Op::Compare { op, lhs, rhs } = self.builder.func().op(inst) else {
            return None;
        };
        if self.builder.ty(lhs).dtype() != Some(DType::I64) || self.builder.ty(lhs).is_scalar() {
            return None;
        }
        let op = match op {
            CompareOp::Lt | CompareOp::Le | CompareOp::Gt | CompareOp::Ge => op,
            CompareOp::Eq | CompareOp::Ne => return None,
        };
        let (left, right) = (self.range(lhs)?, self.range(rhs)?);
        let upward = matches!(op, CompareOp::Lt | CompareOp::Le);
        let (left_low, left_high) = self.ends(left);
        let (right_low, right_high) = self.ends(right);
        let extreme = if upward {
            self.builder.compare(op, left_high, right_low)
        } else {
            self.builder.compare(op, left_low, right_high)
        };
        let mut holds = extreme;
        for (range, low, high) in [(left, left_low, left_high), (right, right_low, right_high)] {
            if range.base.is_some() && range.low != range.high {
                let ordered = self.builder.le(low, high);
                holds = self.builder.and(holds, ordered);
            }
        }
        Some(holds)
    }

    fn ends(&mut self, range: Range) -> (Value, Value) {
        let low = self.end(range.base, range.low);
        let high = if range.low == range.high {
            low
        } else {
            self.end(range.base, range.high)
        };
        (low, high)
    }

    fn end(&mut self, base: Option<Value>, constant: i64) -> Value {
        match base {
            Some(base) if constant == 0 => base,
            Some(base) => {
                let constant = self.builder.index(constant);
                self.builder.add(base, constant)
            }
            None => self.builder.index(constant),
        }
    }

    fn range(&mut self, value: Value) -> Option<Range> {
        if self.builder.ty(value) == Type::INDEX {
            return Some(match self.constant(value) {
                Some(constant) => Range {
                    base: None,
                    low: constant,
                    high: constant,
                },
                None => Range {
                    base: Some(value),
                    low: 0,
                    high: 0,
                },
            });
        }
        let op = self.definitions[value].map(|inst| self.builder.func().op(inst).clone())?;
        match op {
            Op::Constant { value } => {
                let constant = i64::try_from(value.integer()?).ok()?;
                Some(Range {
                    base: None,
                    low: constant,
                    high: constant,
                })
            }
            Op::Arange { start, end } => Some(Range {
                base: None,
                low: start,
                high: end - 1,
            }),
            Op::Splat { x }
            | Op::Broadcast { x }
            | Op::ExpandDims { x, .. }
            | Op::Reshape { x }
            | Op::Transpose { x, .. } => self.range(x),
            Op::Binary { op, lhs, rhs } => {
                let (left, right) = (self.range(lhs)?, self.range(rhs)?);
                self.combine(op, left, right)
            }
            _ => None,
        }
    }

    fn constant(&self, value: Value) -> Option<i64> {
        match self.definitions[value].map(|inst| self.builder.func().op(inst)) {
            Some(Op::Constant { value }) => i64::try_from(value.integer()?).ok(),
            _ => None,
        }
    }

    fn combine(&mut self, op: BinaryOp, left: Range, right: Range) -> Option<Range> {
        match op {
            BinaryOp::Add => Some(Range {
                base: match (left.base, right.base) {
                    (Some(a), Some(b)) => Some(self.builder.add(a, b)),
                    (a, b) => a.or(b),
                },
                low: left.low.checked_add(right.low)?,
                high: left.high.checked_add(right.high)?,
            }),
            BinaryOp::Sub if right.base.is_none() => Some(Range {
                base: left.base,
                low: left.low.checked_sub(right.high)?,
                high: left.high.checked_sub(right.low)?,
            }),
            BinaryOp::Mul => {
                let (range, factor) = match (left, right) {
                    (
                        range,
                        Range {
                            base: None,
                            low,
                            high,
                        },
                    ) if low == high => (range, low),
                    (
                        Range {
                            base: None,
                            low,
                            high,
                        },
                        range,
                    ) if low == high => (range, low),
                    _ => return None,
                };
                if factor < 0 {
                    return None;
                }
                let base = range.base.map(|base| {
                    let factor = self.builder.index(factor);
                    self.builder.mul(base, factor)
                });
                let low = range.low.checked_mul(factor)?;
                Some(Range {
                    base,
                    low,
                    high: range.high.checked_mul(factor)?,
                })
            }
            _ => None,
        }
    }
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
