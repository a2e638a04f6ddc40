//! Which numbers the sides of a comparison hold, as scalars that a program computes.

use std::collections::BTreeMap;

use crate::builder::Builder;
use crate::entity::Entity;
use crate::ir::{BinaryOp, CompareOp, DType, Func, Inst, Op, Type, Value, op};

/// The instruction that defines each value, also of those that splitting makes.
#[derive(Default)]
pub(super) struct Definitions {
    insts: Vec<Option<Inst>>,
    known: usize,
}

impl Definitions {
    /// Adds the instructions that were made since.
    pub(super) fn learn(&mut self, func: &Func) {
        self.insts.resize(func.value_count(), None);
        for inst in (self.known..func.inst_count()).map(Inst::new) {
            for result in &func.inst(inst).results {
                self.insts[result.index()] = Some(inst);
            }
        }
        self.known = func.inst_count();
    }

    pub(super) fn op<'a>(&self, func: &'a Func, value: Value) -> Option<&'a Op> {
        let inst = self.insts.get(value.index()).copied().flatten()?;
        Some(func.op(inst))
    }
}

/// A set of integers: `base + r` for `r` in `low..=high`, wrapping.
#[derive(Clone, Copy)]
pub(super) struct Range {
    base: Option<Value>,
    low: i64,
    high: i64,
}

impl Range {
    fn exactly(number: i64) -> Self {
        Self {
            base: None,
            low: number,
            high: number,
        }
    }

    /// The one number that it is.
    fn known(self) -> Option<i64> {
        (self.base.is_none() && self.low == self.high).then_some(self.low)
    }
}

/// The most values outside a region that its comparisons are followed through.
const OUTSIDE: usize = 256;

pub(super) struct Ranges<'a> {
    pub(super) builder: &'a mut Builder,
    pub(super) definitions: &'a Definitions,
    /// What was found in this region, or that there is no range.
    pub(super) known: &'a mut BTreeMap<Value, Option<Range>>,
    /// The number of values of the region that comparisons may follow from.
    pub(super) inside: usize,
}

impl Ranges<'_> {
    /// A scalar that is true only if the comparison holds for every element.
    pub(super) fn comparison(&mut self, value: Value) -> Option<Value> {
        let &Op::Compare(op::Compare { op, lhs, rhs }) =
            self.definitions.op(self.builder.func(), value)?
        else {
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

    /// The range of a value; those of its operands are found before, the left one first.
    fn range(&mut self, value: Value) -> Option<Range> {
        let mut pending = vec![value];
        while let Some(&next) = pending.last() {
            let operand = self.next_operand(next);
            if let (Some(operand), true) = (operand, self.known.len() < self.inside + OUTSIDE) {
                pending.push(operand);
                continue;
            }
            if !self.known.contains_key(&next) {
                let range = match operand {
                    Some(_) => None,
                    None => self.new_range(next),
                };
                self.known.insert(next, range);
            }
            pending.pop();
        }
        self.known.get(&value).copied().flatten()
    }

    /// An operand whose range is needed and not known.
    fn next_operand(&self, value: Value) -> Option<Value> {
        if self.known.contains_key(&value) || self.builder.ty(value) == Type::INDEX {
            return None;
        }
        let op = self.definitions.op(self.builder.func(), value)?;
        if let Some(x) = op.rearranged() {
            return Some(x).filter(|x| !self.known.contains_key(x));
        }
        let Op::Binary(op::Binary { lhs, rhs, .. }) = op else {
            return None;
        };
        match self.known.get(lhs) {
            None => Some(*lhs),
            Some(None) => None,
            Some(Some(_)) => Some(*rhs).filter(|rhs| !self.known.contains_key(rhs)),
        }
    }

    fn new_range(&mut self, value: Value) -> Option<Range> {
        let of = |ranges: &Self, value: Value| ranges.known.get(&value).copied().flatten();
        if self.builder.ty(value) == Type::INDEX {
            let constant = self.constant(value).map(Range::exactly);
            return Some(constant.unwrap_or(Range {
                base: Some(value),
                low: 0,
                high: 0,
            }));
        }
        let op = self.definitions.op(self.builder.func(), value)?.clone();
        if let Some(x) = op.rearranged() {
            return of(self, x);
        }
        if let Op::Binary(op::Binary { op, lhs, rhs }) = op {
            let (left, right) = (of(self, lhs)?, of(self, rhs)?);
            return self.combine(op, left, right);
        }
        if let Op::Arange(op::Arange { start, end }) = op {
            return Some(Range {
                base: None,
                low: start,
                high: end - 1,
            });
        }
        self.constant(value).map(Range::exactly)
    }

    fn constant(&self, value: Value) -> Option<i64> {
        match self.definitions.op(self.builder.func(), value) {
            Some(Op::Constant(op::Constant { value })) => i64::try_from(value.integer()?).ok(),
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
                let (range, factor) = match (left.known(), right.known()) {
                    (_, Some(factor)) => (left, factor),
                    (Some(factor), None) => (right, factor),
                    (None, None) => return None,
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
            BinaryOp::Sub | BinaryOp::Div | BinaryOp::Rem | BinaryOp::Shl | BinaryOp::Shr => None,
            BinaryOp::Minimum | BinaryOp::Maximum | BinaryOp::Minnum | BinaryOp::Maxnum => None,
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => None,
        }
    }
}
