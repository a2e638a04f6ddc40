//! Which tiles walk along an axis while a loop runs: each iteration has the elements behind those of the
//! one before, so that the tile size says how many iterations there are.

use std::collections::BTreeSet;

use super::recurrences::Recurrences;
use super::rounds;
use crate::entity::EntityMap;
use crate::ir::dataflow::{Analysis, Facts};
use crate::ir::op::Elementwise;
use crate::ir::{Axis, BinaryOp, DType, Func, IndexMap, Inst, Op, Region, Value, op};
use crate::passes::indices::Indices;
use crate::passes::linear::Linear;

/// The additions that are followed from what a loop hands on to what it took.
const MOST_STEPS: usize = 64;

/// How the elements of a value differ from those an iteration before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Moves {
    /// Each is greater by this.
    By(Linear),
    /// They were read at other places, which walk or do not.
    Read,
    /// In some way.
    Freely,
}

impl Moves {
    fn still() -> Self {
        Self::By(Linear::default())
    }

    fn is_still(&self) -> bool {
        *self == Self::still()
    }
}

/// What is known of a value with regard to one loop. Sets of axes are bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Walk {
    moves: Moves,
    /// The axes along which the tile walks.
    pub(super) axes: u8,
    /// Whether it follows from what a tile has along an axis that walks, taken together.
    pub(super) together: bool,
    /// The axes along which each position holds what iterations have added up there.
    pub(super) added: u8,
}

impl Walk {
    fn still() -> Self {
        Self {
            moves: Moves::still(),
            axes: 0,
            together: false,
            added: 0,
        }
    }
}

/// One loop of a function, with what is known of the rest.
pub(super) struct Loop<'a> {
    func: &'a Func,
    inst: Inst,
    indices: &'a Indices,
    recurrences: &'a Recurrences,
    /// Extents of the grid, which deal tiles to programs.
    programs: &'a BTreeSet<Value>,
    /// What the loop computes in an iteration.
    inside: EntityMap<Value, bool>,
    /// What the loop carries, and by how much it grows in an iteration.
    carried: Vec<(Value, Moves)>,
    /// The index of a counted loop, and its step.
    index: Option<(Value, i64)>,
}

impl<'a> Loop<'a> {
    pub(super) fn new(
        (func, indices): (&'a Func, &'a Indices),
        recurrences: &'a Recurrences,
        programs: &'a BTreeSet<Value>,
        inst: Inst,
    ) -> Self {
        let mut of = Self {
            func,
            inst,
            indices,
            recurrences,
            programs,
            inside: EntityMap::filled(func.value_count(), false),
            carried: Vec::new(),
            index: None,
        };
        for region in func.op(inst).regions() {
            of.enter(region);
            func.walk(region, &mut |inst| {
                for &result in &func.inst(inst).results {
                    of.inside[result] = true;
                }
                for region in func.op(inst).regions() {
                    of.enter(region);
                }
            });
        }
        if let Op::For(op) = func.op(inst) {
            of.index = Some((func.region(op.body).parameters[0], op.step));
        }
        of.carried = of.advances(inst);
        of
    }

    fn enter(&mut self, region: Region) {
        for &parameter in &self.func.region(region).parameters {
            self.inside[parameter] = true;
        }
    }

    pub(super) fn inst(&self) -> Inst {
        self.inst
    }

    pub(super) fn is_inside(&self, value: Value) -> bool {
        self.inside[value]
    }

    /// Whether a value of the cycle is carried by this loop.
    pub(super) fn closes(&self, value: Value) -> bool {
        let mut carried = self.carried.iter();
        carried.any(|&(parameter, _)| self.recurrences.share(parameter, value))
    }

    /// By how much each carried value grows in an iteration.
    fn advances(&self, inst: Inst) -> Vec<(Value, Moves)> {
        let mut advances = Vec::new();
        for carried in self.func.carried(inst) {
            // A `while` hands on twice: from the test to the work, and back.
            let pairs = carried.parameters.iter().zip(&carried.yielded);
            let hops = match carried.parameters[..] {
                [_, _] => pairs.map(|(&to, &from)| (from, to)).collect(),
                _ => carried
                    .yielded
                    .iter()
                    .map(|&from| (from, carried.parameters[0]))
                    .collect::<Vec<_>>(),
            };
            let mut steps = hops.iter().map(|&(from, to)| self.distance(from, to));
            let sum = steps.try_fold(Linear::default(), |sum, step| sum.plus(&step?));
            let moves = sum.map_or(Moves::Freely, Moves::By);
            advances.extend(carried.parameters.iter().map(|&it| (it, moves.clone())));
        }
        advances
    }

