//! Which tiles are kept in scratch memory rather than recomputed at each use.
//!
//! A tile is kept when recomputing it would read changed memory, when an op needs it in memory, when
//! its uses would repeat more work than writing and reading it costs, or when it ends a long chain of
//! recomputed ones.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::entity::{Entity, EntityMap};
use crate::ir::{Cache, Effect, Func, Inst, Op, Region, Trait, Value, op};
use crate::passes::indices::Indices;
use crate::passes::long_sums::LONGEST_CHAIN;
use crate::target::{Bounds, Target};

/// One op that needs a tile's elements.
#[derive(Clone, Copy, Debug)]
struct Use {
    root: Inst,
    /// How often each element is computed for it.
    weight: u64,
    /// Whether element `i` is needed only for the root's element `i`.
    same_place: bool,
}

/// Where an instruction stands.
#[derive(Clone, Debug, Default)]
struct Place {
    order: usize,
    region: usize,
    /// First and last order of each loop around it.
    loops: Vec<(usize, usize)>,
}

/// The decisions.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    kept: BTreeSet<Value>,
    in_place: BTreeMap<Value, Value>,
    costs: Vec<u64>,
    branching: BTreeSet<Value>,
}

impl Plan {
    /// Whether a tile that could be recomputed is kept instead.
    pub(super) fn is_kept(&self, value: Value) -> bool {
        self.kept.contains(&value)
    }

    /// Whether computing an element may branch for each lane: much code, which is not unrolled.
    pub(super) fn is_branching(&self, value: Value) -> bool {
        self.branching.contains(&value) && !self.is_kept(value)
    }

    /// The tile carried by a loop that a result of an `if` in its body replaces, when both can be
    /// in one place: the result is only handed on to the next iteration, and the `if` is the last
    /// to read the carried tile.
    pub(super) fn replaced(&self, result: Value) -> Option<Value> {
        self.in_place.get(&result).copied()
    }

    /// About how many instructions one element of a value takes where it is used.
    pub(super) fn cost(&self, value: Value) -> u64 {
        if self.is_kept(value) {
            return 1;
        }
        self.costs[value.index()]
    }

    pub(super) fn new(func: &Func, target: &Target, bounds: Bounds) -> Self {
        let mut planner = Planner {
            func,
            target,
            bounds,
            places: BTreeMap::new(),
            stores: BTreeMap::new(),
            uses: EntityMap::filled(func.value_count(), BTreeMap::new()),
            needed: BTreeSet::new(),
            kept: BTreeSet::new(),
            costs: vec![1; func.value_count()],
            chains: vec![0; func.value_count()],
            branching: BTreeSet::new(),
            affine: BTreeSet::new(),
            stated: BTreeSet::new(),
            definitions: func.definitions(),
            indices: OnceCell::new(),
        };
        planner.place(func.body(), &mut Vec::new());
        for inst in func.all_insts() {
            planner.survey(inst);
        }
        for inst in func.all_insts().into_iter().rev() {
            planner.decide(inst);
        }
        let in_place = planner.replacements();
        Self {
            kept: planner.kept,
            in_place,
            costs: planner.costs,
            branching: planner.branching,
        }
    }
}

pub(super) struct Planner<'a> {
    pub(super) func: &'a Func,
    target: &'a Target,
    bounds: Bounds,
    places: BTreeMap<Inst, Place>,
    /// The places of what writes through each pointer, in order.
    stores: BTreeMap<Value, Vec<usize>>,
    uses: EntityMap<Value, BTreeMap<Inst, Use>>,
    needed: BTreeSet<Value>,
    kept: BTreeSet<Value>,
    costs: Vec<u64>,
    /// The ops between each value and what need not be recomputed.
    chains: Vec<u32>,
    /// Values computed from masked loads and gathers, whose code has a branch for each lane.
    branching: BTreeSet<Value>,
    /// `i64` values that are sums and products of scalars and positions, and masks that compare
    /// them: index arithmetic, which is done on scalars for whole vectors.
    pub(super) affine: BTreeSet<Value>,
    /// Masks that scalars say to hold everywhere or not: what they mask is made without them too.
    pub(super) stated: BTreeSet<Value>,
    pub(super) definitions: EntityMap<Value, Option<Inst>>,
    /// The facts of offsets, for the functions in which a load may be overwritten.
    indices: OnceCell<Indices>,
}

/// Whether a tile that the op makes can be computed element by element.
fn is_inline(op: &Op) -> bool {
    op.is(Trait::pointwise) || matches!(op, Op::Load(_) | Op::Gather(_))
}

