//! Which buffers take boxes, where their barriers are made, and which of them are filled together.

use std::collections::{BTreeMap, BTreeSet};

use crate::ir::{Func, Inst, Op, Region, Trait, Value, op};

/// The buffers that boxes are copied to.
pub(in super::super) struct BoxBuffers {
    /// Of the first buffer of a region all of its region, in the order in which they are made.
    begun: BTreeMap<Value, Vec<Value>>,
    /// The first of those that are made one after the other.
    first: BTreeSet<Value>,
    /// For each buffer those that are filled with it, itself among them, in the order of the copies.
    together: BTreeMap<Value, Vec<Value>>,
    /// The buffer, slot and turn of waits that come right behind one for a buffer filled with it.
    shown: BTreeSet<[Value; 3]>,
}

impl BoxBuffers {
    pub(in super::super) fn of(block: &Func) -> Self {
        let regions = block.all_regions().into_iter();
        let made: Vec<Vec<Option<Value>>> = regions.map(|region| made(block, region)).collect();
        let mut found = Self {
            begun: BTreeMap::new(),
            first: BTreeSet::new(),
            together: together(block, &made),
            shown: BTreeSet::new(),
        };
        for buffers in made {
            for run in buffers.chunk_by(|a, b| a.is_some() == b.is_some()) {
                found.first.extend(run.first().copied().flatten());
            }
            let all: Vec<Value> = buffers.into_iter().flatten().collect();
            let first = all.first().copied();
            found.begun.extend(first.map(|first| (first, all)));
        }
        found.shown = shown(block, &found.together);
        found
    }

    pub(super) fn take_boxes(&self, buffer: Value) -> bool {
        self.together.contains_key(&buffer)
    }

    /// All buffers of the region whose first one this is.
    pub(super) fn begun_with(&self, buffer: Value) -> Option<&[Value]> {
        self.begun.get(&buffer).map(Vec::as_slice)
    }

    /// Whether a buffer is the first of those that are made one after the other.
    pub(super) fn is_first(&self, buffer: Value) -> bool {
        self.first.contains(&buffer)
    }

    /// The buffers that are filled with this one, itself among them, in the order of the copies.
    pub(super) fn filled_with(&self, buffer: Value) -> &[Value] {
        &self.together[&buffer]
    }

    /// Whether a wait before this one, with no effect between them, was for the same phase of the same barrier.
    pub(super) fn is_shown(&self, wait: &op::WaitBox) -> bool {
        self.shown.contains(&of_wait(wait))
    }
}

/// Of each instruction of a region the buffer for boxes that it makes.
fn made(block: &Func, region: Region) -> Vec<Option<Value>> {
    let takes_boxes = |buffer: Value| {
        let mut insts = block.all_insts().into_iter();
        insts.any(|inst| matches!(block.op(inst), Op::CopyBox(op) if op.buffer == buffer))
    };
    let buffer = |&inst: &Inst| {
        let made = matches!(block.op(inst), Op::Buffer(_));
        made.then(|| block.inst(inst).results[0])
            .filter(|&it| takes_boxes(it))
    };
    block.region(region).insts.iter().map(buffer).collect()
}

/// For each buffer those that one barrier serves: of one region, and filled by copies that always come one after the other,
/// to slots of one number, of which the first alone waits for a release. So what is waited for has begun wherever one of
/// them has, and each has come as often as the others.
fn together(block: &Func, made: &[Vec<Option<Value>>]) -> BTreeMap<Value, Vec<Value>> {
    let mut runs: Vec<Vec<Value>> = Vec::new();
    for region in block.all_regions() {
        let mut last: Option<Value> = None;
        for &inst in &block.region(region).insts {
            if let Op::CopyBox(op) = block.op(inst) {
                match runs.last_mut() {
                    Some(run) if last == Some(op.slot) && op.released.is_none() => {
                        run.push(op.buffer);
                    }
                    Some(_) | None => runs.push(vec![op.buffer]),
                }
                last = Some(op.slot);
            } else if !block.op(inst).is(Trait::pure) {
                last = None;
            }
        }
    }
    let slots = |buffer: Value| block.ty(buffer).buffer().map(|(_, slots)| slots);
    let is_alike = |run: &Vec<Value>| {
        let others = runs.iter().filter(|other| *other != run);
        let mut regions = made.iter();
        run.iter().all(|it| slots(*it) == slots(run[0]))
            && run.iter().collect::<BTreeSet<_>>().len() == run.len()
            && others.flatten().all(|other| !run.contains(other))
            && regions.any(|made| run.iter().all(|it| made.contains(&Some(*it))))
    };
    let filled = runs.iter().flat_map(|run| {
        let all = is_alike(run).then(|| run.clone());
        run.iter()
            .map(move |&it| (it, all.clone().unwrap_or_else(|| vec![it])))
    });
    filled.collect()
}

fn of_wait(op: &op::WaitBox) -> [Value; 3] {
    [op.buffer, op.slot, op.turn]
}

/// The waits of which each comes right behind one for the same slot of a buffer that is filled together with its own.
fn shown(block: &Func, together: &BTreeMap<Value, Vec<Value>>) -> BTreeSet<[Value; 3]> {
    let (mut shown, mut own) = (BTreeSet::new(), BTreeSet::new());
    for region in block.all_regions() {
        let mut last: Option<[Value; 3]> = None;
        for &inst in &block.region(region).insts {
            if let Op::WaitBox(op) = block.op(inst) {
                let wait = of_wait(op);
                let is_same = |last: [Value; 3]| {
                    together[&last[0]] == together[&wait[0]] && last[1..] == wait[1..]
                };
                match last.is_some_and(is_same) {
                    true => shown.insert(wait),
                    false => own.insert(wait),
                };
                last = Some(wait);
            } else if !block.op(inst).is(Trait::pure) {
                last = None;
            }
        }
    }
    &shown - &own
}
