//! Greatest and least elements that matter only where they pass a bound, as a row's greatest logit does where sums are
//! scaled by an earlier one: the lanes of a warp ask whether one of theirs passes it, and combine only then.

use std::collections::{BTreeMap, BTreeSet};

use super::level::{Combiner, Partial};
use super::registers::Registers;
use super::tile::Scope;
use super::{Lowering, Result};
use crate::ir::{BinaryOp, Inst, Op, Trait, Value, op};
use crate::layout::reduction::ReductionStep;
use crate::schedule::PlacedFunc;
use crate::semantics::reduction::only_op;

/// A reduction whose result does nothing but decide between some value and one that does not follow from it.
#[derive(Clone, Debug)]
struct Question {
    reduced: Value,
    /// What follows from the result, element by element.
    follows: Vec<Inst>,
    /// The decision, which is for the latter where its condition is false.
    decision: Inst,
    select: op::Select,
    result: Value,
}

/// What a lane has combined of its own elements.
#[derive(Clone)]
struct Held {
    partial: Partial,
    /// The steps that are left, all of them between lanes.
    steps: Vec<ReductionStep>,
    combiner: Combiner,
}

/// The reductions of a function that are questions first.
#[derive(Clone, Default)]
pub(super) struct Questions {
    /// By the reduction.
    of: BTreeMap<Inst, Question>,
    /// The reduction of everything that follows, and of the decision.
    reductions: BTreeMap<Inst, Inst>,
    held: BTreeMap<Inst, Held>,
}

impl Questions {
    pub(super) fn find(block: &PlacedFunc) -> Self {
        let mut users: BTreeMap<Value, BTreeSet<Inst>> = BTreeMap::new();
        for inst in block.all_insts() {
            for operand in block.op(inst).operands() {
                users.entry(operand).or_default().insert(inst);
            }
        }
        let mut found = Self::default();
        for region in block.all_regions() {
            let insts = &block.region(region).insts;
            for (at, &inst) in insts.iter().enumerate() {
                let Some(question) = Question::of(block, inst, &insts[at + 1..], &users) else {
                    continue;
                };
                let insts = question.follows.iter().chain([&question.decision]);
                let insts: Vec<Inst> = insts.copied().collect();
                // Of two reductions that decide together the first asks, with the result of the other.
                if !insts.iter().any(|it| found.reductions.contains_key(it)) {
                    found
                        .reductions
                        .extend(insts.into_iter().map(|it| (it, inst)));
                    found.of.insert(inst, question);
                }
            }
        }
        found
    }
}

impl Question {
    /// What a reduction asks, by the instructions of its region that come next.
    fn of(
        block: &PlacedFunc,
        inst: Inst,
        next: &[Inst],
        users: &BTreeMap<Value, BTreeSet<Inst>>,
    ) -> Option<Self> {
        let (Op::Reduce(op), &[reduced]) = (block.op(inst), &block.inst(inst).results[..]) else {
            return None;
        };
        // The result is one of the elements, or NaN where one of them is.
        let selects = matches!(
            only_op(block, op.combine)?,
            BinaryOp::Minimum | BinaryOp::Maximum | BinaryOp::Minnum | BinaryOp::Maxnum
        );
        let (mut within, mut follows) = (BTreeSet::from([reduced]), Vec::new());
        let (decision, select) = next.iter().filter(|_| selects).find_map(|&it| {
            let op = block.op(it);
            let is_of = |value: &Value| within.contains(value);
            if let Op::Select(select) = op
                && is_of(&select.condition)
                && !is_of(&select.on_false)
            {
                return Some((it, select.clone()));
            }
            let plain = op.is(Trait::elementwise) && block.is_pure(it);
            if plain && op.operands().iter().any(is_of) {
                within.extend(&block.inst(it).results);
                follows.push(it);
            }
            None
        })?;
        let &[result] = &block.inst(decision).results[..] else {
            return None;
        };
        let inside = |it: &Inst| follows.contains(it) || *it == decision;
        let closed = |value| users.get(value).is_none_or(|it| it.iter().all(inside));
        let layout = block.layout(reduced);
        let mut made = [&result].into_iter().chain(&within);
        let alike = made.all(|&it| block.layout(it) == layout);
        (alike && within.iter().all(closed)).then_some(Self {
            reduced,
            follows,
            decision,
            select,
            result,
        })
    }
}

impl Lowering<'_> {
    /// Keeps what a lane has of a reduction in a loop until the decision, if it has combined elements, and only lanes are left to
    /// combine. NaN of a single element may have other bits than that of all of them.
    pub(super) fn hold(
        &mut self,
        inst: Inst,
        partial: &Partial,
        steps: &[ReductionStep],
        combiner: &Combiner,
    ) -> bool {
        let is_lane = |step| matches!(step, &ReductionStep::Lanes { divided: None, .. });
        let asks = self.loops > 0 && self.questions.of.contains_key(&inst);
        let left = steps.iter().all(is_lane) && !steps.is_empty();
        if !asks || !left || !partial.is_combined {
            return false;
        }
        let held = Held {
            partial: partial.clone(),
            steps: steps.to_vec(),
            combiner: combiner.clone(),
        };
        self.questions.held.insert(inst, held);
        true
    }

    /// Lowers what belongs to a question that is held; gives whether it did.
    pub(super) fn asked(&mut self, inst: Inst) -> Result<bool> {
        let Some(&reduction) = self.questions.reductions.get(&inst) else {
            return Ok(false);
        };
        let question = self.questions.of[&reduction].clone();
        if question.decision != inst {
            return Ok(self.questions.held.contains_key(&reduction));
        }
        let Some(held) = self.questions.held.remove(&reduction) else {
            return Ok(false);
        };
        self.decide(&question, held)?;
        Ok(true)
    }

    /// The decision: where no lane of the warp passes, no row does.
    fn decide(&mut self, question: &Question, mut held: Held) -> Result<()> {
        let Question { select, result, .. } = question;
        let condition = self.following(question, &held.partial, |this| {
            Ok(this.get(select.condition))
        })?;
        let each = condition.first_of_each();
        let passes = self.pick(&condition, &each);
        let condition = self.vote(passes);
        let kept = self.all_of(select.on_false);
        let on_true = self.builder.new_region(&[]);
        let outer = self.builder.enter(on_true);
        self.reduction_steps(&mut held.partial, &held.steps, &held.combiner)?;
        let values = self.following(question, &held.partial, |this| {
            this.elementwise(this.block.op(question.decision), *result)?;
            Ok(vec![this.all_of(*result)])
        })?;
        self.builder.emit(Op::Yield(op::Yield { values }), &[]);
        self.builder.enter(outer);
        let on_false = self.builder.region_with(&[], |_, _| vec![kept]);
        let inst = self.builder.emit(
            Op::If(op::If {
                condition,
                on_true,
                on_false,
            }),
            &[],
        );
        let flat = self.builder.results(inst).to_vec();
        self.unflatten(&[*result], &flat);
        Ok(())
    }

    /// What is made of everything that follows from these results of a reduction.
    fn following<T>(
        &mut self,
        question: &Question,
        partial: &Partial,
        made: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.scopes.push(Scope::default());
        let places: Vec<u32> = (0..1 << partial.bits.len()).collect();
        self.bind(question.reduced, Registers::new(partial.values[0], places));
        for &inst in &question.follows {
            self.elementwise(self.block.op(inst), self.block.inst(inst).results[0])?;
        }
        let made = made(self);
        self.scopes.pop();
        made
    }
}
