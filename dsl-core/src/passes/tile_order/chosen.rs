//! Accumulators that take a tile in some iterations and not in others.

use std::collections::{BTreeMap, BTreeSet};

use super::has_rounding;
use super::walk::{Loop, Walk};
use crate::entity::EntityMap;
use crate::ir::dataflow::Facts;
use crate::ir::{BinaryOp, DType, Func, Inst, Literal, Op, Region, UnaryOp, Value, op};

const TRUE: Literal = Literal {
    dtype: DType::Bool,
    bits: 1,
};

/// The values that are followed from a condition, or from what says that a loop ends.
const MOST_STEPS: usize = 256;

/// A branch of a function, with the region that is not taken and a value that holds then.
struct Left {
    branch: Inst,
    region: Region,
    holds: Option<Value>,
}

/// Where a function gives tiles to accumulators that round.
pub(super) struct Taking<'a> {
    func: &'a Func,
    all: Vec<Inst>,
    /// The control flow that an instruction stands in directly, and in which of its regions.
    owners: BTreeMap<Inst, (Inst, Region)>,
    definitions: EntityMap<Value, Option<Inst>>,
}

impl<'a> Taking<'a> {
    pub(super) fn new(func: &'a Func) -> Self {
        let takes = |&inst: &Inst| matches!(func.op(inst), Op::Accumulate(op) if has_rounding(func, op.combine));
        let all: Vec<Inst> = func.all_insts().into_iter().filter(takes).collect();
        let mut owners = BTreeMap::new();
        if !all.is_empty() {
            let mut control = func.all_insts();
            control.retain(|&inst| func.deciding(inst).is_some());
            for owner in control {
                for region in func.op(owner).regions() {
                    let insts = func.region(region).insts.iter();
                    owners.extend(insts.map(|&inst| (inst, (owner, region))));
                }
            }
        }
        Self {
            func,
            all,
            owners,
            definitions: func.definitions(),
        }
    }

    /// The control flow around an instruction, the innermost first, each with the region that holds it.
    fn around(&self, inst: Inst) -> impl Iterator<Item = (Inst, Region)> {
        let owner = |inst: &Inst| self.owners.get(inst).copied();
        std::iter::successors(owner(&inst), move |(of, _)| owner(of))
    }

    /// The branches of a loop around an instruction that it holds.
    fn branches(&self, of: Inst, inst: Inst) -> Option<Vec<(Inst, Region)>> {
        let mut branches = Vec::new();
        for (owner, region) in self.around(inst) {
            if owner == of {
                return Some(branches);
            }
            if matches!(self.func.op(owner), Op::If(_)) {
                branches.push((owner, region));
            }
        }
        None
    }

    /// Whether in a loop a branch gives a tile to an accumulator.
    pub(super) fn is_chosen_in(&self, of: Inst) -> bool {
        let mut branches = self.all.iter().filter_map(|&it| self.branches(of, it));
        branches.any(|branches| !branches.is_empty())
    }

    /// The accumulators of a loop that take a tile or do not by what a tile has as a whole, and go on after one that they did
    /// not take.
    pub(super) fn chosen(&self, of: &Loop<'_>, facts: &Facts<Walk>) -> Vec<Inst> {
        if !self.is_chosen_in(of.inst()) {
            return Vec::new();
        }
        let exits = self.exits(of.inst());
        let is_chosen = |(branch, region): (Inst, Region)| {
            let Op::If(op) = self.func.op(branch) else {
                return false;
            };
            if !self.follows_a_tile(op.condition, of, facts) {
                return false;
            }
            let left = self.left(branch, op, region);
            !exits.iter().any(|&exit| self.ends(exit, &left))
        };
        let mut chosen = self.all.clone();
        chosen.retain(|&inst| {
            let mut results = self.func.inst(inst).results.iter();
            let branches = self.branches(of.inst(), inst).unwrap_or_default();
            results.any(|&it| of.closes(it)) && branches.into_iter().any(is_chosen)
        });
        chosen
    }

