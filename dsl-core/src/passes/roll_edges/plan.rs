//! What becomes a loop: vectors that have parts, and accesses that may be made part by part.

use std::collections::BTreeSet;

use crate::entity::EntityMap;
use crate::ir::{BinaryOp, Cache, Func, Inst, Op, Region, Trait, Value, op};

/// The most parts: a program at an edge waits for memory once for each.
const MOST_PARTS: usize = 4;

/// Elements of the longest vectors in a part, at least.
const LEAST_IN_PART: usize = 4;

/// Elements that the instructions of a stream compute, load and store, at least.
const LEAST_ELEMENTS: usize = 48;

/// A stream of instructions that becomes a loop.
pub(super) struct Plan {
    /// Its region, which it ends.
    pub(super) region: Region,
    /// The instructions of the stream that have vectors, in order.
    pub(super) stream: Vec<Inst>,
    /// Those before it that make vectors for it, in order. They stay where they are, too.
    pub(super) needed: Vec<Inst>,
    /// The number of iterations.
    pub(super) parts: usize,
}

/// An access of an array by vectors.
struct Access {
    base: Value,
    offset: Value,
    /// Elements behind each offset.
    run: usize,
    writes: bool,
}

impl Plan {
    /// How the stream at the end of a region is rolled, if it can be.
    pub(super) fn of(
        func: &Func,
        definitions: &EntityMap<Value, Option<Inst>>,
        region: Region,
    ) -> Option<Self> {
        let found = Finding { func, definitions };
        let (end, insts) = func.region(region).insts.split_last()?;
        let ends = matches!(func.op(*end), Op::Yield(it) if it.values.is_empty());
        let streams = insts.iter().rev().take_while(|inst| found.streams(**inst));
        let all = &insts[insts.len() - streams.count()..];
        let (stream, rest): (Vec<Inst>, Vec<Inst>) = all
            .iter()
            .copied()
            .partition(|inst| found.elements(*inst) > 1);
        let elements: usize = stream.iter().map(|inst| found.elements(*inst)).sum();
        if !ends || elements < LEAST_ELEMENTS || !found.is_free(&stream, &rest) {
            return None;
        }
        let needed = found.needed(&stream)?;
        let vectors = || needed.iter().chain(&stream).copied();
        let longest = vectors().map(|inst| found.elements(inst)).max()?;
        let tries = [MOST_PARTS, MOST_PARTS / 2].into_iter();
        let parts = tries
            .filter(|parts| longest / parts >= LEAST_IN_PART)
            .find(|&parts| vectors().all(|inst| found.has_parts(inst, parts)))?;
        Some(Self {
            region,
            stream,
            needed,
            parts,
        })
    }
}

/// What looks at a function.
struct Finding<'a> {
    func: &'a Func,
    definitions: &'a EntityMap<Value, Option<Inst>>,
}

