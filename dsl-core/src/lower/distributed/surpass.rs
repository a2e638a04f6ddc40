//! Greatest and least elements that matter only where they pass a bound, as a row's greatest logit does where sums are
//! scaled by an earlier one: the lanes of a warp ask whether one of theirs passes it, and combine only then.

use std::collections::{BTreeMap, BTreeSet};

use super::level::{Combiner, Partial};
use super::registers::Registers;
use super::tile::Scope;
use super::{Lowering, Result};
use crate::ir::{AtomicOp, BinaryOp, Inst, Op, Region, Trait, Value, op};
use crate::layout::reduction::ReductionStep;
use crate::semantics::reduction::only_op;

/// A reduction whose result does nothing but decide between some value and one that does not follow from it.
#[derive(Clone, Debug)]
struct Question {
    reduced: Value,
    /// What follows from the result, element by element.
    follows: Vec<Inst>,
    /// The decision, which is for the latter where its condition is false.
    decision: Inst,
}

/// What a lane has combined of its own elements.
struct Held {
    partial: Partial,
    /// The steps that are left, all of them between lanes.
    steps: Vec<ReductionStep>,
    combiner: Combiner,
}

/// The reductions of a function that are questions first.
#[derive(Default)]
pub(super) struct Questions {
    /// By the reduction.
    of: BTreeMap<Inst, Question>,
    /// The reduction of everything that follows, and of the decision.
    reductions: BTreeMap<Inst, Inst>,
    held: BTreeMap<Inst, Held>,
}

impl Lowering<'_> {
    pub(super) fn find_questions(&mut self) {
        let mut users: BTreeMap<Value, BTreeSet<Inst>> = BTreeMap::new();
        for inst in self.block.all_insts() {
            for operand in self.block.op(inst).operands() {
                users.entry(operand).or_default().insert(inst);
            }
        }
        for region in self.block.all_regions() {
            for (at, &inst) in self.block.region(region).insts.iter().enumerate() {
                let Some(question) = self.question(inst, region, at + 1, &users) else {
                    continue;
                };
                let insts = question.follows.iter().chain([&question.decision]);
                let insts: Vec<Inst> = insts.copied().collect();
                let known = &mut self.questions.reductions;
                // Of two reductions that decide together the first asks, with the result of the other.
                if !insts.iter().any(|it| known.contains_key(it)) {
                    known.extend(insts.into_iter().map(|it| (it, inst)));
                    self.questions.of.insert(inst, question);
                }
            }
        }
    }

    /// What a reduction asks, by the instructions of its region that come next.
    fn question(
        &self,
        inst: Inst,
        region: Region,
        next: usize,
        users: &BTreeMap<Value, BTreeSet<Inst>>,
    ) -> Option<Question> {
        let (Op::Reduce(op), &[reduced]) =
            (self.block.op(inst), &self.block.inst(inst).results[..])
        else {
            return None;
        };
        // The result is one of the elements, or NaN where one of them is.
        let selects = matches!(
            only_op(self.block, op.combine)?,
            BinaryOp::Minimum | BinaryOp::Maximum | BinaryOp::Minnum | BinaryOp::Maxnum
        );
        let layout = self.block.layout(reduced);
        let (mut within, mut follows) = (BTreeSet::from([reduced]), Vec::new());
        let insts = &self.block.region(region).insts[next..];
        let decision = insts.iter().copied().find(|&it| {
            let (op, results) = (self.block.op(it), &self.block.inst(it).results);
            let is_of = |value: &Value| within.contains(value);
            if let Op::Select(op) = op
                && is_of(&op.condition)
                && !is_of(&op.on_false)
            {
                return true;
            }
            let plain = op.is(Trait::elementwise) && self.block.is_pure(it);
            if plain && op.operands().iter().any(is_of) {
                within.extend(results);
                follows.push(it);
            }
            false
        })?;
        let inside = |it: &Inst| follows.contains(it) || *it == decision;
        let closed = |value| users.get(value).is_none_or(|it| it.iter().all(inside));
        let made = self.block.inst(decision).results.iter().chain(&within);
        let alike = made.into_iter().all(|&it| self.block.layout(it) == layout);
        (selects && alike && within.iter().all(closed)).then_some(Question {
            reduced,
            follows,
            decision,
        })
    }

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
        let Op::Select(select) = self.block.op(question.decision) else {
            unreachable!("broken invariant: a decision is a selection");
        };
        let &[result] = &self.block.inst(question.decision).results[..] else {
            unreachable!("broken invariant: a selection has one result");
        };
        let condition = self.following(question, &held.partial, |this| {
            Ok(this.get(select.condition))
        })?;
        let each = condition.first_of_each();
        let passes = self.pick(&condition, &each);
        let (x, op) = (self.any(passes), AtomicOp::Or);
        let condition = self.builder.value(Op::WarpReduce(op::WarpReduce { x, op }));
        let kept = self.all_of(select.on_false);
        let on_true = self.builder.new_region(&[]);
        let outer = self.builder.enter(on_true);
        self.reduction_steps(&mut held.partial, &held.steps, &held.combiner)?;
        let values = self.following(question, &held.partial, |this| {
            this.elementwise(this.block.op(question.decision), result)?;
            Ok(vec![this.all_of(result)])
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
        self.unflatten(&[result], &flat);
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
