//! Loads of few numbers beside products whose operands come by bulk copies. They are too small for copies of their own: they
//! come while tensor cores multiply, or while an iteration waits for boxes.

use std::collections::BTreeSet;

use super::super::MayEnd;
use super::Pipeliner;
use super::order::takes;
use crate::ir::{Cache, Effect, Func, Inst, Op, Region, Trait, Value};

/// Bytes that a lane loads at once.
const SMALL: u32 = 16;

/// Whether boxes are copied in a body.
pub(super) fn has_boxes(func: &Func, body: Region) -> bool {
    let mut found = false;
    func.walk(body, &mut |inst| {
        found |= matches!(func.op(inst), Op::CopyBox(_));
    });
    found
}

/// Whether a lane holds no more of a load than it loads at once.
pub(super) fn is_small(func: &Func, load: Inst) -> bool {
    let result = func.inst(load).results[0];
    let dtype = func.ty(result).dtype();
    let registers = func
        .layout(result)
        .map_or(1, |it| func.linear(it).registers());
    dtype.is_some_and(|dtype| registers * dtype.bytes() <= SMALL)
}

impl Pipeliner {
    /// Puts small loads with what they take behind the last product that begins before they are used, if the body has boxes and
    /// nothing in it comes to stand before them. Those that no product comes before are taken out of the body, for its begin.
    pub(super) fn loads_first(&mut self, may_end: MayEnd<'_>) -> Vec<Inst> {
        if !self.copies_boxes() {
            return Vec::new();
        }
        let first = Body::new(self.func(), self.body, (&self.ahead.loads, may_end)).first();
        let func = self.builder.func_mut();
        let insts = std::mem::take(&mut func.region_mut(self.body).insts);
        let (first, mut rest): (Vec<Inst>, Vec<Inst>) =
            insts.into_iter().partition(|inst| first.contains(inst));
        let made = first.iter().flat_map(|&inst| &func.inst(inst).results);
        let made: BTreeSet<Value> = made.copied().collect();
        let used = rest
            .iter()
            .position(|&inst| takes(func, inst, &made))
            .unwrap_or(rest.len());
        let is_product = |&inst: &Inst| matches!(func.op(inst), Op::DotSlots(_));
        let product = rest[..used].iter().rposition(is_product);
        let left = match product {
            Some(product) => {
                let waits = rest[product + 1..].iter();
                let waits = waits.take_while(|&&inst| matches!(func.op(inst), Op::Settle(_)));
                let behind = product + 1 + waits.count();
                rest.splice(behind..behind, first);
                Vec::new()
            }
            None => first,
        };
        func.region_mut(self.body).insts = rest;
        left
    }
}

struct Body<'a> {
    func: &'a Func,
    insts: &'a [Inst],
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
    fn first(&self) -> BTreeSet<Inst> {
        let loads = self.insts.iter().copied();
        let ends = |it: Inst| self.func.op(it).is(Trait::terminator);
        let loads = loads.filter(|&it| !self.func.is_pure(it) && !ends(it) && self.moves(it));
        loads
            .filter_map(|load| self.slice(load))
            .flatten()
            .collect()
    }

    /// What an instruction follows from in an iteration, with it, if all of it may move.
    fn slice(&self, inst: Inst) -> Option<BTreeSet<Inst>> {
        let (mut found, mut pending) = (BTreeSet::from([inst]), vec![inst]);
        while let Some(inst) = pending.pop() {
            let mut taken: BTreeSet<Value> = self.func.op(inst).operands().into_iter().collect();
            for region in self.func.op(inst).regions() {
                self.func.walk(region, &mut |inner| {
                    taken.extend(self.func.op(inner).operands())
                });
            }
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
        Some(found)
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