impl Finding<'_> {
    fn op(&self, value: Value) -> Option<&Op> {
        Some(self.func.op(self.definitions[value]?))
    }

    fn count(&self, value: Value) -> usize {
        self.func.ty(value).shape.elements()
    }

    /// The elements that an instruction gives or stores.
    fn elements(&self, inst: Inst) -> usize {
        let data = self.func.inst(inst);
        let stored = if let Op::LaneStore(op) = &data.op {
            Some(op.value)
        } else {
            None
        };
        let value = data.results.first().copied().or(stored);
        value.map_or(0, |value| self.count(value))
    }

    /// Whether an instruction may be part of a stream.
    fn streams(&self, inst: Inst) -> bool {
        let op = self.func.op(inst);
        let access = if let Op::LaneLoad(op) = op {
            Some((op.base, op.cache))
        } else if let Op::LaneStore(op) = op {
            Some((op.base, op.cache))
        } else {
            None
        };
        match access {
            Some((base, cache)) => {
                self.func.parameter_index(base).is_some() && cache != Some(Cache::Volatile)
            }
            None => op.is(Trait::pure) && op.regions().is_empty(),
        }
    }

    /// Whether memory has the same contents if a stream is run part by part, after the rest: no element is touched
    /// in two parts of which one writes it, and nothing of the rest follows from the stream.
    fn is_free(&self, stream: &[Inst], rest: &[Inst]) -> bool {
        let accesses: Vec<Access> = stream.iter().filter_map(|it| self.access(*it)).collect();
        let made = stream.iter().flat_map(|it| &self.func.inst(*it).results);
        let made: BTreeSet<Value> = made.copied().collect();
        let stores = || accesses.iter().filter(|access| access.writes);
        let alone = |store: &Access| {
            let mut others = accesses.iter().filter(|it| it.base == store.base);
            others.all(|it| {
                std::ptr::eq(it, store)
                    || it.offset == store.offset && it.run == store.run && self.is_apart(it)
            })
        };
        let early = |inst: &Inst| {
            let op = self.func.op(*inst);
            let loads = matches!(op, Op::LaneLoad(op) if stores().all(|it| it.base != op.base));
            (op.is(Trait::pure) || loads) && op.operands().iter().all(|it| !made.contains(it))
        };
        stores().next().is_some() && stores().all(alone) && rest.iter().all(early)
    }

    fn access(&self, inst: Inst) -> Option<Access> {
        let op = self.func.op(inst);
        let (base, offset, writes) = if let Op::LaneLoad(op) = op {
            (op.base, op.offset, false)
        } else if let Op::LaneStore(op) = op {
            (op.base, op.offset, true)
        } else {
            return None;
        };
        Some(Access {
            base,
            offset,
            run: self.elements(inst) / self.count(offset),
            writes,
        })
    }

    /// Whether a lane accesses no element twice: its offsets are one number and known distances.
    fn is_apart(&self, access: &Access) -> bool {
        self.distances(access.offset).is_some_and(|mut distances| {
            distances.sort_unstable();
            let mut pairs = distances.windows(2);
            pairs.all(|pair| (pair[1] - pair[0]) as usize >= access.run)
        })
    }

    /// How far the elements of a vector are from one number, where that is known.
    fn distances(&self, mut value: Value) -> Option<Vec<u32>> {
        let mut picked: Option<Vec<u32>> = None;
        let pick = |picked: Option<Vec<u32>>, from: &[u32]| -> Option<Vec<u32>> {
            let Some(picked) = picked else {
                return Some(from.to_vec());
            };
            picked
                .iter()
                .map(|&at| from.get(at as usize).copied())
                .collect()
        };
        loop {
            match self.op(value) {
                Some(Op::Places(op::Places { values })) => return pick(picked, values),
                Some(Op::ShuffleVector(op::ShuffleVector { a, indices, .. })) => {
                    picked = Some(pick(picked, indices)?);
                    value = *a;
                }
                Some(&Op::Binary(op::Binary {
                    op: BinaryOp::Add,
                    lhs,
                    rhs,
                })) => {
                    let alike =
                        |value| matches!(self.op(value), Some(Op::Splat(_) | Op::Constant(_)));
                    value = match [alike(lhs), alike(rhs)] {
                        [true, _] => rhs,
                        [_, true] => lhs,
                        _ => return None,
                    };
                }
                _ => return None,
            }
        }
    }

    /// What makes the vectors that a stream takes from before it; nothing where it cannot be made part by part.
    fn needed(&self, stream: &[Inst]) -> Option<Vec<Inst>> {
        let mut found: BTreeSet<Inst> = stream.iter().copied().collect();
        let mut pending: Vec<Inst> = stream.to_vec();
        while let Some(inst) = pending.pop() {
            for value in self.func.op(inst).operands() {
                if self.func.ty(value).is_scalar() {
                    continue;
                }
                let defined = self.definitions[value]?;
                if found.insert(defined) {
                    self.func.op(defined).is(Trait::pure).then_some(())?;
                    pending.push(defined);
                }
            }
        }
        for inst in stream {
            found.remove(inst);
        }
        let insts = self.func.all_insts().into_iter();
        Some(insts.filter(|inst| found.contains(inst)).collect())
    }

    /// Whether each of so many parts of what an instruction gives or stores follows from such parts of its operands, in the
    /// same way.
    fn has_parts(&self, inst: Inst, parts: usize) -> bool {
        let (op, elements) = (self.func.op(inst), self.elements(inst));
        let divides = |value: Value| {
            self.func.ty(value).is_scalar() || self.count(value).is_multiple_of(parts)
        };
        let even =
            elements.is_multiple_of(parts) && op.operands().iter().all(|&value| divides(value));
        if !even {
            return false;
        }
        if let Op::Places(op::Places { values }) = op {
            are_regular(values, parts)
        } else if let Op::ShuffleVector(op::ShuffleVector { a, indices, .. }) = op {
            let (each, own) = (self.count(*a) as u32 / parts as u32, elements / parts);
            let shifted =
                |(at, &index): (usize, &u32)| index == indices[at % own] + (at / own) as u32 * each;
            indices[..own].iter().all(|&index| index < each)
                && indices.iter().enumerate().all(shifted)
        } else if let Some(access) = self.access(inst) {
            self.count(access.offset) > 1
        } else {
            matches!(op, Op::Constant(_) | Op::Splat(_)) || op.is(Trait::elementwise)
        }
    }
}

/// Whether numbers in so many parts are those of the first part, each further away by the same distance.
fn are_regular(values: &[u32], parts: usize) -> bool {
    let count = values.len() / parts;
    let step = values[count].checked_sub(values[0]);
    step.is_some_and(|step| {
        let expected = |at: usize| {
            let moved = step.checked_mul((at / count) as u32);
            moved.and_then(|moved| moved.checked_add(values[at % count]))
        };
        values
            .iter()
            .enumerate()
            .all(|(at, &value)| expected(at) == Some(value))
    })
}