    /// What additions of values from outside the loop lead from `to` to `from`.
    fn distance(&self, mut from: Value, to: Value) -> Option<Linear> {
        let definitions = self.func.definitions();
        let mut distance = Linear::default();
        for _ in 0..MOST_STEPS {
            if from == to {
                return Some(distance);
            }
            let Op::Binary(op::Binary { op, lhs, rhs }) = *self.func.op(definitions[from]?) else {
                return None;
            };
            let constant = |value: Value| {
                let known = self.indices.uniform(value)?;
                let outside = |&it: &Value| !self.inside[it];
                let is_constant = known
                    .terms()
                    .all(|(factors, _)| factors.iter().all(outside));
                is_constant.then_some(known)
            };
            let (next, by) = match (op, constant(lhs), constant(rhs)) {
                (BinaryOp::Add, _, Some(by)) => (lhs, by),
                (BinaryOp::Add, Some(by), None) => (rhs, by),
                (BinaryOp::Sub, _, Some(by)) => (lhs, by.scaled(-1)),
                (_, _, _) => return None,
            };
            distance = distance.plus(&by)?;
            from = next;
        }
        None
    }

    /// The axes along which integers that move so walk: an iteration begins where another one ends.
    fn walking(&self, value: Value, moves: &Moves, operands: u8) -> u8 {
        let ty = self.func.ty(value);
        if !ty.dtype().is_some_and(DType::is_integer) {
            return operands;
        }
        let fact = self.indices.fact(value);
        let axes = (0..ty.shape.rank()).filter(|&axis| !fact.axis(axis).is_still());
        match moves {
            Moves::By(by) if by.is_zero() => 0,
            Moves::By(by) => {
                let by = self.dealt(by);
                let ends = axes.filter(|&axis| {
                    let extent = ty.shape.extent(axis) as i64;
                    let step = fact.axis(axis).whole_step();
                    step.is_none_or(|step| {
                        by.as_ref()
                            .is_none_or(|by| is_multiple(by, &step.scaled(extent)))
                    })
                });
                ends.fold(0, |set, axis| set | 1 << axis)
            }
            Moves::Read => operands,
            Moves::Freely => axes.fold(operands, |set, axis| set | 1 << axis),
        }
    }

    /// A distance as if there were one program.
    fn dealt(&self, by: &Linear) -> Option<Linear> {
        by.terms()
            .try_fold(Linear::default(), |sum, (factors, times)| {
                let mut factors = factors.iter().filter(|it| !self.programs.contains(it));
                let term = factors.try_fold(Linear::known(times), |term, &factor| {
                    term.times(&Linear::symbol(factor))
                });
                sum.plus(&term?)
            })
    }
}

/// Whether a sum is some number, not zero, of another.
fn is_multiple(sum: &Linear, unit: &Linear) -> bool {
    let Some((factors, times)) = unit.terms().next() else {
        return false;
    };
    let same = sum.terms().find(|(others, _)| *others == factors);
    same.is_some_and(|(_, found)| found % times == 0 && *sum == unit.scaled(found / times))
}

