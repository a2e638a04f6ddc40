//! Offsets as linear functions of the element's index: tells whether the elements of a store have
//! distinct offsets.

use std::collections::BTreeMap;

use super::Lowering;
use crate::ir::{BinaryOp, Op, Region, Shape, Value};

/// What one step along an axis adds to an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// This number.
    Known(i64),
    /// A scalar of the program times a constant, as a stride is.
    Scalar(Value, i64),
    /// Another number that is not known before the launch.
    Unknown,
}

impl Step {
    fn is_zero(self) -> bool {
        self == Step::Known(0)
    }

    fn plus(self, other: Step) -> Option<Step> {
        match (self, other) {
            (Step::Known(a), Step::Known(b)) => a.checked_add(b).map(Step::Known),
            (Step::Known(0), step) | (step, Step::Known(0)) => Some(step),
            (Step::Scalar(a, times), Step::Scalar(b, more)) if a == b => {
                times.checked_add(more).map(|times| match times {
                    0 => Step::Known(0),
                    times => Step::Scalar(a, times),
                })
            }
            _ => None,
        }
    }

    fn times(self, factor: Step) -> Option<Step> {
        match (self, factor) {
            (Step::Known(a), Step::Known(b)) => a.checked_mul(b).map(Step::Known),
            (Step::Known(0), _) | (_, Step::Known(0)) => Some(Step::Known(0)),
            (Step::Known(a), Step::Scalar(scalar, b))
            | (Step::Scalar(scalar, b), Step::Known(a)) => {
                a.checked_mul(b).map(|times| Step::Scalar(scalar, times))
            }
            _ => Some(Step::Unknown),
        }
    }
}

/// Steps along every axis.
type Steps = Vec<Step>;

