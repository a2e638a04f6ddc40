//! Which stores write no element of memory twice, and what scalars decide where the code does not.
//!
//! Offsets that are linear in the index are distinct if steps, from the shortest on, are longer than all
//! shorter ones reach together. Steps and masks of many kernels are scalars, as the strides of rows are.
//! What they must be like is a [`Conditions`], which a launch evaluates: code may then rely on it.

use std::collections::{BTreeMap, BTreeSet};

use super::indices::{Indices, are_apart};
use super::linear::Linear;
use super::ranges::Range;
use crate::entity::EntityMap;
use crate::ir::{BinaryOp, CompareOp, DType, Func, Inst, MAX_RANK, Op, Region, Value, op};
use crate::launch::{Launch, LaunchExpression};

/// What a launch knows of the integers among its arguments where a condition holds: then offsets of
/// ordinary kernels do not wrap.
const SMALL: Range = Range {
    low: -(1 << 40),
    high: 1 << 40,
};

/// What is known of the elements of a store.
#[derive(Clone, Debug)]
pub enum Apart {
    /// No two of them have one offset.
    Always,
    /// The same where the condition holds.
    Where(Condition),
}

/// A condition on the arguments of a launch.
#[derive(Clone, Debug)]
pub struct Condition {
    /// Each of these numbers is greater than what is with it wherever the store runs.
    runs: Vec<(LaunchExpression, i128)>,
    axes: Vec<Axis>,
}

/// An axis along which offsets step.
#[derive(Clone, Debug)]
struct Axis {
    /// A sum of constants times products, modulo 2^64.
    step: Vec<(Vec<LaunchExpression>, i64)>,
    /// How many steps there are between the ends of the tile.
    last: i128,
    /// There are fewer steps than each of these, plus a constant, between elements that are stored.
    below: Vec<(LaunchExpression, i128)>,
}

impl Axis {
    /// The length of a step and how many there are at most; negative where nothing is stored.
    fn length_and_count(&self, launch: &Launch<'_>) -> Option<(i128, i128)> {
        let mut step = 0_i64;
        for (factors, times) in &self.step {
            let mut product = *times;
            for factor in factors {
                product = product.wrapping_mul(factor.evaluate(launch)? as i64);
            }
            step = step.wrapping_add(product);
        }
        let mut count = self.last;
        for (bound, more) in &self.below {
            count = count.min(bound.evaluate(launch)? - 1 + more);
        }
        Some((i128::from(step).abs(), count))
    }
}

impl Condition {
    fn holds(&self, launch: &Launch<'_>) -> Option<bool> {
        for (number, least) in &self.runs {
            if number.evaluate(launch)? <= *least {
                return Some(true);
            }
        }
        let mut axes = [(0, 0); MAX_RANK];
        let axes = &mut axes[..self.axes.len()];
        for (found, axis) in axes.iter_mut().zip(&self.axes) {
            *found = axis.length_and_count(launch)?;
        }
        Some(are_apart(axes))
    }
}

/// What the arguments of a launch must be like for the stores of a function to write no element twice.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    /// The arguments that are 64-bit integers.
    integers: Vec<usize>,
    conditions: Vec<Condition>,
}

impl Conditions {
    /// Those of a block function as it is lowered.
    #[must_use]
    pub fn of(func: &Func) -> Self {
        let stores = stores(func).into_values();
        let conditions = stores.filter_map(|apart| match apart {
            Apart::Always => None,
            Apart::Where(condition) => Some(condition),
        });
        let dtype = |value: Value| func.ty(value).dtype();
        let wide =
            |value| dtype(value).is_some_and(|dtype| dtype.is_integer() && dtype.bits() == 64);
        let arguments = func.arguments().iter().enumerate();
        Self {
            integers: arguments
                .filter(|&(_, &value)| wide(value))
                .map(|(index, _)| index)
                .collect(),
            conditions: conditions.collect(),
        }
    }