impl Analysis for Loop<'_> {
    type Fact = Walk;

    fn unknown(&self, _: Value) -> Walk {
        Walk::still()
    }

    fn join(&self, _: Value, a: &Walk, b: &Walk) -> Walk {
        Walk {
            moves: either(&a.moves, &b.moves),
            axes: a.axes | b.axes,
            together: a.together | b.together,
            added: a.added | b.added,
        }
    }

    fn handed(&self, value: Value, fact: &Walk) -> Walk {
        if !self.inside[value] {
            return Walk {
                added: fact.added,
                ..Walk::still()
            };
        }
        let mut fact = fact.clone();
        if let Some((_, moves)) = self.carried.iter().find(|(it, _)| *it == value) {
            fact.axes = self.walking(value, moves, fact.axes);
            fact.moves = moves.clone();
        }
        fact
    }

    /// Sets only grow, and there are few of them.
    fn give_up(&self, _: Value, fact: Walk) -> Walk {
        fact
    }

    fn index(&self, facts: &Facts<Walk>, of: &op::For, index: Value) -> Walk {
        let moves = match self.index {
            Some((own, step)) if own == index => Moves::By(Linear::known(step)),
            Some(_) | None => facts[of.lower].moves.clone(),
        };
        Walk {
            moves,
            ..Walk::still()
        }
    }

    fn result(&self, facts: &Facts<Walk>, inst: Inst, result: Value) -> Walk {
        let mut walk = Walk {
            added: self.added(facts, inst, result),
            ..Walk::still()
        };
        if self.inside[result] {
            let moves = self.moves(facts, inst);
            let operands = self.axes(inst, result, &|value| facts[value].axes);
            walk.axes = self.walking(result, &moves, operands);
            walk.moves = moves;
            let operands = self.func.op(inst).operands();
            walk.together =
                self.takes_together(facts, inst) || operands.iter().any(|&it| facts[it].together);
        }
        walk
    }
}

fn either(a: &Moves, b: &Moves) -> Moves {
    match (a, b) {
        (a, b) if a == b => a.clone(),
        (Moves::Freely, _) | (_, Moves::Freely) | (Moves::By(_), Moves::By(_)) => Moves::Freely,
        (Moves::Read, _) | (_, Moves::Read) => Moves::Read,
    }
}

impl Loop<'_> {
    /// The axes along which each position of a result holds what iterations have added up there.
    fn added(&self, facts: &Facts<Walk>, inst: Inst, result: Value) -> u8 {
        let known = self.axes(inst, result, &|value| facts[value].added);
        if !self.inside[result] || !rounds(self.func, inst) || !self.closes(result) {
            return known;
        }
        let operands = self.func.op(inst).operands();
        let is_carried = operands
            .iter()
            .any(|&it| self.recurrences.share(it, result));
        let walking = self.axes(inst, result, &|value| facts[value].axes);
        if is_carried { known | walking } else { known }
    }

    /// The axes of a result that come from axes of operands in a set.
    fn axes(&self, inst: Inst, result: Value, of: &dyn Fn(Value) -> u8) -> u8 {
        let op = self.func.op(inst);
        if let Some((x, map)) = self.func.view(inst) {
            return viewed(&map, of(x));
        }
        if let Some((sources, axis)) = along(op) {
            let set = sources.iter().fold(0, |set, &it| set | of(it));
            let same = self.func.ty(result).shape.rank() == self.func.ty(sources[0]).shape.rank();
            return if same { set } else { without(set, axis) };
        }
        if let Op::Dot(op::Dot {
            a, b, accumulator, ..
        })
        | Op::DotPromoted(op::DotPromoted {
            a, b, accumulator, ..
        }) = *op
        {
            let column = 1 << (self.func.ty(result).shape.rank() - 1);
            return of(a) & !column | of(b) & !(column >> 1) | of(accumulator);
        }
        if let Op::Gather(op::Gather { x, indices, axis }) = *op {
            return of(indices) | of(x) & !(1 << axis.index());
        }
        if let Op::Join(op::Join { a, b }) = *op {
            return of(a) | of(b);
        }
        let is_each = op.elementwise().is_some() || matches!(op, Op::Function(_) | Op::Map(_));
        if is_each || op.access().is_some() {
            let rank = self.func.ty(result).shape.rank();
            let operands = op.operands().into_iter();
            let operands = operands.filter(|&it| self.func.ty(it).shape.rank() == rank);
            return operands.fold(0, |set, it| set | of(it));
        }
        0
    }

    /// Whether an op makes one of what a tile has along an axis that walks.
    pub(super) fn takes_together(&self, facts: &Facts<Walk>, inst: Inst) -> bool {
        takes(self.func, self.func.op(inst), &|value| facts[value].axes)
    }

    /// How the elements of results differ from those an iteration before.
    fn moves(&self, facts: &Facts<Walk>, inst: Inst) -> Moves {
        let op = self.func.op(inst);
        let operands = op.operands();
        if operands.iter().all(|&it| facts[it].moves.is_still()) {
            return Moves::still();
        }
        if let Some(x) = op.rearranged() {
            return facts[x].moves.clone();
        }
        if let Some(access) = op.access() {
            let is_scalar = self.func.ty(access.offsets).shape.rank() == 0;
            return if is_scalar {
                Moves::Freely
            } else {
                Moves::Read
            };
        }
        match op.elementwise() {
            Some(Elementwise::Binary(op)) => self.binary(facts, op).unwrap_or(Moves::Freely),
            Some(Elementwise::Cast(op)) => facts[op.x].moves.clone(),
            Some(Elementwise::Select(op)) => {
                either(&facts[op.on_true].moves, &facts[op.on_false].moves)
            }
            Some(
                Elementwise::Unary(_)
                | Elementwise::Ternary(_)
                | Elementwise::Compare(_)
                | Elementwise::Approximate(_)
                | Elementwise::InlinePtx(_)
                | Elementwise::Bitcast(_),
            )
            | None => nonlinear(operands.iter().map(|&it| &facts[it].moves)),
        }
    }

    fn binary(&self, facts: &Facts<Walk>, op: &op::Binary) -> Option<Moves> {
        let (a, b) = (&facts[op.lhs].moves, &facts[op.rhs].moves);
        let (Moves::By(left), Moves::By(right)) = (a, b) else {
            return Some(nonlinear([a, b].into_iter()));
        };
        let by = match op.op {
            BinaryOp::Add => left.plus(right)?,
            BinaryOp::Sub => left.plus(&right.scaled(-1))?,
            BinaryOp::Mul if left.is_zero() => self.indices.uniform(op.lhs)?.times(right)?,
            BinaryOp::Mul if right.is_zero() => left.times(&self.indices.uniform(op.rhs)?)?,
            BinaryOp::Mul
            | BinaryOp::Div
            | BinaryOp::Rem
            | BinaryOp::Minimum
            | BinaryOp::Maximum
            | BinaryOp::Minnum
            | BinaryOp::Maxnum
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::Shl
            | BinaryOp::Shr => return None,
        };
        Some(Moves::By(by))
    }
}