impl Lowering<'_> {
    /// What a step along each axis adds to the offsets, if that is the same everywhere.
    pub(super) fn steps_of(&self, offsets: Value) -> Option<Steps> {
        self.steps_from(offsets, &mut BTreeMap::new())
    }

    fn steps_from(&self, value: Value, assumed: &mut BTreeMap<Value, Steps>) -> Option<Steps> {
        let shape = self.block.ty(value).shape;
        if shape.is_scalar() {
            return Some(Vec::new());
        }
        if let Some(steps) = assumed.get(&value) {
            return Some(steps.clone());
        }
        let Some(inst) = self.definitions[value] else {
            return self.carried_steps(value, assumed);
        };
        match self.block.op(inst) {
            Op::Constant { .. } | Op::Splat { .. } => Some(vec![Step::Known(0); shape.rank()]),
            Op::Arange { .. } => Some(vec![Step::Known(1)]),
            Op::Cast { x } => self.steps_from(*x, assumed),
            Op::Binary { op, lhs, rhs } => {
                let (a, b) = (
                    self.steps_from(*lhs, assumed)?,
                    self.steps_from(*rhs, assumed)?,
                );
                let pairs = a.iter().zip(&b);
                match op {
                    BinaryOp::Add => pairs.map(|(a, b)| a.plus(*b)).collect(),
                    BinaryOp::Sub => pairs
                        .map(|(a, b)| a.plus(b.times(Step::Known(-1))?))
                        .collect(),
                    BinaryOp::Mul if b.iter().all(|step| step.is_zero()) => {
                        let factor = self.factor(*rhs);
                        a.iter().map(|step| step.times(factor)).collect()
                    }
                    BinaryOp::Mul if a.iter().all(|step| step.is_zero()) => {
                        let factor = self.factor(*lhs);
                        b.iter().map(|step| step.times(factor)).collect()
                    }
                    _ => None,
                }
            }
            Op::Broadcast { x } => {
                let from = self.block.ty(*x).shape;
                let steps = self.steps_from(*x, assumed)?;
                let kept = |(axis, step): (usize, Step)| {
                    if from.extent(axis) == 1 {
                        Step::Known(0)
                    } else {
                        step
                    }
                };
                Some(steps.into_iter().enumerate().map(kept).collect())
            }
            Op::ExpandDims { x, axis } => {
                let mut steps = self.steps_from(*x, assumed)?;
                steps.insert(axis.index(), Step::Known(0));
                Some(steps)
            }
            Op::Transpose { x, permutation } => {
                let steps = self.steps_from(*x, assumed)?;
                Some(
                    permutation
                        .iter()
                        .map(|&axis| steps[axis as usize])
                        .collect(),
                )
            }
            Op::Reshape { x } => {
                let steps = self.steps_from(*x, assumed)?;
                reshaped(&self.block.ty(*x).shape, &steps, &shape)
            }
            Op::For { body, .. } => {
                let position = self
                    .block
                    .inst(inst)
                    .results
                    .iter()
                    .position(|&r| r == value)?;
                let parameter = self.block.region(*body).parameters[position + 1];
                self.steps_from(parameter, assumed)
            }
            _ => None,
        }
    }

    /// The factor that a tile of equal numbers is.
    fn factor(&self, value: Value) -> Step {
        let other = match self.block.ty(value).is_scalar() {
            true => Step::Scalar(value, 1),
            false => Step::Unknown,
        };
        let op = self.definitions[value].map(|inst| self.block.op(inst));
        match op {
            Some(Op::Constant { value }) => value
                .integer()
                .and_then(|value| i64::try_from(value).ok())
                .map_or(other, Step::Known),
            Some(Op::Splat { x } | Op::Broadcast { x } | Op::ExpandDims { x, .. }) => {
                self.factor(*x)
            }
            _ => other,
        }
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
pub(super) fn carried_values(func: &crate::ir::Func) -> BTreeMap<Value, (Value, Value)> {
    let mut carried = BTreeMap::new();
    let mut add = |init: &[Value], body: Region| {
        let parameters = &func.region(body).parameters[1..];
        let pairs = init.iter().zip(func.yielded(body));
        for (&parameter, (&init, &next)) in parameters.iter().zip(pairs) {
            carried.insert(parameter, (init, next));
        }
    };
    for inst in func.all_insts() {
        if let Op::For { init, body, .. } = func.op(inst) {
            add(init, *body);
        }
    }
    carried
}

/// The steps of a tile in another shape, where that has any: extents of one come and go, and an axis
/// is split.
fn reshaped(from: &Shape, steps: &[Step], to: &Shape) -> Option<Steps> {
    let mut old = (0..from.rank()).rev().filter(|&axis| from.extent(axis) > 1);
    let mut result = vec![Step::Known(0); to.rank()];
    let mut current: Option<(usize, Step)> = None;
    for axis in (0..to.rank()).rev().filter(|&axis| to.extent(axis) > 1) {
        let (left, step) = match current.take() {
            Some(rest) => rest,
            None => {
                let axis = old.next()?;
                (from.extent(axis), steps[axis])
            }
        };
        let extent = to.extent(axis);
        if extent > left {
            return None;
        }
        result[axis] = step;
        if extent < left {
            current = Some((left / extent, step.times(Step::Known(extent as i64))?));
        }
    }
    Some(result)
}

/// Whether steps lead every index of the other axes to an offset of its own. Scalars and unknown steps
/// are taken to be large enough, as the strides of rows that do not overlap are; multiples of one scalar
/// are tested among themselves, as known steps are.
pub(super) fn are_distinct(shape: &Shape, steps: &[Step]) -> bool {
    let mut units: BTreeMap<Option<Value>, Vec<(i128, i128)>> = BTreeMap::new();
    for (axis, step) in steps.iter().enumerate() {
        let extent = shape.extent(axis) as i128;
        let (unit, times) = match *step {
            Step::Known(0) | Step::Unknown => continue,
            Step::Known(times) => (None, times),
            Step::Scalar(scalar, times) => (Some(scalar), times),
        };
        if extent > 1 {
            let times = i128::from(times).abs();
            units.entry(unit).or_default().push((times, extent));
        }
    }
    units.into_values().all(|mut steps| {
        steps.sort_unstable();
        let mut reach = 0;
        steps.into_iter().all(|(step, extent)| {
            let apart = step > reach;
            reach += step * (extent - 1);
            apart
        })
    })
}