    /// Whether they hold for a launch.
    #[must_use]
    pub fn hold(&self, launch: &Launch<'_>) -> bool {
        let is_small = |&index: &usize| {
            let number = launch.integer(index);
            number.is_some_and(|number| (SMALL.low..=SMALL.high).contains(&number))
        };
        self.conditions.is_empty()
            || self.integers.iter().all(is_small)
                && self
                    .conditions
                    .iter()
                    .all(|condition| condition.holds(launch) == Some(true))
    }
}

/// What is known of each store of a block function; nothing of those that may meet on any launch.
#[must_use]
pub fn stores(func: &Func) -> BTreeMap<Inst, Apart> {
    let mut analysis = Analysis {
        func,
        definitions: func.definitions(),
        indices: Indices::of(func),
        small: Indices::given(func, Some(SMALL)),
        runs: Vec::new(),
        found: BTreeMap::new(),
    };
    analysis.region(func.body());
    analysis.found
}

struct Analysis<'a> {
    func: &'a Func,
    definitions: EntityMap<Value, Option<Inst>>,
    indices: Indices,
    /// What holds on launches whose arguments are [`SMALL`].
    small: Indices,
    /// What the branches around the current instruction say.
    runs: Vec<(LaunchExpression, i128)>,
    found: BTreeMap<Inst, Apart>,
}

/// `smaller < larger`, or `smaller <= larger` where they may be equal.
struct Ordered {
    smaller: Value,
    larger: Value,
    may_equal: bool,
    /// The axis of the mask that each axis of the comparison is.
    axes: Vec<usize>,
}

