//! Loads of few numbers beside products whose operands come by bulk copies. They are too small for copies of their own: an
//! iteration loads those of the next one, once its products are under way.

use std::collections::BTreeSet;

use super::super::MayEnd;
use super::{Now, Pipeliner, before_end};
use crate::ir::{
    Cache, CompareOp, DType, Effect, Func, Inst, Literal, Op, Region, Trait, Value, op,
};
use crate::passes::rewrite::replace_uses;

/// Bytes that a lane loads at once.
const SMALL: u32 = 16;

/// The most loads that an iteration has from the one before: sums need the registers.
const MOST: usize = 4;

/// Whether boxes are copied in a body.
pub(super) fn has_boxes(func: &Func, body: Region) -> bool {
    let mut found = false;
    func.walk(body, &mut |inst| {
        found |= matches!(func.op(inst), Op::CopyBox(_));
    });
    found
}

/// Whether a lane holds no more of what an instruction gives than it loads at once.
pub(super) fn is_small(func: &Func, inst: Inst) -> bool {
    func.inst(inst).results.iter().all(|&result| {
        let dtype = func.ty(result).dtype();
        let registers = func
            .layout(result)
            .map_or(1, |it| func.linear(it).registers());
        dtype.is_some_and(|dtype| registers * dtype.bytes() <= SMALL)
    })
}

/// Loads of the first iteration and of the next one.
#[derive(Default)]
pub(super) struct Begun {
    /// What stands before the loop, with the values that come of it.
    pub(super) before: (Vec<Inst>, Vec<Value>),
    /// The same in an iteration, for the next one.
    pub(super) next: (Vec<Inst>, Vec<Value>),
    /// What an iteration begins with.
    pub(super) head: Vec<Inst>,
}

impl Pipeliner {
    /// Moves small loads of a body that has boxes: an iteration has them from the one before, or begins with those that follow
    /// from what the loop carries. Loads that may not come before the rest of the body stay.
    pub(super) fn loads_ahead(&mut self, op: &op::For, may_end: MayEnd<'_>) -> Begun {
        if !self.copies_boxes() {
            return Begun::default();
        }
        let found = Body::new(self.func(), self.body, (&self.ahead.loads, may_end)).found();
        let body = &mut self.builder.func_mut().region_mut(self.body).insts;
        let (head, rest) = body.iter().partition(|inst| found.own.contains(inst));
        *body = rest;
        if found.loads.is_empty() {
            return Begun {
                head,
                ..Begun::default()
            };
        }
        let (before, (begun, end)) = self.apart(|this| {
            let runs = this.builder.compare(CompareOp::Lt, op.lower, op.upper);
            let begun = this.loaded(&found, op.lower, runs);
            (begun, before_end(&mut this.builder, op.upper, op.step))
        });
        let index = self.func().region(self.body).parameters[0];
        let next = self.apart(|this| {
            let runs = this.builder.compare(CompareOp::Lt, index, end);
            let next = this.later(index, op.step);
            this.loaded(&found, next, runs)
        });
        let mut own = Now::new();
        for result in found.results(self.func()) {
            let (ty, layout) = (self.func().ty(result), self.func().layout(result));
            own.insert(result, self.carry(ty, layout));
        }
        let func = self.builder.func_mut();
        replace_uses(func, &|value| own.get(&value).copied().unwrap_or(value));
        let body = &mut func.region_mut(self.body).insts;
        body.retain(|inst| !found.loads.contains(inst));
        Begun {
            before: (before, begun),
            next,
            head,
        }
    }

    /// What is loaded in the iteration of an index, if it `runs`.
    fn loaded(&mut self, found: &Found, index: Value, runs: Value) -> Vec<Value> {
        let results = found.results(self.func());
        let parameter = self.func().region(self.body).parameters[0];
        let on_true = self.filled(|this| {
            let mut now = Now::from([(parameter, index)]);
            found.slice.iter().for_each(|&it| this.again(it, &mut now));
            results.iter().map(|result| now[result]).collect()
        });
        let on_false = self.filled(|this| {
            let zero = |&result: &Value| {
                let (ty, layout) = (this.func().ty(result), this.func().layout(result));
                let dtype = ty.dtype().unwrap_or(DType::I64);
                let value = Literal::from_bits(dtype, 0);
                let zero = this
                    .builder
                    .declared(Op::Constant(op::Constant { value }), ty);
                this.builder.func_mut().set_layout(zero, layout);
                zero
            };
            results.iter().map(zero).collect()
        });
        let inst = self.builder.emit(
            Op::If(op::If {
                condition: runs,
                on_true,
                on_false,
            }),
            &[],
        );
        let values = self.builder.results(inst).to_vec();
        let func = self.builder.func_mut();
        for (&value, &result) in values.iter().zip(&results) {
            func.set_layout(value, func.layout(result));
        }
        values
    }
}

