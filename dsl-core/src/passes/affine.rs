//! Offsets as linear functions of the element's index: what a step along each axis adds to them.
//!
//! Machine integers wrap, and so do these functions: 64-bit ones are true modulo 2^64. Narrower arithmetic
//! counts only where ranges show that it does not wrap.

use std::cell::Cell;
use std::collections::BTreeMap;

use super::int_range::{Range, ranges};
use super::long_sums::LONGEST_CHAIN;
use crate::entity::EntityMap;
use crate::ir::{BinaryOp, Func, Inst, Op, Value, op};

/// The most products that a step adds up, and the most factors of one.
const MOST_TERMS: usize = 8;

/// What one step along an axis adds to an offset: a sum of constants times products of values that are
/// the same for the whole tile, by their factors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step(BTreeMap<Vec<Value>, i64>);

/// Steps along every axis.
pub type Steps = Vec<Step>;

impl Step {
    fn term(factors: Vec<Value>, times: i64) -> Self {
        Self(
            BTreeMap::from([(factors, times)])
                .into_iter()
                .filter(|(_, times)| *times != 0)
                .collect(),
        )
    }

    fn known(step: i64) -> Self {
        Self::term(Vec::new(), step)
    }

    /// The products, each with its factors.
    pub fn terms(&self) -> impl Iterator<Item = (&[Value], i64)> {
        self.0.iter().map(|(factors, &times)| (&factors[..], times))
    }

    /// Whether nothing is added.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    /// The number that it is, if that is known.
    #[must_use]
    pub fn constant(&self) -> Option<i64> {
        if self.is_zero() {
            return Some(0);
        }
        self.single()?.0.is_empty().then(|| self.0[&[][..]])
    }

    /// The value that it is a multiple of, and the factor.
    #[must_use]
    pub fn multiple(&self) -> Option<(Value, i64)> {
        match self.single()? {
            (&[value], times) => Some((value, times)),
            (_, _) => None,
        }
    }

    fn single(&self) -> Option<(&[Value], i64)> {
        let mut terms = self.terms();
        terms.next().filter(|_| self.0.len() == 1)
    }

    fn plus(&self, other: &Self) -> Option<Self> {
        let mut sum = self.0.clone();
        for (factors, times) in &other.0 {
            let entry = sum.entry(factors.clone()).or_default();
            *entry = entry.checked_add(*times)?;
        }
        sum.retain(|_, times| *times != 0);
        (sum.len() <= MOST_TERMS).then_some(Self(sum))
    }

    fn times(&self, factor: &Self) -> Option<Self> {
        let mut product = Self::default();
        for (left, by) in self.terms() {
            for (right, times) in factor.terms() {
                let mut factors = [left, right].concat();
                factors.sort_unstable();
                let term = Self::term(factors, by.checked_mul(times)?);
                product = product.plus(&term)?;
            }
        }
        let short = product
            .terms()
            .all(|(factors, _)| factors.len() <= MOST_TERMS);
        short.then_some(product)
    }
}

/// Finds the steps of offsets.
pub struct Affine<'a> {
    func: &'a Func,
    definitions: EntityMap<Value, Option<Inst>>,
    ranges: EntityMap<Value, Option<Range>>,
    /// For each value that a counted loop carries, the first and the next one.
    loops: BTreeMap<Value, (Value, Value)>,
    /// How many values lie between the offsets and the one that is looked at.
    depth: Cell<i64>,
}

impl<'a> Affine<'a> {
    /// Looks at a block function.
    #[must_use]
    pub fn new(func: &'a Func) -> Self {
        Self {
            func,
            definitions: func.definitions(),
            ranges: ranges(func),
            loops: carried_values(func),
            depth: Cell::new(0),
        }
    }

    /// What a step along each axis adds to the offsets, if that is the same everywhere.
    #[must_use]
    pub fn steps_of(&self, offsets: Value) -> Option<Steps> {
        self.steps_from(offsets, &mut BTreeMap::new())
    }

    /// The steps of one value; those on the way to it are kept as well, true as far as what was
    /// `assumed` is. One failure is that of the whole, so that none outlives a wrong assumption.
    fn steps_from(&self, value: Value, assumed: &mut BTreeMap<Value, Steps>) -> Option<Steps> {
        if self.func.ty(value).shape.is_scalar() {
            return Some(Vec::new());
        }
        if let Some(steps) = assumed.get(&value) {
            return Some(steps.clone());
        }
        if self.depth.get() >= i64::from(LONGEST_CHAIN) {
            return None;
        }
        self.depth.update(|depth| depth + 1);
        let steps = match self.definitions[value] {
            Some(inst) => self.steps_by(inst, value, assumed),
            None => self.carried_steps(value, assumed),
        };
        self.depth.update(|depth| depth - 1);
        let steps = steps?;
        assumed.insert(value, steps.clone());
        Some(steps)
    }