impl Planner<'_> {
    fn place(&mut self, region: Region, loops: &mut Vec<(usize, usize)>) {
        for &inst in &self.func.region(region).insts {
            let order = self.places.len();
            let place = Place {
                order,
                region: region.index(),
                loops: loops.clone(),
            };
            self.places.insert(inst, place);
            let op = self.func.op(inst);
            let mut length = 0;
            for nested in op.regions() {
                self.func.walk(nested, &mut |_| length += 1);
            }
            let repeats = matches!(op, Op::For(_) | Op::While(_));
            if repeats {
                loops.push((order, order + length));
            }
            for nested in op.regions() {
                self.place(nested, loops);
            }
            if repeats {
                loops.pop();
            }
        }
    }

    /// Costs and stores, operands before results.
    fn survey(&mut self, inst: Inst) {
        let op = self.func.op(inst);
        if let Some(access) = op.access()
            && access.effect != Effect::Reads
        {
            let order = self.places[&inst].order;
            // What orders memory is for all arrays what a store is for one.
            let ordered = op.memory_order().is_some();
            let all = self.func.arguments().iter().copied().filter(|_| ordered);
            for base in all.chain((!ordered).then_some(access.base)) {
                self.stores.entry(base).or_default().push(order);
            }
        } else if let Op::Dot(dot) = op {
            let operand = self.func.ty(dot.a).dtype();
            // Steps of tensor cores read each element once.
            if operand.is_some_and(|it| dot.precision.is_chain(it)) {
                self.needed.extend([dot.a, dot.b]);
            }
        } else if let Op::Gather(op::Gather { x, .. }) = op {
            self.needed.insert(*x);
        } else if let Op::Load(load) = op
            && load.cache == Some(Cache::Volatile)
        {
            self.needed.extend(&self.func.inst(inst).results);
        }
        let Some(&result) = self.func.inst(inst).results.first() else {
            return;
        };
        if self.func.ty(result).is_scalar() || !is_inline(op) {
            for &result in &self.func.inst(inst).results {
                self.costs[result.index()] = u64::from(!self.func.ty(result).is_scalar());
            }
            return;
        }
        let chains = op.operands().into_iter();
        let chain = chains.map(|operand| self.chains[operand.index()]).max();
        let chain = chain.unwrap_or(0) + 1;
        if chain > LONGEST_CHAIN {
            self.needed.insert(result);
            return;
        }
        self.chains[result.index()] = chain;
        if self.is_affine(op, self.func.ty(result)) {
            self.affine.insert(result);
            self.stated.extend(self.is_stated(op).then_some(result));
            self.costs[result.index()] = 0;
            return;
        }
        let mut operands = op.operands().into_iter();
        if self.has_branches(op) || operands.any(|operand| self.branching.contains(&operand)) {
            self.branching.insert(result);
        }
        let operands: u64 = op
            .operands()
            .iter()
            .map(|operand| self.costs[operand.index()])
            .sum();
        let cost = operands + self.own_cost(op);
        self.costs[result.index()] = cost.min(10_000);
    }

    /// For each result of an `if` that may take the place of a carried tile, that tile.
    fn replacements(&self) -> BTreeMap<Value, Value> {
        let mut operands: BTreeMap<Value, usize> = BTreeMap::new();
        let insts = self.func.all_insts();
        for &inst in &insts {
            for operand in self.func.op(inst).operands() {
                *operands.entry(operand).or_default() += 1;
            }
        }
        let mut found = BTreeMap::new();
        for &inst in &insts {
            let Op::For(op::For { body, .. }) = self.func.op(inst) else {
                continue;
            };
            for each in self.func.carried(inst) {
                let (next, carried) = (each.yielded[0], each.parameters[0]);
                let tile = !self.func.ty(next).is_scalar() && operands[&next] == 1;
                if tile && self.is_last_reader(*body, next, carried) {
                    found.insert(next, carried);
                }
            }
        }
        found
    }

    /// Whether `result` is of an `if` in the body of a loop after which nothing reads `carried`.
    fn is_last_reader(&self, body: Region, result: Value, carried: Value) -> bool {
        let Some(inst) = self.definitions[result] else {
            return false;
        };
        let place = &self.places[&inst];
        if !matches!(self.func.op(inst), Op::If(_)) || place.region != body.index() {
            return false;
        }
        let mut end = place.order;
        for region in self.func.op(inst).regions() {
            self.func.walk(region, &mut |nested| {
                end = end.max(self.places[&nested].order);
            });
        }
        let mut roots = self.uses[carried].keys();
        roots.all(|root| self.places[root].order <= end)
    }

    /// Uses come before what they use: instructions arrive in reverse order.
    fn decide(&mut self, inst: Inst) {
        let op = self.func.op(inst).clone();
        let results = &self.func.inst(inst).results;
        let mut passed_on = None;
        if let &[result] = &results[..]
            && is_inline(&op)
            && !self.func.ty(result).is_scalar()
        {
            let uses = std::mem::take(&mut self.uses[result]);
            let uses: Vec<Use> = uses.into_values().collect();
            if self.keeps(inst, &op, result, &uses) {
                self.kept.insert(result);
            } else {
                passed_on = Some(uses);
            }
        }
        let uses = passed_on.unwrap_or_else(|| {
            vec![Use {
                root: inst,
                weight: 1,
                same_place: true,
            }]
        });
        let same_place =
            op.is(Trait::elementwise) || matches!(op, Op::Load(_) | Op::Store(_) | Op::Yield(_));
        for operand in op.operands() {
            if self.func.ty(operand).is_scalar() {
                continue;
            }
            let repeats = self.repeats(inst);
            for used in &uses {
                self.add_use(
                    operand,
                    Use {
                        root: used.root,
                        weight: used.weight.saturating_mul(repeats),
                        same_place: used.same_place && same_place,
                    },
                );
            }
        }
    }

    /// How often an op asks for one element of its operand: whole vectors share it.
    fn repeats(&self, inst: Inst) -> u64 {
        let Some((_, map)) = self.func.view(inst) else {
            return 1;
        };
        let repeated = map.columns().iter().filter(|&&column| column == 0);
        let repeats = 1_u64 << repeated.count();
        match map.columns().first() {
            Some(0) => (repeats / self.target.nest_lanes as u64).max(1),
            Some(_) | None => repeats,
        }
    }

    fn add_use(&mut self, value: Value, new: Use) {
        let known = self.uses[value].entry(new.root);
        known
            .and_modify(|old| {
                if old.same_place && new.same_place {
                    old.weight = old.weight.max(new.weight);
                } else {
                    old.weight = old.weight.saturating_add(new.weight);
                    old.same_place = false;
                }
            })
            .or_insert(new);
    }

    fn keeps(&self, inst: Inst, op: &Op, result: Value, uses: &[Use]) -> bool {
        if self.needed.contains(&result) {
            return true;
        }
        if op.is_checked() && self.bounds == Bounds::Checked {
            let region = self.places[&inst].region;
            let roots = uses.iter().map(|used| &self.places[&used.root]);
            if !roots.into_iter().any(|root| root.region == region) {
                return true;
            }
        }
        if let Op::Load(op::Load { base, offsets, .. }) = op
            && self.is_overwritten(inst, *base, *offsets, uses)
        {
            return true;
        }
        let depth = self.places[&inst].loops.len();
        let evaluations = uses.iter().fold(0u64, |sum, used| {
            let deeper = self.places[&used.root].loops.len().saturating_sub(depth);
            sum.saturating_add(
                used.weight
                    .saturating_mul(8u64.saturating_pow(deeper as u32)),
            )
        });
        let repeated = self.costs[result.index()].saturating_mul(evaluations.saturating_sub(1));
        evaluations > 1 && repeated > evaluations.saturating_mul(2).saturating_add(6)
    }

    /// Whether a store may change what a load reads before all uses have read it.
    fn is_overwritten(&self, load: Inst, base: Value, offsets: Value, uses: &[Use]) -> bool {
        let Some(stores) = self.stores.get(&base) else {
            return false;
        };
        let from = self.places[&load].order;
        uses.iter().any(|used| {
            let place = &self.places[&used.root];
            let stored = |first: usize, end: usize| {
                let next = stores.partition_point(|&at| at < first);
                stores.get(next).is_some_and(|&at| at < end)
            };
            let between = stored(from + 1, place.order);
            let mut repeated = place.loops.iter().filter(|(first, _)| *first > from);
            let again = repeated.any(|&(first, last)| stored(first, last + 1));
            let writes = stored(place.order, place.order + 1);
            between || again || writes && !self.is_in_place(used, offsets)
        })
    }

    /// Whether a store writes each element only where that same element was read.
    fn is_in_place(&self, used: &Use, offsets: Value) -> bool {
        let Op::Store(store) = self.func.op(used.root) else {
            return false;
        };
        let indices = || self.indices.get_or_init(|| Indices::of(self.func));
        used.same_place && store.offsets == offsets && indices().are_distinct(offsets)
    }
}
