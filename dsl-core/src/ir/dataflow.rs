//! What holds of each value, whatever runs: facts that flow through instructions, branches and loops.
//!
//! Source: Kildall, A unified approach to global program optimization, POPL 1973.

use super::{Func, Inst, Op, Region, Value, op};
use crate::entity::EntityMap;

/// How often a fact may weaken before it is given up.
const MOST_CHANGES: u8 = 8;

/// What is known of each value.
pub type Facts<F> = EntityMap<Value, F>;

/// What an analysis knows, and what an instruction makes of it.
///
/// Facts only weaken while loops are gone through: a hook must not make a stronger one of weaker ones.
pub trait Analysis {
    /// What is known of a value.
    type Fact: Clone + PartialEq;

    /// What holds of any value of this type.
    fn unknown(&self, value: Value) -> Self::Fact;

    /// What holds where either of two facts of `value` does.
    fn join(&self, value: Value, a: &Self::Fact, b: &Self::Fact) -> Self::Fact;

    /// What is known of `value`, which control flow or a combiner hands a value of this fact.
    fn handed(&self, value: Value, fact: &Self::Fact) -> Self::Fact {
        let _ = value;
        fact.clone()
    }

    /// What is left of a fact that has weakened often, and of those that follow, which must come to an end.
    fn give_up(&self, value: Value, fact: Self::Fact) -> Self::Fact {
        let _ = fact;
        self.unknown(value)
    }

    /// What is known of an argument of the function.
    fn argument(&self, position: usize, value: Value) -> Self::Fact {
        let _ = position;
        self.unknown(value)
    }

    /// What is known of a result of an instruction that is not control flow.
    fn result(&self, facts: &Facts<Self::Fact>, inst: Inst, result: Value) -> Self::Fact;

    /// What is known of the index of a counted loop.
    fn index(&self, facts: &Facts<Self::Fact>, of: &op::For, index: Value) -> Self::Fact {
        let _ = (facts, of);
        self.unknown(index)
    }

    /// What is known of the elements that a region combines or maps. What it combines to comes back to it.
    fn combined(&self, facts: &Facts<Self::Fact>, inst: Inst, parameter: Value) -> Self::Fact {
        let _ = (facts, inst);
        self.unknown(parameter)
    }

    /// What all that control flow hands on is joined with, because `by` decides what runs.
    fn decided(&self, facts: &Facts<Self::Fact>, by: Value) -> Option<Self::Fact> {
        let _ = (facts, by);
        None
    }
}

/// The strongest facts that hold of each value, found by going through loops until none weakens.
///
/// A fact that weakens without end is given up; what no path reaches is unknown.
pub fn solve<A: Analysis>(func: &Func, analysis: &A) -> Facts<A::Fact> {
    let mut facts = EntityMap::new();
    for value in func.values() {
        facts.push(analysis.unknown(value));
    }
    for (position, &value) in func.arguments().iter().enumerate() {
        facts[value] = analysis.argument(position, value);
    }
    let mut solver = Solver {
        func,
        analysis,
        facts,
        changes: EntityMap::filled(func.value_count(), 0),
        reached: EntityMap::filled(func.value_count(), false),
    };
    for &value in func.arguments() {
        solver.reached[value] = true;
    }
    solver.region(func.body());
    solver.facts
}

struct Solver<'a, A: Analysis> {
    func: &'a Func,
    analysis: &'a A,
    facts: Facts<A::Fact>,
    changes: EntityMap<Value, u8>,
    reached: EntityMap<Value, bool>,
}

impl<A: Analysis> Solver<'_, A> {
    fn region(&mut self, region: Region) {
        for &inst in &self.func.region(region).insts {
            self.inst(inst);
        }
    }

    fn inst(&mut self, inst: Inst) {
        let func = self.func;
        let controls = func.op(inst).control().is_some();
        let regions = func.op(inst).regions();
        if controls || !regions.is_empty() {
            self.enter(inst, controls);
        }
        loop {
            let mut changed = false;
            for &region in &regions {
                self.region(region);
                changed |= self.enter(inst, controls);
            }
            if !changed {
                break;
            }
        }
        if !controls {
            for &result in &func.inst(inst).results {
                self.facts[result] = self.analysis.result(&self.facts, inst, result);
                self.reached[result] = true;
            }
        }
    }

    /// Hands on what flows into the regions of an instruction and, of control flow, out of them. Whether
    /// what a region takes has changed.
    fn enter(&mut self, inst: Inst, controls: bool) -> bool {
        if controls {
            self.enter_control(inst)
        } else {
            self.enter_combiners(inst)
        }
    }

    fn enter_combiners(&mut self, inst: Inst) -> bool {
        let func = self.func;
        let mut changed = false;
        let comes_back = !matches!(func.op(inst), Op::Map(_));
        for region in func.op(inst).regions() {
            let yielded = func.yielded(region);
            for (position, &parameter) in func.region(region).parameters.iter().enumerate() {
                let fact = self.analysis.combined(&self.facts, inst, parameter);
                changed |= self.weaken(parameter, &fact);
                let again = yielded.iter().cycle().nth(position);
                if let Some(&again) = again.filter(|&&again| comes_back && self.reached[again]) {
                    let fact = self.facts[again].clone();
                    changed |= self.weaken(parameter, &fact);
                }
            }
        }
        changed
    }

    fn enter_control(&mut self, inst: Inst) -> bool {
        let func = self.func;
        let deciding = func.deciding(inst).unwrap_or_default().into_iter();
        let decided: Vec<A::Fact> = deciding
            .filter(|&by| self.reached[by])
            .filter_map(|by| self.analysis.decided(&self.facts, by))
            .collect();
        let mut changed = false;
        if let Op::For(of) = func.op(inst) {
            let index = func.region(of.body).parameters[0];
            let fact = self.analysis.index(&self.facts, of, index);
            changed |= self.weaken(index, &fact);
        }
        for carried in func.carried(inst) {
            for (value, sources) in carried.flows() {
                let sources = sources.into_iter().filter(|&source| self.reached[source]);
                let sources: Vec<A::Fact> = sources.map(|it| self.facts[it].clone()).collect();
                // Nothing decides for a value that nothing has reached.
                let decided = decided.iter().filter(|_| !sources.is_empty());
                for fact in sources.iter().chain(decided) {
                    changed |= self.weaken(value, fact) && value != carried.result;
                }
            }
        }
        changed
    }

    /// Joins what is known of a value with what else flows into it. Whether that has changed it.
    fn weaken(&mut self, value: Value, fact: &A::Fact) -> bool {
        let fact = self.analysis.handed(value, fact);
        if !self.reached[value] {
            self.reached[value] = true;
            self.facts[value] = fact;
            return true;
        }
        let known = &self.facts[value];
        let mut joined = self.analysis.join(value, known, &fact);
        if joined != *known && self.changes[value] == MOST_CHANGES {
            joined = self.analysis.give_up(value, joined);
        }
        if joined == *known {
            return false;
        }
        self.changes[value] = (self.changes[value] + 1).min(MOST_CHANGES);
        self.facts[value] = joined;
        true
    }
}
