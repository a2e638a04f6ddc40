//! Drops loop-carried values that no iteration changes: tracing carries every variable in sight.

use super::dce::retain_carried;
use super::rewrite::replace_uses;
use crate::entity::EntityMap;
use crate::ir::{Carried, Func, Value};

/// Replaces a carried value that each iteration hands on unchanged by its initial value.
pub fn drop_unchanged(func: &mut Func) {
    let mut substitutions: EntityMap<Value, Option<Value>> =
        EntityMap::filled(func.value_count(), None);
    for inst in func.all_insts() {
        let unchanged: Vec<Option<Replaced>> =
            func.carried(inst).into_iter().map(unchanged).collect();
        let keep: Vec<bool> = unchanged.iter().map(Option::is_none).collect();
        if keep.iter().all(|&keep| keep) {
            continue;
        }
        for replaced in unchanged.into_iter().flatten() {
            // What comes from further out or before has been replaced already.
            let by = substitutions[replaced.by].unwrap_or(replaced.by);
            for value in replaced.values {
                substitutions[value] = Some(by);
            }
        }
        retain_carried(func, inst, &keep);
    }
    replace_uses(func, &|value| substitutions[value].unwrap_or(value));
}

struct Replaced {
    values: Vec<Value>,
    by: Value,
}

/// A result of which no region makes anything new.
fn unchanged(carried: Carried) -> Option<Replaced> {
    let by = carried.init.or(carried.yielded.first().copied())?;
    let mut values = carried.parameters;
    let mut yielded = carried.yielded.iter();
    let same = yielded.all(|next| *next == by || values.contains(next));
    values.push(carried.result);
    same.then_some(Replaced { values, by })
}
