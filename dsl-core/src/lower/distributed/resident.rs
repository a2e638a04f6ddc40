//! Counts that a loop carries only to add to them: `counts + histogram(..)`, iteration by iteration.
//!
//! Such a tile need not be a tile while the loop runs. Its counters stay in shared memory, each
//! histogram increments them in place, and the loop waits for nobody. It is so when every value on
//! the way from one iteration to the next is used once on each path: as one side of an addition
//! whose other side is a histogram that nothing else uses, or handed on by a loop or a branch.

use std::collections::{BTreeMap, BTreeSet};

use crate::ir::{BinaryOp, Func, Inst, Op, Region, Value, op};

/// The carried counts of a function.
#[derive(Clone, Debug, Default)]
pub(super) struct Residents {
    /// For each value that stands for counters in place, the parameter of the outermost loop.
    values: BTreeMap<Value, Value>,
}

impl Residents {
    /// The parameter of the outermost loop that a value belongs to, if it has no registers.
    pub(super) fn root(&self, value: Value) -> Option<Value> {
        self.values.get(&value).copied()
    }

    /// Whether a parameter of a loop begins the counters.
    pub(super) fn is_root(&self, parameter: Value) -> bool {
        self.root(parameter) == Some(parameter)
    }

    /// Gives the last counters registers after all; false if there are none.
    pub(super) fn drop_last(&mut self) -> bool {
        let Some(last) = self.values.values().max().copied() else {
            return false;
        };
        self.values.retain(|_, root| *root != last);
        true
    }

    pub(super) fn find(func: &Func) -> Self {
        let tracer = Tracer::new(func);
        let mut found = Self::default();
        for inst in func.all_insts() {
            let Op::For(op::For { body, .. }) = func.op(inst) else {
                continue;
            };
            for (position, &root) in func.region(*body).parameters[1..].iter().enumerate() {
                if found.values.contains_key(&root) {
                    continue;
                }
                let mut way = Way::default();
                if tracer.follow(root, *body, &mut way) == Some(position) && way.counts {
                    found
                        .values
                        .extend(way.values.into_iter().map(|value| (value, root)));
                }
            }
        }
        found
    }
}

/// The values between two iterations.
#[derive(Default)]
struct Way {
    values: BTreeSet<Value>,
    /// Whether a histogram is added on the way.
    counts: bool,
}

struct Tracer<'a> {
    func: &'a Func,
    /// The instructions that use each value, once for each use.
    users: BTreeMap<Value, Vec<Inst>>,
    definitions: crate::entity::EntityMap<Value, Option<Inst>>,
    region_of: BTreeMap<Inst, Region>,
    owner: BTreeMap<Region, Inst>,
}

impl<'a> Tracer<'a> {
    fn new(func: &'a Func) -> Self {
        let mut tracer = Self {
            func,
            users: BTreeMap::new(),
            definitions: func.definitions(),
            region_of: BTreeMap::new(),
            owner: BTreeMap::new(),
        };
        for inst in func.all_insts() {
            for operand in func.op(inst).operands() {
                tracer.users.entry(operand).or_default().push(inst);
            }
            for region in func.op(inst).regions() {
                tracer.owner.insert(region, inst);
                for &inner in &func.region(region).insts {
                    tracer.region_of.insert(inner, region);
                }
            }
        }
        for &inst in &func.region(func.body()).insts {
            tracer.region_of.insert(inst, func.body());
        }
        tracer
    }

    /// Follows `value` through `region` to its end: the position at which the region yields it.
    fn follow(&self, mut value: Value, region: Region, way: &mut Way) -> Option<usize> {
        loop {
            way.values.insert(value);
            let (next, direct) = self.only_user(value, region)?;
            let results = &self.func.inst(next).results;
            let op = self.func.op(next);
            if !direct {
                let Op::If(branch) = op else { return None };
                let end = self.follow(value, branch.on_true, way)?;
                let other = self.follow(value, branch.on_false, way)?;
                value = *results.get(end).filter(|_| end == other)?;
            } else if let Op::Yield(op::Yield { values }) = op {
                return values.iter().position(|&yielded| yielded == value);
            } else if let Op::For(op::For { init, body, .. }) = op {
                let position = init.iter().position(|&carried| carried == value)?;
                let parameter = self.func.region(*body).parameters[position + 1];
                let end = self.follow(parameter, *body, way)?;
                value = *results.get(end).filter(|_| end == position)?;
            } else if let Op::Binary(op::Binary {
                op: BinaryOp::Add,
                lhs,
                rhs,
            }) = op
            {
                let counts = if *lhs == value { *rhs } else { *lhs };
                self.is_spent_on(counts, next)?;
                way.values.insert(counts);
                way.counts = true;
                value = results[0];
            } else {
                return None;
            }
        }
    }

    /// The one instruction of `region` that uses `value`, and whether it does so itself.
    fn only_user(&self, value: Value, region: Region) -> Option<(Inst, bool)> {
        let mut found: Option<(Inst, bool)> = None;
        for &user in self.users.get(&value)? {
            let mut inst = user;
            while let Some(&holder) = self.region_of.get(&inst)
                && holder != region
            {
                let Some(&owner) = self.owner.get(&holder) else {
                    break;
                };
                inst = owner;
            }
            if self.region_of.get(&inst) != Some(&region) {
                continue;
            }
            let direct = inst == user;
            match found {
                Some((known, false)) if known == inst && !direct => {}
                Some(_) => return None,
                None => found = Some((inst, direct)),
            }
        }
        found
    }

    /// Whether `counts` is a histogram in the region of `user`, which alone uses it.
    fn is_spent_on(&self, counts: Value, user: Inst) -> Option<()> {
        let inst = self.definitions[counts]?;
        let once = self
            .users
            .get(&counts)
            .is_some_and(|users| users[..] == [user]);
        let here = self.region_of.get(&inst) == self.region_of.get(&user);
        let histogram = matches!(self.func.op(inst), Op::Histogram(_));
        (once && here && histogram).then_some(())
    }
}
