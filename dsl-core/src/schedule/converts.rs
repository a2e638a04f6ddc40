//! Brings a tile to another layout before a branch where both sides do so: what it takes is then there once, and products whose
//! sums move through shared memory are done before the branch.

use std::collections::{BTreeMap, BTreeSet};

use super::read_back::insert_before;
use crate::ir::{Func, Inst, Layout, Op, Region, Value, op};
use crate::passes::rewrite::replace_uses;

/// A tile, and the layout that it is brought to.
type Asked = (Value, Option<Layout>);

/// Moves conversions that both sides of a branch have, and no effect comes before, ahead of it.
pub(super) fn ahead_of_branches(func: &mut Func) {
    let mut same: BTreeMap<Value, Value> = BTreeMap::new();
    let mut ahead = BTreeSet::new();
    for inst in func.all_insts() {
        let &Op::If(op::If {
            on_true, on_false, ..
        }) = func.op(inst)
        else {
            continue;
        };
        let [ours, theirs] = [on_true, on_false].map(|side| conversions(func, side));
        let mut moved = Vec::new();
        for (asked, &(one, given)) in &ours {
            if let Some(&(other, equal)) = theirs.get(asked) {
                moved.push(one);
                same.insert(equal, given);
                func.region_mut(on_true).insts.retain(|&it| it != one);
                func.region_mut(on_false).insts.retain(|&it| it != other);
            }
        }
        insert_before(func, inst, moved.clone());
        ahead.extend(moved);
    }
    if ahead.is_empty() {
        return;
    }
    replace(func, &same);
    let mut repeated = Repeated {
        ahead,
        same: BTreeMap::new(),
    };
    repeated.region(func, func.body(), &BTreeMap::new());
    replace(func, &repeated.same);
    for region in func.all_regions() {
        let mut insts = std::mem::take(&mut func.region_mut(region).insts);
        insts.retain(|&inst| match func.inst(inst).results.first() {
            Some(given) => !repeated.same.contains_key(given),
            None => true,
        });
        func.region_mut(region).insts = insts;
    }
}

fn replace(func: &mut Func, same: &BTreeMap<Value, Value>) {
    replace_uses(func, &|value| same.get(&value).copied().unwrap_or(value));
}

/// Conversions behind one that was moved which bring the same tile to the same layout.
struct Repeated {
    ahead: BTreeSet<Inst>,
    /// What each gives, and what the moved one gives.
    same: BTreeMap<Value, Value>,
}

impl Repeated {
    fn region(&mut self, func: &Func, region: Region, known: &BTreeMap<Asked, Value>) {
        let mut known = known.clone();
        for &inst in &func.region(region).insts {
            let data = func.inst(inst);
            if let Op::Convert(op::Convert { x }) = data.op {
                let given = data.results[0];
                let asked = (x, func.layout(given));
                if let Some(&earlier) = known.get(&asked) {
                    self.same.insert(given, earlier);
                } else if self.ahead.contains(&inst) {
                    known.insert(asked, given);
                }
            }
            for inner in data.op.regions() {
                self.region(func, inner, &known);
            }
        }
    }
}

/// The conversions of tiles from before a branch, up to the first effect or loop, by what they convert and to which layout.
fn conversions(func: &Func, side: Region) -> BTreeMap<Asked, (Inst, Value)> {
    let mut own: BTreeSet<Value> = BTreeSet::new();
    let mut found = BTreeMap::new();
    for &inst in &func.region(side).insts {
        let data = func.inst(inst);
        if !func.is_pure(inst) || !data.op.regions().is_empty() {
            break;
        }
        if let Op::Convert(op::Convert { x }) = data.op
            && !own.contains(&x)
        {
            let given = data.results[0];
            found.insert((x, func.layout(given)), (inst, given));
        }
        own.extend(&data.results);
    }
    found
}
