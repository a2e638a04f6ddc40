//! Which loads of a loop can be started iterations ahead: those whose addresses follow from the
//! index, from what does not change, and from carried values that such numbers alone advance.

use std::collections::{BTreeMap, BTreeSet};

use crate::ir::{Cache, Effect, Func, Inst, Op, Region, Trait, Value, op};

/// What is computed ahead of the iterations of a loop.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// The loads.
    pub(super) loads: BTreeSet<Inst>,
    /// The instructions that their addresses need, and the `if`s that they lie in.
    pub(super) slice: BTreeSet<Inst>,
    /// Carried values that the addresses need, by position.
    pub(super) carried: BTreeSet<usize>,
}

impl Ahead {
    /// Of the loads of `body` that `wanted` takes, those that can be started ahead.
    ///
    /// Loads of an argument that the loop also stores to stay where they are, as do those that read
    /// the same elements in every iteration, and all where an atomic orders memory.
    pub(super) fn find(func: &Func, body: Region, wanted: &mut dyn FnMut(Inst) -> bool) -> Self {
        let mut written = BTreeSet::new();
        let mut ordered = false;
        func.walk(body, &mut |inst| {
            ordered |= func.op(inst).memory_order().is_some();
            let access = func.op(inst).access();
            let writes = access.filter(|access| access.effect != Effect::Reads);
            written.extend(writes.map(|access| access.base));
        });
        let body = Body::new(func, body);
        let mut ahead = Self::default();
        for &inst in body.parents.keys() {
            let Some((base, operands)) = started(func.op(inst)) else {
                continue;
            };
            if ordered || written.contains(&base) || !wanted(inst) {
                continue;
            }
            let mut need = Need::default();
            let mut operands = operands.into_iter();
            let found = operands.all(|value| body.value(value, &mut need));
            if found && need.changes && body.place(inst, &mut need) {
                ahead.loads.insert(inst);
                ahead.slice.extend(need.slice);
                ahead.carried.extend(need.carried);
            }
        }
        ahead
    }

    /// Of the slice, what all its scalars and the next carried values follow from.
    pub(super) fn early(&self, func: &Func, body: Region) -> BTreeSet<Inst> {
        let yielded = func.yielded(body);
        let mut pending: Vec<Value> = self.carried.iter().map(|&at| yielded[at]).collect();
        for &inst in &self.slice {
            let results = func.inst(inst).results.iter();
            pending.extend(results.filter(|&&result| func.ty(result).is_scalar()));
        }
        let definitions = func.definitions();
        let mut early = BTreeSet::new();
        while let Some(value) = pending.pop() {
            if let Some(inst) = definitions[value]
                && self.slice.contains(&inst)
                && !matches!(func.op(inst), Op::If(_))
                && early.insert(inst)
            {
                pending.extend(func.op(inst).operands());
            }
        }
        early
    }
}

/// What values follow from in the body of a loop, if that is arithmetic on its index and on what it does not change.
pub(super) fn arithmetic_of(func: &Func, body: Region, values: &[Value]) -> Option<BTreeSet<Inst>> {
    let read = Body::new(func, body);
    let mut need = Need::default();
    let mut values = values.iter();
    let found = values.all(|&value| read.value(value, &mut need));
    (found && need.carried.is_empty()).then_some(need.slice)
}

/// The memory that a load, or the copy of a box, reads, and what says where.
fn started(op: &Op) -> Option<(Value, Vec<Value>)> {
    if let Op::Load(op) = op
        && op.cache != Some(Cache::Volatile)
    {
        let operands = op.mask.into_iter().chain([op.offsets]);
        return Some((op.base, operands.collect()));
    }
    if let Op::CopyBox(op) = op {
        let numbers = [&op.origin, &op.extents, &op.strides];
        return Some((op.base, numbers.into_iter().flatten().copied().collect()));
    }
    None
}

/// What one load needs.
#[derive(Default)]
struct Need {
    slice: BTreeSet<Inst>,
    carried: BTreeSet<usize>,
    /// Whether anything depends on the iteration.
    changes: bool,
}

struct Body<'a> {
    func: &'a Func,
    body: Region,
    /// The instructions of the body, each with the `if` that it lies in.
    parents: BTreeMap<Inst, Option<Inst>>,
    /// Where the values that the body computes come from.
    definitions: BTreeMap<Value, Inst>,
}

impl<'a> Body<'a> {
    fn new(func: &'a Func, body: Region) -> Self {
        let mut read = Self {
            func,
            body,
            parents: BTreeMap::new(),
            definitions: BTreeMap::new(),
        };
        read.enter(body, None);
        read
    }

    fn enter(&mut self, region: Region, parent: Option<Inst>) {
        let func = self.func;
        for &inst in &func.region(region).insts {
            self.parents.insert(inst, parent);
            for &result in &func.inst(inst).results {
                self.definitions.insert(result, inst);
            }
            if let Op::If(op::If {
                on_true, on_false, ..
            }) = func.op(inst)
            {
                self.enter(*on_true, Some(inst));
                self.enter(*on_false, Some(inst));
            }
        }
    }

    /// Whether a value can be computed ahead, and what it needs.
    fn value(&self, value: Value, need: &mut Need) -> bool {
        let parameters = &self.func.region(self.body).parameters;
        if let Some(position) = parameters.iter().position(|&other| other == value) {
            need.changes = true;
            let Some(carried) = position.checked_sub(1) else {
                return true;
            };
            let next = self.func.yielded(self.body)[carried];
            return !need.carried.insert(carried) || self.value(next, need);
        }
        let Some(&inst) = self.definitions.get(&value) else {
            return true;
        };
        let op = self.func.op(inst);
        if !is_arithmetic(op) {
            return false;
        }
        if need.slice.contains(&inst) {
            return true;
        }
        if !self.place(inst, need) {
            return false;
        }
        need.slice.insert(inst);
        op.operands()
            .into_iter()
            .all(|operand| self.value(operand, need))
    }

    /// Whether it is known ahead that an instruction will be reached.
    fn place(&self, inst: Inst, need: &mut Need) -> bool {
        let Some(&Some(parent)) = self.parents.get(&inst) else {
            return true;
        };
        if need.slice.contains(&parent) {
            return true;
        }
        let Op::If(op::If { condition, .. }) = self.func.op(parent) else {
            return false;
        };
        need.slice.insert(parent);
        self.value(*condition, need) && self.place(parent, need)
    }
}

/// Whether lanes compute the op each for itself.
fn is_arithmetic(op: &Op) -> bool {
    op.is(Trait::pointwise) || matches!(op, Op::ProgramId(_) | Op::NumPrograms(_))
}