    fn steps_by(
        &self,
        inst: Inst,
        value: Value,
        assumed: &mut BTreeMap<Value, Steps>,
    ) -> Option<Steps> {
        let shape = self.func.ty(value).shape;
        let op = self.func.op(inst);
        if let Some((x, map)) = self.func.view(inst) {
            let steps = self.steps_from(x, assumed)?;
            let times = |step: &Step, by| step.times(&Step::known(by));
            return map.steps(&steps, &Step::default(), times);
        }
        if let Op::Binary(op) = op
            && self.is_exact(value)
        {
            return self.combined(op, assumed);
        }
        if let Op::Cast(op::Cast { x }) = op
            && self.keeps_numbers(*x, value)
        {
            return self.steps_from(*x, assumed);
        }
        if let Op::For(_) = op {
            let mut carried = self.func.carried(inst).into_iter();
            let carried = carried.find(|carried| carried.result == value)?;
            return self.steps_from(carried.parameters[0], assumed);
        }
        if let Op::Arange(_) = op {
            return Some(vec![Step::known(1)]);
        }
        matches!(op, Op::Constant(_) | Op::Splat(_)).then(|| vec![Step::default(); shape.rank()])
    }

    fn combined(&self, op: &op::Binary, assumed: &mut BTreeMap<Value, Steps>) -> Option<Steps> {
        let left = self.steps_from(op.lhs, assumed)?;
        let right = self.steps_from(op.rhs, assumed)?;
        let mut pairs = left.iter().zip(&right);
        if op.op == BinaryOp::Add {
            pairs.map(|(a, b)| a.plus(b)).collect()
        } else if op.op == BinaryOp::Sub {
            let minus = Step::known(-1);
            pairs.map(|(a, b)| a.plus(&b.times(&minus)?)).collect()
        } else if op.op == BinaryOp::Mul && right.iter().all(Step::is_zero) {
            let factor = self.uniform(op.rhs);
            left.iter().map(|step| step.times(&factor)).collect()
        } else if op.op == BinaryOp::Mul && left.iter().all(Step::is_zero) {
            let factor = self.uniform(op.lhs);
            right.iter().map(|step| step.times(&factor)).collect()
        } else {
            let still = pairs.all(|(a, b)| a.is_zero() && b.is_zero());
            still.then_some(left)
        }
    }

    /// A scalar, or the element of a tile of equal numbers, as a sum of products.
    #[must_use]
    pub fn uniform(&self, mut value: Value) -> Step {
        let mut constant = None;
        while let Some(op) = self.definitions[value].map(|inst| self.func.op(inst)) {
            if let Op::Constant(op::Constant { value }) = op {
                constant = value.integer();
            }
            let Some(x) = op.rearranged() else { break };
            value = x;
        }
        match constant.and_then(|number| i64::try_from(number).ok()) {
            Some(number) => Step::known(number),
            None => Step::term(vec![value], 1),
        }
    }

    /// Whether a sum, a difference or a product is the number that mathematics gives, or at least that
    /// modulo 2^64.
    fn is_exact(&self, value: Value) -> bool {
        let Some(dtype) = self.func.ty(value).dtype() else {
            return false;
        };
        let whole = Range::of(dtype);
        dtype.is_integer() && (dtype.bits() == 64 || self.ranges[value] != whole)
    }

    /// Whether a conversion keeps the numbers of a tile, at least modulo 2^64.
    fn keeps_numbers(&self, from: Value, to: Value) -> bool {
        let [Some(source), Some(target)] = [from, to].map(|value| self.func.ty(value).dtype())
        else {
            return false;
        };
        if !source.is_integer() || !target.is_integer() {
            return false;
        }
        let fits = || self.ranges[from].zip(Range::of(target));
        target.bits() == 64 || fits().is_some_and(|(range, whole)| range.is_within(whole))
    }

    /// A value that a counted loop carries keeps its steps if every iteration keeps them.
    fn carried_steps(&self, value: Value, assumed: &mut BTreeMap<Value, Steps>) -> Option<Steps> {
        let (init, next) = self.loops.get(&value).copied()?;
        let steps = self.steps_from(init, assumed)?;
        assumed.insert(value, steps.clone());
        let kept = self.steps_from(next, assumed)? == steps;
        if !kept {
            assumed.remove(&value);
        }
        kept.then_some(steps)
    }
}

/// For each value that a counted loop carries, its first value and the one that an iteration gives.
fn carried_values(func: &Func) -> BTreeMap<Value, (Value, Value)> {
    let loops = func.all_insts().into_iter();
    let loops = loops.filter(|&inst| matches!(func.op(inst), Op::For(_)));
    let carried = loops.flat_map(|inst| func.carried(inst));
    carried
        .filter_map(|it| Some((it.parameters[0], (it.init?, it.yielded[0]))))
        .collect()
}
