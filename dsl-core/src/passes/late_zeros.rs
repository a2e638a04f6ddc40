//! Adds the zero that ends a product behind a loop of products, in place of once in each iteration.
//!
//! A product of floats ends with an addition of +0, so that a sum of nothing but zeros is +0 however the chain was cut. A
//! sum that the next product goes on from may be -0 as well: what a multiply-add makes of either zero is the same, or
//! again a zero.

use std::collections::BTreeMap;

use super::rewrite::replace_uses;
use crate::entity::EntityMap;
use crate::ir::numbers::filling;
use crate::ir::{BinaryOp, Func, Inst, Op, Region, TernaryOp, Value, op};

/// Moves additions of +0 out of counted loops whose sums only multiply-adds read. A loop that may not run at all starts
/// from zeros, so that the addition changes nothing then.
pub fn late_zeros(func: &mut Func) {
    for region in func.all_regions().into_iter().rev() {
        let insts = func.region(region).insts.clone();
        for inst in insts {
            if matches!(func.op(inst), Op::For(_)) {
                while let Some(found) = find(func, inst) {
                    postpone(func, region, inst, found);
                }
            }
        }
    }
}

/// A sum that a loop carries.
struct Found {
    result: Value,
    /// The additions of +0, with the sums that they are of.
    additions: Vec<(Inst, Value)>,
    zero: Inst,
}

fn find(func: &Func, inst: Inst) -> Option<Found> {
    let definitions = func.definitions();
    let is_zero = |value: Value| {
        let literal = filling(value, |value| Some(func.op(definitions[value]?)));
        literal.is_some_and(|literal| literal.is_positive_zero() && literal.dtype.is_float())
    };
    let mut all_uses = BTreeMap::new();
    for inst in func.all_insts() {
        func.op(inst)
            .visit_operands(&mut |value| *all_uses.entry(value).or_insert(0_usize) += 1);
    }
    func.carried(inst).into_iter().find_map(|carried| {
        let (Some(init), [parameter], [yielded]) = (
            carried.init,
            carried.parameters.as_slice(),
            carried.yielded.as_slice(),
        ) else {
            return None;
        };
        let mut chain = Chain {
            func,
            definitions: &definitions,
            is_zero: &is_zero,
            uses: BTreeMap::new(),
            additions: Vec::new(),
        };
        let ends = is_zero(init) && chain.ends(*yielded, *parameter);
        let alone = |(value, uses): (&Value, &usize)| all_uses.get(value) == Some(uses);
        let zero = chain.additions.first().filter(|_| ends)?.0;
        chain.uses.iter().all(alone).then_some(Found {
            result: carried.result,
            zero,
            additions: chain.additions,
        })
    })
}

/// What leads from a parameter of a loop to what the loop hands on.
struct Chain<'a> {
    func: &'a Func,
    definitions: &'a EntityMap<Value, Option<Inst>>,
    is_zero: &'a dyn Fn(Value) -> bool,
    /// The values of the chain, with how often it uses each.
    uses: BTreeMap<Value, usize>,
    additions: Vec<(Inst, Value)>,
}

impl Chain<'_> {
    fn used(&mut self, value: Value) -> Option<Inst> {
        *self.uses.entry(value).or_default() += 1;
        self.definitions[value]
    }

    /// Whether a value is a chain from the parameter with an addition of +0 in the end, or the parameter, on each way
    /// through branches.
    fn ends(&mut self, value: Value, parameter: Value) -> bool {
        if value == parameter {
            self.used(value);
            return true;
        }
        let Some(inst) = self.used(value) else {
            return false;
        };
        if let &Op::Binary(op::Binary {
            op: BinaryOp::Add,
            lhs,
            rhs,
        }) = self.func.op(inst)
        {
            self.additions.push((inst, lhs));
            return (self.is_zero)(rhs) && self.follows(lhs, parameter);
        }
        let is_branch = matches!(self.func.op(inst), Op::If(_));
        let mut carried = self.func.carried(inst).into_iter();
        let carried = carried.find(|carried| is_branch && carried.result == value);
        let yielded = carried.map(|carried| carried.yielded);
        yielded.is_some_and(|yielded| yielded.into_iter().all(|it| self.ends(it, parameter)))
    }

    /// Whether a value is a chain of multiply-adds from the parameter, loops of them included.
    fn follows(&mut self, value: Value, parameter: Value) -> bool {
        let mut value = value;
        while value != parameter {
            let Some(inst) = self.used(value) else {
                return false;
            };
            if let &Op::Ternary(op::Ternary {
                op: TernaryOp::Fma,
                c,
                ..
            }) = self.func.op(inst)
            {
                value = c;
                continue;
            }
            let is_loop = matches!(self.func.op(inst), Op::For(_));
            let mut carried = self.func.carried(inst).into_iter();
            let carried = carried.find(|carried| is_loop && carried.result == value);
            let Some(carried) = carried else {
                return false;
            };
            let (Some(init), [inner], [yielded]) = (
                carried.init,
                carried.parameters.as_slice(),
                carried.yielded.as_slice(),
            ) else {
                return false;
            };
            if !self.follows(*yielded, *inner) {
                return false;
            }
            value = init;
        }
        self.used(parameter);
        true
    }
}

fn postpone(func: &mut Func, region: Region, inst: Inst, found: Found) {
    let Found {
        result,
        additions,
        zero,
    } = found;
    let sums: BTreeMap<Value, Value> = additions
        .iter()
        .map(|&(addition, sum)| (func.inst(addition).results[0], sum))
        .collect();
    let Op::Binary(op::Binary { rhs, .. }) = *func.op(zero) else {
        return;
    };
    let definitions = func.definitions();
    let literal = filling(rhs, |value| Some(func.op(definitions[value]?)));
    let (ty, loc) = (func.ty(result), func.inst(zero).loc.clone());
    let value = literal.expect("broken invariant: what is added is a constant");
    let constant = func.add_inst(Op::Constant(op::Constant { value }), &[ty], loc.clone());
    let rhs = func.inst(constant).results[0];
    let late = Op::Binary(op::Binary {
        op: BinaryOp::Add,
        lhs: result,
        rhs,
    });
    let late = func.add_inst(late, &[ty], loc);
    let added = func.inst(late).results[0];
    replace_uses(func, &|value| match value == result {
        true => added,
        false => sums.get(&value).copied().unwrap_or(value),
    });
    let dropped: Vec<Inst> = additions
        .into_iter()
        .map(|(addition, _)| addition)
        .collect();
    for region in func.all_regions() {
        func.region_mut(region)
            .insts
            .retain(|inst| !dropped.contains(inst));
    }
    let insts = &mut func.region_mut(region).insts;
    let after = insts.iter().position(|&it| it == inst);
    let after = after.map_or(insts.len(), |at| at + 1);
    insts.splice(after..after, [constant, late]);
}
