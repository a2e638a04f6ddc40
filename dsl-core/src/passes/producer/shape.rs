//! Which copies a warp of their own can start.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::super::groups::{GROUP, arrays, bytes_of, is_first_warp, unused};
use crate::entity::EntityMap;
use crate::ir::{Element, Func, Inst, Op, Region, Space, Trait, Value};
use crate::target::Target;

/// What the new warp does.
pub(super) struct Copies {
    /// The copies, what they say to the barriers of their slots, and the waits for slots that are free.
    pub(super) moved: BTreeSet<Inst>,
    /// The barrier of all warps behind which the barriers of slots are made.
    pub(super) made: Inst,
    /// Numbered barriers that nothing uses: for all warps and for those that do the rest.
    pub(super) barriers: [i64; 2],
}

impl Copies {
    /// Those of a program that leaves room for a group more.
    pub(super) fn find(func: &Func, target: &Target) -> Option<Self> {
        let insts = func.all_insts();
        // A program that stops would leave the new warp waiting, and copies may follow from what an atomic has seen.
        let is_refused = insts.iter().any(|&inst| {
            matches!(
                func.op(inst),
                Op::StopOutside(_)
                    | Op::StopIndex(_)
                    | Op::StopAssertion(_)
                    | Op::Roles(_)
                    | Op::LaneAtomic(_)
                    | Op::LaneFetch(_)
            )
        });
        let multiplies = insts.iter();
        let mut multiplies = multiplies.map(|&inst| matches!(func.op(inst), Op::GroupMma(_)));
        let has_room = func.warps + GROUP <= target.gpu.most_warps;
        if is_refused || !has_room || !multiplies.any(|it| it) {
            return None;
        }
        let scene = Scene::new(func, insts);
        let words = scene.words();
        let moved = scene.moved(&words);
        let named = scene.words_of(&moved);
        let makes = |&inst: &Inst| matches!(func.op(inst), Op::MbarrierInit(op) if named.contains(&op.word));
        let last = scene.insts.iter().rposition(makes)?;
        let mut free = unused(func);
        let barriers = [free.next()?, free.next()?];
        let is_barrier = |inst: &Inst| matches!(func.op(*inst), Op::Barrier(_));
        let made = scene.insts[last..].iter().copied().find(is_barrier)?;
        (!moved.is_empty() && scene.is_before(made, &moved)).then_some(Self {
            moved,
            made,
            barriers,
        })
    }
}

/// A function with what is asked about it.
struct Scene<'a> {
    func: &'a Func,
    insts: Vec<Inst>,
    definitions: EntityMap<Value, Option<Inst>>,
    /// For each instruction what owns it, the outermost first, and by which region.
    owners: BTreeMap<Inst, Vec<(Inst, Region)>>,
    /// For instructions that fill slots, the wait for the slot to be free.
    waits: BTreeMap<Inst, Inst>,
    /// All words that are barriers with phases.
    barriers: BTreeSet<Value>,
    /// Values that follow from more than numbers: from memory, or from what other lanes hold.
    unknown: BTreeSet<Value>,
    /// The words that copies count for.
    filled: BTreeSet<Value>,
}

impl<'a> Scene<'a> {
    fn new(func: &'a Func, insts: Vec<Inst>) -> Self {
        let mut owners = BTreeMap::new();
        let mut pending = vec![(func.body(), Vec::new())];
        while let Some((region, chain)) = pending.pop() {
            for &inst in &func.region(region).insts {
                owners.insert(inst, chain.clone());
                for inner in func.op(inst).regions() {
                    let chain: Vec<_> = chain.iter().copied().chain([(inst, inner)]).collect();
                    pending.push((inner, chain));
                }
            }
        }
        let filled = insts.iter().filter_map(|&inst| {
            let Op::MbarrierExpect(op) = func.op(inst) else {
                return None;
            };
            Some(op.word)
        });
        let barriers = insts.iter().filter_map(|&inst| {
            let Op::MbarrierInit(op) = func.op(inst) else {
                return None;
            };
            Some(op.word)
        });
        let mut scene = Self {
            func,
            definitions: func.definitions(),
            owners,
            unknown: unknown(func, &insts),
            filled: filled.collect(),
            waits: BTreeMap::new(),
            barriers: barriers.collect(),
            insts,
        };
        let filling = scene.insts.iter().copied();
        let filling = filling.filter(|&inst| scene.filled_by(inst).is_some());
        let waits = filling.filter_map(|inst| Some((inst, scene.wait_before(inst)?)));
        scene.waits = waits.collect();
        scene
    }