/// Loads that an iteration may have from the one before.
struct Found {
    loads: Vec<Inst>,
    /// These and what they follow from, in order.
    slice: Vec<Inst>,
    /// Other small loads and what these follow from, which an iteration can have no sooner than at its head.
    own: BTreeSet<Inst>,
}

/// What a load follows from.
struct Slice {
    insts: BTreeSet<Inst>,
    takes_carried: bool,
}

impl Found {
    fn results(&self, func: &Func) -> Vec<Value> {
        let loads = self.loads.iter();
        loads
            .flat_map(|&it| func.inst(it).results.clone())
            .collect()
    }
}

struct Body<'a> {
    func: &'a Func,
    insts: &'a [Inst],
    /// What it has from the iteration before.
    carried: &'a [Value],
    /// What may be written in an iteration.
    written: BTreeSet<Value>,
    ordered: bool,
    /// Loads that run ahead.
    ahead: &'a BTreeSet<Inst>,
    may_end: MayEnd<'a>,
}

impl<'a> Body<'a> {
    fn new(
        func: &'a Func,
        region: Region,
        (ahead, may_end): (&'a BTreeSet<Inst>, MayEnd<'a>),
    ) -> Self {
        let mut body = Self {
            func,
            insts: &func.region(region).insts,
            carried: &func.region(region).parameters[1..],
            written: BTreeSet::new(),
            ordered: false,
            ahead,
            may_end,
        };
        func.walk(region, &mut |inst| {
            let op = func.op(inst);
            body.ordered |= op.memory_order().is_some();
            let access = op.access().filter(|it| it.effect != Effect::Reads);
            body.written.extend(access.map(|access| access.base));
        });
        body
    }

    /// The small loads, and what they follow from.
    fn found(&self) -> Found {
        let (mut loads, mut slice, mut own) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        for &inst in self.insts {
            let is_load = !self.func.is_pure(inst) && is_small(self.func, inst);
            let Some(found) = self.slice(inst).filter(|_| is_load && self.moves(inst)) else {
                continue;
            };
            if found.takes_carried || loads.len() == MOST {
                own.extend(found.insts);
            } else {
                loads.push(inst);
                slice.extend(found.insts);
            }
        }
        let insts = self.insts.iter().copied();
        Found {
            loads,
            slice: insts.filter(|it| slice.contains(it)).collect(),
            own,
        }
    }

    /// What an instruction follows from in an iteration, with it, if all of it may move.
    fn slice(&self, inst: Inst) -> Option<Slice> {
        let mut takes_carried = false;
        let (mut found, mut pending) = (BTreeSet::from([inst]), vec![inst]);
        while let Some(inst) = pending.pop() {
            let mut taken: BTreeSet<Value> = self.func.op(inst).operands().into_iter().collect();
            for region in self.func.op(inst).regions() {
                self.func.walk(region, &mut |inner| {
                    taken.extend(self.func.op(inner).operands())
                });
            }
            takes_carried |= self.carried.iter().any(|it| taken.contains(it));
            let makes = |it: &Inst| {
                self.func
                    .inst(*it)
                    .results
                    .iter()
                    .any(|it| taken.contains(it))
            };
            for &maker in self.insts.iter().filter(|it| makes(it)) {
                if !self.moves(maker) {
                    return None;
                }
                if found.insert(maker) {
                    pending.push(maker);
                }
            }
        }
        Some(Slice {
            insts: found,
            takes_carried,
        })
    }

    /// Whether an instruction has no effect but to load few numbers.
    fn moves(&self, inst: Inst) -> bool {
        let op = self.func.op(inst);
        let mut inner = vec![inst];
        if let Op::If(_) = op {
            inner.clear();
            for region in op.regions() {
                self.func.walk(region, &mut |it| inner.push(it));
            }
        }
        let reads = |inst: Inst| {
            let op = self.func.op(inst);
            if let Op::Load(load) = op {
                let free = load.cache != Some(Cache::Volatile) && !self.ahead.contains(&inst);
                let stays = self.ordered || self.written.contains(&load.base) || (self.may_end)(op);
                return free && !stays && is_small(self.func, inst);
            }
            op.is(Trait::terminator) || op.is(Trait::pure) && op.regions().is_empty()
        };
        inner.into_iter().all(reads)
    }
}
