//! Adds the zero that ends a product behind a loop of products, in place of once in each iteration.
//!
//! A product of floats ends with an addition of +0, so that a sum of nothing but zeros is +0 however the chain was cut. A
//! sum that the next product goes on from may be -0 as well: what a multiply-add makes of either zero is the same, or
//! again a zero.

use std::collections::BTreeMap;

use super::rewrite::replace_uses;
use crate::entity::EntityMap;
use crate::ir::numbers::filling;
use crate::ir::{BinaryOp, Func, Inst, Literal, Op, Precision, Region, TernaryOp, Value, op};

/// Moves additions of +0 out of counted loops whose sums only multiply-adds read. A loop that may not run at all starts
/// from zeros, so that the addition changes nothing then.
pub fn late_zeros(func: &mut Func) {
    let mut known = Known::of(func);
    for region in func.all_regions().into_iter().rev() {
        let insts = func.region(region).insts.clone();
        for inst in insts {
            if !matches!(func.op(inst), Op::For(_)) {
                continue;
            }
            while let Some((result, additions)) = known.find(func, inst) {
                postpone(func, (region, inst), result, &additions);
                known = Known::of(func);
            }
        }
    }
}

/// Additions of +0, with the sums that they are of.
type Additions = Vec<(Inst, Value)>;

struct Known {
    definitions: EntityMap<Value, Option<Inst>>,
    uses: EntityMap<Value, usize>,
}

impl Known {
    fn of(func: &Func) -> Self {
        let mut uses = EntityMap::filled(func.value_count(), 0);
        for inst in func.all_insts() {
            func.op(inst).visit_operands(&mut |value| uses[value] += 1);
        }
        Self {
            definitions: func.definitions(),
            uses,
        }
    }

    fn is_zero(&self, func: &Func, value: Value) -> bool {
        let literal = filling(value, |value| Some(func.op(self.definitions[value]?)));
        literal.is_some_and(|literal| literal.is_positive_zero() && literal.dtype.is_float())
    }

    /// A result of a loop whose additions of +0 may come behind it.
    fn find(&self, func: &Func, inst: Inst) -> Option<(Value, Additions)> {
        func.carried(inst).into_iter().find_map(|carried| {
            let (Some(init), &[parameter], &[yielded]) =
                (carried.init, &carried.parameters[..], &carried.yielded[..])
            else {
                return None;
            };
            let mut chain = Chain {
                func,
                known: self,
                uses: BTreeMap::new(),
                additions: Vec::new(),
            };
            let ends = self.is_zero(func, init) && chain.ends(yielded, parameter);
            let mut uses = chain.uses.iter();
            let alone = uses.all(|(&value, &uses)| self.uses[value] == uses);
            let found = ends && alone && !chain.additions.is_empty();
            found.then_some((carried.result, chain.additions))
        })
    }
}

/// What leads from a parameter of a loop to what the loop hands on.
struct Chain<'a> {
    func: &'a Func,
    known: &'a Known,
    /// The values of the chain, with how often it uses each.
    uses: BTreeMap<Value, usize>,
    additions: Additions,
}

impl Chain<'_> {
    fn used(&mut self, value: Value) -> Option<Inst> {
        *self.uses.entry(value).or_default() += 1;
        self.known.definitions[value]
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
            return self.known.is_zero(self.func, rhs) && self.follows(lhs, parameter);
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
            if let Op::Dot(dot) = self.func.op(inst)
                && dot.precision == Precision::Hopper
                && let Some(operand) = self.func.ty(dot.a).dtype()
                && dot.precision.is_chain(operand)
            {
                value = dot.accumulator;
                continue;
            }
            let is_loop = matches!(self.func.op(inst), Op::For(_));
            let mut carried = self.func.carried(inst).into_iter();
            let carried = carried.find(|carried| is_loop && carried.result == value);
            let Some(carried) = carried else {
                return false;
            };
            let (Some(init), &[inner], &[yielded]) =
                (carried.init, &carried.parameters[..], &carried.yielded[..])
            else {
                return false;
            };
            if !self.follows(yielded, inner) {
                return false;
            }
            value = init;
        }
        self.used(parameter);
        true
    }
}

/// Adds +0 to what a loop results in, in place of these additions.
fn postpone(
    func: &mut Func,
    (region, inst): (Region, Inst),
    result: Value,
    additions: &[(Inst, Value)],
) {
    let sums: BTreeMap<Value, Value> = additions
        .iter()
        .map(|&(addition, sum)| (func.inst(addition).results[0], sum))
        .collect();
    let (ty, loc) = (func.ty(result), func.inst(additions[0].0).loc.clone());
    let dtype = ty.dtype().expect("broken invariant: sums are of numbers");
    let value = Literal::from_bits(dtype, 0);
    let constant = func.add_inst(Op::Constant(op::Constant { value }), &[ty], loc.clone());
    let late = Op::Binary(op::Binary {
        op: BinaryOp::Add,
        lhs: result,
        rhs: func.inst(constant).results[0],
    });
    let late = func.add_inst(late, &[ty], loc);
    let added = func.inst(late).results[0];
    replace_uses(func, &|value| match value == result {
        true => added,
        false => sums.get(&value).copied().unwrap_or(value),
    });
    for region in func.all_regions() {
        let dropped = |inst: &Inst| additions.iter().any(|(addition, _)| addition == inst);
        func.region_mut(region).insts.retain(|inst| !dropped(inst));
    }
    let insts = &mut func.region_mut(region).insts;
    let after = insts.iter().position(|&it| it == inst);
    let after = after.map_or(insts.len(), |at| at + 1);
    insts.splice(after..after, [constant, late]);
}