impl Analysis<'_> {
    fn region(&mut self, region: Region) {
        let func = self.func;
        for &inst in &func.region(region).insts {
            let op = func.op(inst);
            if let Op::Store(op::Store { offsets, mask, .. }) = op
                && let Some(apart) = self.store(*offsets, *mask)
            {
                self.found.insert(inst, apart);
            }
            let outside = self.runs.len();
            if let Op::If(op::If { condition, .. }) = op {
                let taken = self.comparisons(*condition);
                let runs = taken.iter().filter_map(|ordered| self.least(ordered));
                let mut runs: Vec<_> = runs.collect();
                self.runs.append(&mut runs);
            }
            for inner in op.regions() {
                self.region(inner);
                // Of a branch the first region alone runs where the condition holds.
                self.runs.truncate(outside);
            }
        }
    }

    /// The number that a comparison of scalars shows to be greater than a constant.
    fn least(&self, ordered: &Ordered) -> Option<(LaunchExpression, i128)> {
        let least = self.small.range(ordered.smaller)?.low - i128::from(ordered.may_equal);
        let number = self.expression(ordered.larger)?;
        (least >= 0).then_some((number, least))
    }

    fn expression(&self, value: Value) -> Option<LaunchExpression> {
        LaunchExpression::of(self.func, &self.definitions, value)
    }

    fn store(&self, offsets: Value, mask: Option<Value>) -> Option<Apart> {
        let shape = self.func.ty(offsets).shape;
        let steps = self.indices.fact(offsets).steps()?;
        let mut below = vec![Vec::new(); shape.rank()];
        if let Some(mask) = mask {
            self.bounds(mask, &mut below);
        }
        let stepping =
            (0..shape.rank()).filter(|&axis| shape.extent(axis) > 1 && !steps[axis].is_zero());
        let axes: Vec<(usize, i128)> = stepping
            .map(|axis| (axis, shape.extent(axis) as i128 - 1))
            .collect();
        let known: Option<Vec<(i128, i128)>> = axes
            .iter()
            .map(|&(axis, last)| Some((i128::from(steps[axis].constant()?).abs(), last)))
            .collect();
        if known.is_some_and(|mut known| are_apart(&mut known)) {
            return Some(Apart::Always);
        }
        let decided = |axis: usize| steps[axis].constant().is_none() || !below[axis].is_empty();
        if self.runs.is_empty() && !axes.iter().any(|&(axis, _)| decided(axis)) {
            return None;
        }
        let axis = |(axis, last): (usize, i128)| {
            Some(Axis {
                step: self.length(steps[axis])?,
                last,
                below: std::mem::take(&mut below[axis]),
            })
        };
        Some(Apart::Where(Condition {
            runs: self.runs.clone(),
            axes: axes.into_iter().map(axis).collect::<Option<_>>()?,
        }))
    }

    fn length(&self, step: &Linear) -> Option<Vec<(Vec<LaunchExpression>, i64)>> {
        let product = |(factors, times): (&[Value], i64)| {
            let factors = factors.iter().map(|&factor| self.expression(factor));
            Some((factors.collect::<Option<_>>()?, times))
        };
        step.terms().map(product).collect()
    }

    /// Adds what a mask says about how many steps there are along each axis: indices that are stored
    /// are not negative and below a scalar.
    fn bounds(&self, mask: Value, below: &mut [Vec<(LaunchExpression, i128)>]) {
        let comparisons = self.comparisons(mask);
        let zero = |value: Value| self.indices.fact(value).number() == Some(0);
        // Of one index, along the same axes of the mask.
        let natural: BTreeSet<(Value, &[usize])> = comparisons
            .iter()
            .filter(|ordered| ordered.may_equal && zero(ordered.smaller))
            .map(|ordered| (ordered.larger, &ordered.axes[..]))
            .collect();
        for ordered in &comparisons {
            let index = ordered.smaller;
            let low = self.small.range(index).map(|range| range.low);
            let is_natural = natural.contains(&(index, &ordered.axes[..]));
            if !is_natural && low.is_none_or(|low| low < 0) {
                continue;
            }
            let Some(steps) = self.indices.fact(index).steps() else {
                continue;
            };
            let mut moving = (0..steps.len()).filter(|&axis| !steps[axis].is_zero());
            let (Some(axis), None) = (moving.next(), moving.next()) else {
                continue;
            };
            let bound = self.indices.fact(ordered.larger);
            let counts = steps[axis].constant() == Some(1) && bound.is_uniform();
            if let Some(bound) = self.expression(ordered.larger).filter(|_| counts) {
                below[ordered.axes[axis]].push((bound, i128::from(ordered.may_equal)));
            }
        }
    }

    /// The comparisons of 64-bit indices that all hold where a mask or a condition does.
    fn comparisons(&self, mask: Value) -> Vec<Ordered> {
        let axes = (0..self.func.ty(mask).shape.rank()).collect();
        let mut pending: Vec<(Value, Vec<usize>)> = vec![(mask, axes)];
        let mut found = Vec::new();
        while let Some((value, axes)) = pending.pop() {
            let definition = self.definitions[value];
            if let Some((x, map)) = definition.and_then(|inst| self.func.view(inst)) {
                // An axis of extent 1 is whichever.
                let axis = |before: Option<usize>| before.map_or(0, |axis| axes[axis]);
                let before = map.axes().into_iter();
                pending.extend(before.map(|it| (x, it.into_iter().map(axis).collect())));
                continue;
            }
            match definition.map(|inst| self.func.op(inst)) {
                Some(Op::Binary(op::Binary {
                    op: BinaryOp::And,
                    lhs,
                    rhs,
                })) => {
                    pending.extend([(*lhs, axes.clone()), (*rhs, axes)]);
                }
                Some(Op::Compare(op::Compare { op, lhs, rhs }))
                    if self.func.ty(*lhs).dtype() == Some(DType::I64) =>
                {
                    let (smaller, larger, may_equal) = match op {
                        CompareOp::Lt => (*lhs, *rhs, false),
                        CompareOp::Le => (*lhs, *rhs, true),
                        CompareOp::Gt => (*rhs, *lhs, false),
                        CompareOp::Ge => (*rhs, *lhs, true),
                        CompareOp::Eq | CompareOp::Ne => continue,
                    };
                    found.push(Ordered {
                        smaller,
                        larger,
                        may_equal,
                        axes,
                    });
                }
                _ => {}
            }
        }
        found
    }
}
