//! Common subexpressions: a pure instruction that repeats a visible one is replaced by it.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use super::rewrite::replace_uses;
use crate::entity::EntityMap;
use crate::ir::{Func, Inst, Region, Trait, Value};

/// Merges equal pure instructions without regions.
pub fn cse(func: &mut Func) {
    let mut merger = Merger {
        hashes: RandomState::new(),
        visible: HashMap::new(),
        substitutions: EntityMap::filled(func.value_count(), None),
    };
    merger.region(func, func.body());
    replace_uses(func, &|value| merger.resolve(value));
}

struct Merger {
    hashes: RandomState,
    /// Pure instructions of the regions around, innermost last, by the hashes of their ops.
    visible: HashMap<u64, Vec<Inst>>,
    substitutions: EntityMap<Value, Option<Value>>,
}

impl Merger {
    fn resolve(&self, value: Value) -> Value {
        self.substitutions[value].unwrap_or(value)
    }

    fn region(&mut self, func: &mut Func, region: Region) {
        let mut here = Vec::new();
        let insts = std::mem::take(&mut func.region_mut(region).insts);
        let mut kept = Vec::with_capacity(insts.len());
        for inst in insts {
            let op = &mut func.inst_mut(inst).op;
            op.map_operands(&mut |value| self.resolve(value));
            let regions = op.regions();
            for &nested in &regions {
                self.region(func, nested);
            }
            if !regions.is_empty() || !func.op(inst).is(Trait::pure) {
                kept.push(inst);
                continue;
            }
            let mut hasher = self.hashes.build_hasher();
            func.op(inst).hash(&mut hasher);
            let equal = self.visible.entry(hasher.finish()).or_default();
            if let Some(&known) = equal.iter().rev().find(|&&it| are_equal(func, inst, it)) {
                let results = &func.inst(inst).results;
                for (&result, &value) in results.iter().zip(&func.inst(known).results) {
                    self.substitutions[result] = Some(value);
                }
                continue;
            }
            equal.push(inst);
            here.push(hasher.finish());
            kept.push(inst);
        }
        func.region_mut(region).insts = kept;
        for hash in here {
            self.visible.entry(hash).or_default().pop();
        }
    }
}

/// Whether two instructions do the same and make values of the same types.
fn are_equal(func: &Func, a: Inst, b: Inst) -> bool {
    let (a, b) = (func.inst(a), func.inst(b));
    let types = |a: &Value, b: &Value| func.ty(*a) == func.ty(*b);
    a.op == b.op && a.results.iter().zip(&b.results).all(|(a, b)| types(a, b))
}
