//! The one walk that rewriting passes share: program order, operands first, owners after what they
//! own.

use crate::builder::Builder;
use crate::entity::{Entity, EntityMap};
use crate::ir::numbers::filling;
use crate::ir::{Func, Inst, Literal, Op, Region, Stage, Value};

/// What a rewriting rule sees: a builder that appends before the instruction at hand.
pub struct Rewriter {
    /// Appends to the region of the instruction at hand, before it.
    pub builder: Builder,
    /// Values that are not in it are new.
    definitions: EntityMap<Value, Option<Inst>>,
    substitutions: EntityMap<Value, Option<Value>>,
}

impl Rewriter {
    /// The op that defines `value`; parameters have none.
    pub fn definition(&self, value: Value) -> Option<&Op> {
        self.definition_inst(value)
            .map(|inst| self.builder.func().op(inst))
    }

    /// The instruction that defines `value`; parameters have none.
    pub fn definition_inst(&self, value: Value) -> Option<Inst> {
        self.definitions.get(value).copied().flatten()
    }

    /// The literal that fills `value`, if it is a constant.
    pub fn constant(&self, value: Value) -> Option<Literal> {
        filling(value, |value| self.definition(value))
    }

    fn record(&mut self, inst: Inst) {
        for &result in &self.builder.func().inst(inst).results {
            put(&mut self.definitions, result, inst);
        }
    }

    fn region(&mut self, region: Region, rule: &mut Rule<'_>) {
        let insts = std::mem::take(&mut self.builder.func_mut().region_mut(region).insts);
        let outer = self.builder.enter(region);
        for inst in insts {
            let op = &mut self.builder.func_mut().inst_mut(inst).op;
            op.map_operands(&mut |value| substitute(&self.substitutions, value));
            for nested in op.regions() {
                self.region(nested, rule);
            }
            let loc = self.builder.func().inst(inst).loc.clone();
            self.builder.set_loc(loc);
            let before = self.builder.func().region(region).insts.len();
            let replacement = rule(self, inst);
            let added = self.builder.func().region(region).insts[before..].to_vec();
            for inst in added {
                self.record(inst);
            }
            match replacement {
                Some(values) => self.replace(inst, &values),
                None => {
                    self.builder.func_mut().region_mut(region).insts.push(inst);
                    self.record(inst);
                }
            }
        }
        self.builder.enter(outer);
    }

    fn replace(&mut self, inst: Inst, values: &[Value]) {
        let results = &self.builder.func().inst(inst).results;
        for (&result, &value) in results.iter().zip(values) {
            let value = substitute(&self.substitutions, value);
            put(&mut self.substitutions, result, value);
        }
    }
}

fn substitute(substitutions: &EntityMap<Value, Option<Value>>, value: Value) -> Value {
    substitutions.get(value).copied().flatten().unwrap_or(value)
}

/// Notes something of a value, which may be new.
fn put<T: Copy>(of: &mut EntityMap<Value, Option<T>>, value: Value, what: T) {
    while of.len() <= value.index() {
        of.push(None);
    }
    of[value] = Some(what);
}

/// A rule: `Some(values)` replaces the results of the instruction and drops it, `None` keeps it.
pub type Rule<'a> = dyn FnMut(&mut Rewriter, Inst) -> Option<Vec<Value>> + 'a;

/// Applies `rule` once to each instruction of `func`.
pub fn rewrite(func: &mut Func, rule: &mut Rule<'_>) {
    let body = func.body();
    let owned = std::mem::replace(func, Func::new("", Stage::Block));
    let mut rewriter = Rewriter {
        definitions: EntityMap::filled(owned.value_count(), None),
        substitutions: EntityMap::filled(owned.value_count(), None),
        builder: Builder::resume(owned),
    };
    rewriter.region(body, rule);
    *func = rewriter
        .builder
        .finish()
        .expect("broken invariant: rules replace values by values of the same type");
}

/// Replaces every use of a value in what the body reaches.
pub fn replace_uses(func: &mut Func, map: &dyn Fn(Value) -> Value) {
    for inst in func.all_insts() {
        func.inst_mut(inst).op.map_operands(&mut |value| map(value));
    }
}