    fn left(&self, branch: Inst, op: &op::If, taken: Region) -> Left {
        if taken == op.on_false {
            return Left {
                branch,
                region: op.on_true,
                holds: Some(op.condition),
            };
        }
        Left {
            branch,
            region: op.on_false,
            holds: self.negated(op.condition),
        }
    }

    /// What a condition is the opposite of.
    fn negated(&self, condition: Value) -> Option<Value> {
        if let Op::Unary(op) = self.func.op(self.definitions[condition]?)
            && op.op == UnaryOp::Not
        {
            return Some(op.x);
        }
        None
    }

    /// Whether a condition follows from what a tile has as a whole, by the branches that decide it too.
    fn follows_a_tile(&self, condition: Value, of: &Loop<'_>, facts: &Facts<Walk>) -> bool {
        let (mut open, mut seen) = (vec![condition], BTreeSet::new());
        while let Some(value) = open.pop() {
            if !of.is_inside(value) || seen.len() == MOST_STEPS || !seen.insert(value) {
                continue;
            }
            if facts[value].together {
                return true;
            }
            let Some(inst) = self.definitions[value] else {
                continue;
            };
            open.extend(self.func.op(inst).operands());
            if let Op::If(op) = self.func.op(inst) {
                open.extend(self.given(op, inst, value));
            }
        }
        false
    }

    /// What the regions of a branch give for a result.
    fn given(&self, op: &op::If, branch: Inst, result: Value) -> Vec<Value> {
        let regions = [op.on_true, op.on_false].into_iter();
        let given = regions.filter_map(|region| self.given_in(region, branch, result));
        given.collect()
    }

    fn given_in(&self, region: Region, branch: Inst, result: Value) -> Option<Value> {
        let mut results = self.func.inst(branch).results.iter();
        let index = results.position(|&it| it == result)?;
        self.func.yielded(region).get(index).copied()
    }

    /// What a loop hands on that ends it where it is true.
    fn exits(&self, of: Inst) -> Vec<Value> {
        let Op::While(of_while) = self.func.op(of) else {
            return Vec::new();
        };
        let carried = self.func.carried(of);
        let handed_on = |value: &Value| {
            let mut carried = carried.iter();
            let carried = carried.find(|it| it.parameters.first() == Some(value));
            carried.and_then(|it| it.yielded.last().copied())
        };
        let test = self.func.yielded(of_while.before).first().copied();
        let conditions = self.parts(test.into_iter().collect(), BinaryOp::And);
        let left = conditions.into_iter().filter_map(|it| self.negated(it));
        let left = self.parts(left.collect(), BinaryOp::Or);
        left.iter().filter_map(handed_on).collect()
    }

    /// Values, and what an op combines to them.
    fn parts(&self, mut values: Vec<Value>, by: BinaryOp) -> Vec<Value> {
        let mut next = 0;
        while let Some(&value) = values.get(next).filter(|_| next < MOST_STEPS) {
            if let Some(inst) = self.definitions[value]
                && let Op::Binary(op) = self.func.op(inst)
                && op.op == by
            {
                values.extend([op.lhs, op.rhs]);
            }
            next += 1;
        }
        values
    }

    /// Whether a value is true wherever a branch was left.
    fn ends(&self, exit: Value, left: &Left) -> bool {
        let mut open = vec![exit];
        for _ in 0..MOST_STEPS {
            let Some(value) = open.pop() else {
                return true;
            };
            if left.holds == Some(value) {
                continue;
            }
            let Some(inst) = self.definitions[value] else {
                return false;
            };
            if let Op::If(op) = self.func.op(inst) {
                let mut around = self.around(left.branch);
                let region = match inst == left.branch {
                    true => Some(left.region),
                    false => around.find(|(owner, _)| *owner == inst).map(|(_, it)| it),
                };
                match region {
                    Some(region) => open.extend(self.given_in(region, inst, value)),
                    None => open.extend(self.given(op, inst, value)),
                }
                continue;
            }
            let is_true = matches!(self.func.op(inst), Op::Constant(op) if op.value == TRUE);
            if !is_true {
                return false;
            }
        }
        false
    }
}
