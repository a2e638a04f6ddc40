//! Common subexpressions: a pure instruction that repeats a visible one is replaced by it.

use std::collections::HashMap;

use super::rewrite::replace_uses;
use crate::entity::EntityMap;
use crate::ir::{Func, Op, Region, Trait, Type, Value};

/// Merges equal pure instructions without regions.
pub fn cse(func: &mut Func) {
    let mut merger = Merger {
        scopes: Vec::new(),
        substitutions: EntityMap::filled(func.value_count(), None),
    };
    merger.region(func, func.body());
    replace_uses(func, &|value| merger.resolve(value));
}

struct Merger {
    scopes: Vec<HashMap<(Op, Vec<Type>), Vec<Value>>>,
    substitutions: EntityMap<Value, Option<Value>>,
}

impl Merger {
    fn resolve(&self, value: Value) -> Value {
        self.substitutions[value].unwrap_or(value)
    }

    fn region(&mut self, func: &mut Func, region: Region) {
        self.scopes.push(HashMap::new());
        let insts = std::mem::take(&mut func.region_mut(region).insts);
        let mut kept = Vec::with_capacity(insts.len());
        for inst in insts {
            let mut op = func.op(inst).clone();
            op.map_operands(&mut |value| self.resolve(value));
            func.inst_mut(inst).op = op.clone();
            let regions = op.regions();
            for &nested in &regions {
                self.region(func, nested);
            }
            if !regions.is_empty() || !op.is(Trait::pure) {
                kept.push(inst);
                continue;
            }
            let results = func.inst(inst).results.clone();
            let types = results.iter().map(|&value| func.ty(value)).collect();
            let key = (op, types);
            if let Some(known) = self.scopes.iter().rev().find_map(|scope| scope.get(&key)) {
                for (&result, &value) in results.iter().zip(known) {
                    self.substitutions[result] = Some(value);
                }
                continue;
            }
            if let Some(scope) = self.scopes.last_mut() {
                scope.insert(key, results);
            }
            kept.push(inst);
        }
        func.region_mut(region).insts = kept;
        self.scopes.pop();
    }
}