    /// The words of rings whose copies the new warp can start.
    fn words(&self) -> BTreeSet<Value> {
        let mixed = self.mixed();
        let mut words: BTreeSet<Value> = self.filled.difference(&mixed).copied().collect();
        loop {
            let moved = self.moved(&words);
            let mut fails = BTreeSet::new();
            for &inst in &self.insts {
                if let Some(word) = self.filled_by(inst)
                    && words.contains(&word)
                    && !(self.is_free(inst) && self.is_ordered(inst))
                {
                    fails.insert(word);
                }
                // What waits for one word goes together, and with all that it lets begin.
                if let Some(word) = self.freed_by(inst)
                    && !moved.contains(&inst)
                {
                    let alike = moved.iter().filter(|&&it| {
                        self.freed_by(it) == Some(word) || self.waits.get(&it) == Some(&inst)
                    });
                    let behind = alike.flat_map(|&it| self.behind(it));
                    fails.extend(behind);
                }
            }
            let count = words.len();
            words.retain(|word| !fails.contains(word));
            if words.len() == count {
                return words;
            }
        }
    }

    /// The words of the copies that an instruction starts, or lets begin.
    fn behind(&self, inst: Inst) -> BTreeSet<Value> {
        let of_word = self.filled_by(inst).into_iter();
        let insts = self.insts.iter().copied();
        let waiting = insts.filter(|copy| self.waits.get(copy) == Some(&inst));
        of_word
            .chain(waiting.filter_map(|copy| self.filled_by(copy)))
            .collect()
    }

    /// What the new warp does for these words.
    fn moved(&self, words: &BTreeSet<Value>) -> BTreeSet<Inst> {
        let is_moved = |inst: Inst| match self.filled_by(inst) {
            Some(word) => words.contains(&word),
            None if self.freed_by(inst).is_some() => {
                let behind = self.behind(inst);
                self.is_free(inst) && !behind.is_empty() && behind.is_subset(words)
            }
            None => false,
        };
        let insts = self.insts.iter().copied();
        insts.filter(|&inst| is_moved(inst)).collect()
    }

    /// The last wait that comes before `inst` in the same iteration, under no other conditions than its own and for a slot of the same
    /// number.
    fn wait_before(&self, inst: Inst) -> Option<Inst> {
        let conditions = |inst: Inst| -> BTreeSet<(Value, bool)> {
            let owners = self.owners[&inst].iter();
            let ifs = owners.filter_map(|&(owner, region)| {
                let Op::If(op) = self.func.op(owner) else {
                    return None;
                };
                Some((op.condition, region == op.on_true))
            });
            ifs.collect()
        };
        let loops = |inst: Inst| -> Vec<Inst> {
            let owners = self.owners[&inst].iter();
            let loops = owners.filter(|&&(owner, _)| matches!(self.func.op(owner), Op::For(_)));
            loops.map(|&(owner, _)| owner).collect()
        };
        let slot = |inst: Inst| {
            let op = self.func.op(inst);
            if let Op::MbarrierExpect(op) = op {
                return Some(op.at);
            } else if let Op::MbarrierArrive(op) = op {
                return Some(op.at);
            } else if let Op::MbarrierWait(op) = op {
                return Some(op.at);
            }
            let Op::CopyIn(op) = op else {
                return None;
            };
            Some(op.at)
        };
        let before = self.insts.iter().take_while(|&&it| it != inst).copied();
        let waits = before.filter(|&wait| {
            let is_own = self.freed_by(wait).is_some() && slot(wait) == slot(inst);
            is_own && loops(wait) == loops(inst) && conditions(wait).is_subset(&conditions(inst))
        });
        waits.last()
    }

    /// The words of copies of which several wait for one word, or one waits for several.
    fn mixed(&self) -> BTreeSet<Value> {
        let pairs = self.waits.iter();
        let pairs: BTreeSet<(Value, Value)> = pairs
            .filter_map(|(&inst, &wait)| Some((self.filled_by(inst)?, self.freed_by(wait)?)))
            .collect();
        let is_mixed = |&&(filled, freed): &&(Value, Value)| {
            let alike = pairs.iter();
            alike
                .filter(|&&(one, other)| one == filled || other == freed)
                .count()
                > 1
        };
        pairs
            .iter()
            .filter(is_mixed)
            .map(|&(filled, _)| filled)
            .collect()
    }

    /// The barriers with phases that instructions name.
    fn words_of(&self, moved: &BTreeSet<Inst>) -> BTreeSet<Value> {
        let words = moved.iter();
        let words = words.filter_map(|&inst| self.filled_by(inst).or(self.freed_by(inst)));
        words.collect()
    }

    /// The word that an instruction fills a slot for.
    fn filled_by(&self, inst: Inst) -> Option<Value> {
        let op = self.func.op(inst);
        let word = if let Op::MbarrierExpect(op) = op {
            op.word
        } else if let Op::MbarrierArrive(op) = op {
            op.word
        } else if let Op::CopyIn(op) = op {
            op.word
        } else if let Op::CopySpan(op) = op {
            op.word
        } else {
            return None;
        };
        self.filled.contains(&word).then_some(word)
    }

    /// The word that an instruction waits for until a slot is free.
    fn freed_by(&self, inst: Inst) -> Option<Value> {
        let Op::MbarrierWait(op) = self.func.op(inst) else {
            return None;
        };
        (!self.filled.contains(&op.word)).then_some(op.word)
    }