/// How what is computed of operands moves: freely where one moves with the loop itself.
fn nonlinear<'a>(operands: impl Iterator<Item = &'a Moves>) -> Moves {
    let mut moves = Moves::still();
    for operand in operands.filter(|it| !it.is_still()) {
        match operand {
            Moves::Read => moves = Moves::Read,
            Moves::By(_) | Moves::Freely => return Moves::Freely,
        }
    }
    moves
}

/// What an op combines or orders along an axis.
fn along(op: &Op) -> Option<(&[Value], Axis)> {
    if let Op::Reduce(op::Reduce { sources, axis, .. })
    | Op::Scan(op::Scan { sources, axis, .. })
    | Op::Sort(op::Sort { sources, axis, .. })
    | Op::Prefixes(op::Prefixes { sources, axis, .. }) = op
    {
        return Some((sources, *axis));
    }
    None
}

/// Whether an op makes one of what its operands have along an axis of these sets.
pub(super) fn takes(func: &Func, op: &Op, of: &dyn Fn(Value) -> u8) -> bool {
    if let Some((sources, axis)) = along(op) {
        return sources.iter().any(|&it| of(it) & 1 << axis.index() != 0);
    }
    if let Op::Dot(op::Dot { a, b, .. }) | Op::DotPromoted(op::DotPromoted { a, b, .. }) = *op {
        let products = 1 << (func.ty(a).shape.rank() - 1);
        return of(a) & products != 0 || of(b) & products >> 1 != 0;
    }
    false
}

/// A set without an axis that goes.
fn without(set: u8, axis: Axis) -> u8 {
    let below = (1 << axis.index()) - 1;
    set & below | set >> 1 & !below
}

/// The axes of a result with a bit that is one of an axis of the operand in the set.
fn viewed(map: &IndexMap, set: u8) -> u8 {
    let axes = 0..map.from_bits().len();
    let walks = axes.filter(|&axis| {
        let mut columns = map.along(axis).iter().filter(|&&column| column != 0);
        columns.any(|&column| set >> map.place(column).0 & 1 == 1)
    });
    walks.fold(0, |set, axis| set | 1 << axis)
}
