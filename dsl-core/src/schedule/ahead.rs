//! Which loads of a loop can be started iterations ahead: those whose addresses follow from the
//! index, from what does not change, from carried values that such numbers alone advance, and from single numbers that are loaded
//! by such addresses, as entries of a table are: those are loaded once more for the iteration ahead.

use std::collections::{BTreeMap, BTreeSet};

use super::MayEnd;
use crate::ir::{Cache, Effect, Func, Inst, Op, Region, Trait, Value, op};

/// What is computed ahead of the iterations of a loop.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// The loads.
    pub(super) loads: BTreeSet<Inst>,
    /// The instructions that their addresses need, and the `if`s that they lie in. Loads among them may run only where their iteration
    /// does.
    pub(super) slice: BTreeSet<Inst>,
    /// Carried values that the addresses need, by position.
    pub(super) carried: BTreeSet<usize>,
}

impl Ahead {
    /// Of the loads of `body` that `wanted` takes, those that can be started ahead, with the further numbers that it names for each.
    ///
    /// Loads of an argument that the loop also stores to stay where they are, as do those that read
    /// the same elements in every iteration, and all where an atomic orders memory. No number is loaded once more where the
    /// program may end.
    pub(super) fn find(
        func: &Func,
        body: Region,
        may_end: MayEnd<'_>,
        wanted: &mut dyn FnMut(Inst) -> Option<Vec<Value>>,
    ) -> Self {
        let mut written = BTreeSet::new();
        let mut ordered = false;
        func.walk(body, &mut |inst| {
            ordered |= func.op(inst).memory_order().is_some();
            let access = func.op(inst).access();
            let writes = access.filter(|access| access.effect != Effect::Reads);
            written.extend(writes.map(|access| access.base));
        });
        let is_free = |base: &Value| !ordered && !written.contains(base);
        let mut body = Body::new(func, body);
        body.repeat(&|op| {
            let read = started(op).filter(|_| matches!(op, Op::Load(_)) && !may_end(op));
            read.is_some_and(|(base, _)| is_free(&base))
        });
        let mut ahead = Self::default();
        for &inst in body.parents.keys() {
            let Some((base, operands)) = started(func.op(inst)) else {
                continue;
            };
            let Some(numbers) = is_free(&base).then(|| wanted(inst)).flatten() else {
                continue;
            };
            let mut need = Need::default();
            let mut operands = operands.into_iter().chain(numbers);
            let found = operands.all(|value| body.value(value, &mut need));
            if found && need.changes && body.place(inst, &mut need) && need.is_carried_early(&body)
            {
                ahead.loads.insert(inst);
                ahead.slice.extend(need.slice);
                ahead.carried.extend(need.carried);
            }
        }
        let Self { loads, slice, .. } = &mut ahead;
        loads.retain(|load| !slice.contains(load));
        ahead
    }

    /// Of the slice, what all its scalars and the next carried values follow from, but for what follows from loads.
    pub(super) fn early(&self, func: &Func, body: Region) -> BTreeSet<Inst> {
        let yielded = func.yielded(body);
        let mut pending: Vec<Value> = self.carried.iter().map(|&at| yielded[at]).collect();
        let definitions = func.definitions();
        let late = late(func, &|it| definitions[it], &self.slice);
        for inst in self.slice.difference(&late) {
            let results = func.inst(*inst).results.iter();
            pending.extend(results.filter(|&&result| func.ty(result).is_scalar()));
        }
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

/// Of a slice, the loads and what follows from them.
fn late(
    func: &Func,
    made_by: &dyn Fn(Value) -> Option<Inst>,
    slice: &BTreeSet<Inst>,
) -> BTreeSet<Inst> {
    let mut late: BTreeSet<Inst> = BTreeSet::new();
    loop {
        let is_late = |&&inst: &&Inst| {
            let mut operands = func.op(inst).operands().into_iter();
            let follows = operands.any(|it| made_by(it).is_some_and(|it| late.contains(&it)));
            !late.contains(&inst) && (follows || matches!(func.op(inst), Op::Load(_)))
        };
        let found: Vec<Inst> = slice.iter().filter(is_late).copied().collect();
        if found.is_empty() {
            return late;
        }
        late.extend(found);
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

impl Need {
    /// Whether what is carried on follows from no loads: it is computed also where no iteration follows.
    fn is_carried_early(&self, body: &Body<'_>) -> bool {
        let made_by = |it: Value| body.definitions.get(&it).copied();
        let late = late(body.func, &made_by, &self.slice);
        let yielded = body.func.yielded(body.body);
        let mut next = self.carried.iter().map(|&at| yielded[at]);
        !next.any(|it| made_by(it).is_some_and(|it| late.contains(&it)))
    }
}

struct Body<'a> {
    func: &'a Func,
    body: Region,
    /// The instructions of the body, each with the `if` that it lies in.
    parents: BTreeMap<Inst, Option<Inst>>,
    /// Where the values that the body computes come from.
    definitions: BTreeMap<Value, Inst>,
    /// Loads of single numbers that give the same once more.
    repeated: BTreeSet<Inst>,
}

impl<'a> Body<'a> {
    fn new(func: &'a Func, body: Region) -> Self {
        let mut read = Self {
            func,
            body,
            parents: BTreeMap::new(),
            definitions: BTreeMap::new(),
            repeated: BTreeSet::new(),
        };
        read.enter(body, None);
        read
    }

    /// Lets values follow from loads of single numbers that are such.
    fn repeat(&mut self, is_such: &dyn Fn(&Op) -> bool) {
        let func = self.func;
        let is_single = |inst: Inst| {
            let mut results = func.inst(inst).results.iter();
            results.all(|&it| func.ty(it).shape.elements() == 1)
        };
        let insts = self.parents.keys().copied();
        let found = insts.filter(|&inst| is_single(inst) && is_such(func.op(inst)));
        self.repeated = found.collect();
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
        if !is_arithmetic(op) && !self.repeated.contains(&inst) {
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