    /// Whether the first warp does it, and it follows from numbers whether, how often and with what.
    fn is_free(&self, inst: Inst) -> bool {
        let func = self.func;
        let is_known = |value: &Value| !self.unknown.contains(value);
        let mut leads = false;
        for &(owner, region) in &self.owners[&inst] {
            let is_control = matches!(func.op(owner), Op::For(_) | Op::If(_));
            let deciding = func.deciding(owner).unwrap_or_default();
            if !is_control || !deciding.iter().all(is_known) {
                return false;
            }
            if let Op::If(op) = func.op(owner) {
                leads |=
                    region == op.on_true && is_first_warp(func, &self.definitions, op.condition);
            }
        }
        leads && func.op(inst).operands().iter().all(is_known)
    }

    /// Whether an instruction happens once, before all of others and in a region that has them, and it follows from numbers whether.
    fn is_before(&self, inst: Inst, others: &BTreeSet<Inst>) -> bool {
        let chain = &self.owners[&inst];
        let is_known = chain.iter().all(|&(owner, _)| {
            matches!(self.func.op(owner), Op::If(op) if !self.unknown.contains(&op.condition))
        });
        let mut insts = self.insts.iter().take_while(|&&it| it != inst);
        let mut others_too = others.iter();
        is_known
            && insts.all(|it| !others.contains(it))
            && others_too.all(|it| self.owners[it].starts_with(chain))
    }

    /// Whether a copy needs no barrier of all warps before it: it waits for its slot, or is among the first that touch its memory, in a
    /// loop that waits for nothing; and what else lies there, or writes what it reads, comes later.
    fn is_ordered(&self, inst: Inst) -> bool {
        let func = self.func;
        let Op::CopyIn(copy) = func.op(inst) else {
            return !matches!(func.op(inst), Op::CopySpan(_));
        };
        let waits = self.waits.contains_key(&inst);
        let is_loop = |&&(owner, _): &&(Inst, Region)| matches!(func.op(owner), Op::For(_));
        let outermost = self.owners[&inst].iter().find(is_loop);
        let around = |other: Inst| {
            let mut owners = self.owners[&other].iter();
            outermost.is_some_and(|&(outer, _)| owners.any(|&(owner, _)| owner == outer))
        };
        let orders = |&inst: &Inst| {
            let op = func.op(inst);
            let waits = matches!(op, Op::Barrier(_) | Op::NamedSync(_) | Op::MbarrierWait(_));
            waits && around(inst)
        };
        if !waits && self.insts.iter().any(orders) {
            return false;
        }
        let Some(target) = self.bytes(copy.target) else {
            return false;
        };
        let at = self.insts.iter().position(|&other| other == inst);
        let others = self.insts.iter().copied().enumerate();
        let others = others.filter(|&(position, other)| Some(position) < at || around(other));
        let others: Vec<Inst> = others.map(|(_, other)| other).collect();
        let read = arrays(func, &[inst], false);
        let stays = arrays(func, &others, true).is_disjoint(&read);
        let lies_apart = |&other: &Inst| {
            let is_own = |value: Value| match waits {
                // Who reads a slot says so.
                true => value == copy.target,
                false => self.filled_by(other) == Some(copy.word),
            };
            let mut operands = func.op(other).operands().into_iter();
            operands.all(|value| {
                let is_shared =
                    matches!(func.ty(value).element, Element::Pointer(_, Space::Shared));
                if !is_shared || self.barriers.contains(&value) || is_own(value) {
                    return true;
                }
                let bytes = self.bytes(value);
                bytes.is_some_and(|bytes| bytes.end <= target.start || target.end <= bytes.start)
            })
        };
        stays && others.iter().all(lies_apart)
    }

    fn bytes(&self, value: Value) -> Option<Range<i64>> {
        bytes_of(self.func, &self.definitions, value)
    }
}

/// What follows from more than numbers.
fn unknown(func: &Func, insts: &[Inst]) -> BTreeSet<Value> {
    let mut unknown = BTreeSet::new();
    loop {
        let count = unknown.len();
        for &inst in insts {
            let op = func.op(inst);
            let is_any = |values: &[Value]| values.iter().any(|value| unknown.contains(value));
            if matches!(op, Op::For(_) | Op::If(_)) {
                let decided = is_any(&func.deciding(inst).unwrap_or_default());
                let mut found: Vec<Value> = Vec::new();
                for carried in func.carried(inst) {
                    let sources = carried.init.iter().chain(&carried.yielded);
                    let mut sources = sources.chain(&carried.parameters);
                    if decided || sources.any(|value| unknown.contains(value)) {
                        found.extend(carried.parameters);
                        found.push(carried.result);
                    }
                }
                if let Op::For(op) = op
                    && decided
                {
                    found.extend(&func.region(op.body).parameters);
                }
                unknown.extend(found);
            } else if !op.regions().is_empty() {
                let regions = op.regions().into_iter();
                unknown.extend(regions.flat_map(|it| func.region(it).parameters.clone()));
                unknown.extend(&func.inst(inst).results);
            } else if !op.is(Trait::pure) || is_any(&op.operands()) {
                unknown.extend(&func.inst(inst).results);
            }
        }
        if unknown.len() == count {
            return unknown;
        }
    }
}
