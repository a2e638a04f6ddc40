//! Drops loop-carried values that no iteration changes: tracing carries every variable in sight.

use super::dce::retain_carried;
use super::rewrite::replace_uses;
use crate::entity::EntityMap;
use crate::ir::{Func, Inst, Op, Value, op};

/// Replaces a carried value that each iteration hands on unchanged by its initial value.
pub fn drop_unchanged(func: &mut Func) {
    let mut substitutions: EntityMap<Value, Option<Value>> =
        EntityMap::filled(func.value_count(), None);
    for inst in func.all_insts() {
        let Some(unchanged) = unchanged(func, inst) else {
            continue;
        };
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

fn unchanged(func: &Func, inst: Inst) -> Option<Vec<Option<Replaced>>> {
    let data = func.inst(inst);
    match &data.op {
        Op::For(op::For { init, body, .. }) => {
            let parameters = &func.region(*body).parameters[1..];
            let yielded = func.yielded(*body);
            let each = init.iter().enumerate().map(|(index, &by)| {
                let same = yielded[index] == parameters[index] || yielded[index] == by;
                same.then(|| Replaced {
                    values: vec![data.results[index], parameters[index]],
                    by,
                })
            });
            Some(each.collect())
        }
        Op::While(op::While { init, before, body }) => {
            let outer = &func.region(*before).parameters;
            let inner = &func.region(*body).parameters;
            let tested = &func.yielded(*before)[1..];
            let next = func.yielded(*body);
            let each = init.iter().enumerate().map(|(index, &by)| {
                let own = [outer[index], inner[index], by];
                let same = (tested[index] == outer[index] || tested[index] == by)
                    && own.contains(&next[index]);
                let values = vec![data.results[index], outer[index], inner[index]];
                same.then_some(Replaced { values, by })
            });
            Some(each.collect())
        }
        Op::If(op::If {
            on_true, on_false, ..
        }) => {
            let pairs = func.yielded(*on_true).iter().zip(func.yielded(*on_false));
            let each = pairs.zip(&data.results).map(|((&a, &b), &result)| {
                (a == b).then(|| Replaced {
                    values: vec![result],
                    by: a,
                })
            });
            Some(each.collect())
        }
        _ => None,
    }
}
