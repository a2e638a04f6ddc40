//! Program order between lanes: where a barrier must stand because of global memory. Where one must
//! because buffers share bytes, [`crate::passes::allocate`] decides.
//!
//! Accesses of one program happen in program order. Lanes run ahead of each other, so a barrier
//! separates two accesses of one argument that do not commute, unless every address stays in one
//! lane. Distinct arguments never alias: the launch sees to that. One barrier settles everything.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::Lowering;
use crate::ir::{Effect, Func, Inst, MemoryOrder, Op, Region, Value, op};
use crate::layout::LinearLayout;
use crate::passes::linear::Linear;

/// Why accesses with the same owner need no barrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The first lane of the first warp does them: what a scalar is stored or combined by.
    First,
    /// Offsets that count up by one over a whole tile, the first of them modulo the elements of the tile. The layout gives each
    /// address to one lane.
    Of(Linear, Rc<LinearLayout>),
}

/// The owner of an access, or of all that have an effect.
type Owned = Option<Owner>;

/// One access, as far as its order matters.
#[derive(Clone, Debug)]
pub(super) struct Touch {
    pub(super) owned: Owned,
    pub(super) effect: Effect,
}

/// What lanes may have done since the last barrier.
#[derive(Clone, Debug, Default)]
pub(super) struct Pending {
    /// The effects on each argument, with what owns the addresses of all accesses that have them.
    global: BTreeMap<(usize, Effect), Owned>,
}

impl Pending {
    /// Adds what another path may have done.
    pub(super) fn merge(&mut self, other: &Pending) {
        for (&(argument, effect), owned) in &other.global {
            let owned = owned.clone();
            self.touch(argument, Touch { owned, effect });
        }
    }

    fn touch(&mut self, argument: usize, Touch { owned, effect }: Touch) {
        let known = self.global.entry((argument, effect));
        let known = known.or_insert_with(|| owned.clone());
        if *known != owned {
            *known = None;
        }
    }

    /// Whether an access must not overtake an earlier one.
    fn conflicts(&self, argument: usize, later: &Touch) -> bool {
        let mut earlier = self
            .global
            .iter()
            .filter(|((other, _), _)| *other == argument);
        earlier.any(|((_, effect), owned)| {
            let ordered = owned.is_some() && *owned == later.owned;
            !effect.commutes(later.effect) && !ordered
        })
    }
}

impl Lowering<'_> {
    /// Emits a barrier.
    pub(super) fn barrier(&mut self) {
        self.builder.emit(Op::Barrier(op::Barrier {}), &[]);
        self.pending = Pending::default();
    }

    /// Before an atomic: one that releases comes after all that the lanes have done.
    pub(super) fn release(&mut self, order: Option<MemoryOrder>) {
        if order.is_some_and(MemoryOrder::releases) {
            self.barrier();
        }
    }

    /// Before an access of an argument: waits for earlier ones that it must not overtake.
    pub(super) fn order_access(&mut self, argument: usize, touch: Touch) {
        if self.pending.conflicts(argument, &touch) {
            self.barrier();
        }
        self.pending.touch(argument, touch);
    }

    /// At the head of a loop: an iteration may follow any part of the one before. Returns what may be
    /// pending where the loop is entered.
    pub(super) fn enter_loop(&mut self, regions: &[Region]) -> Pending {
        let (insts, inside) = within(self.block, regions);
        for inst in insts {
            let op = self.block.op(inst);
            if let Some(access) = op.access()
                && let Some(argument) = self.block.parameter_index(access.base)
            {
                let is_steady = |owner: &Owner| match owner {
                    Owner::First => true,
                    Owner::Of(from, _) => !from.symbols().any(|it| inside.contains(&it)),
                };
                let effect = access.effect;
                let owned = self.owned(access.offsets, effect).filter(is_steady);
                // Copies end at any time.
                let copies = matches!(op, Op::CopyLanes(_) | Op::CopyRun(_) | Op::CopyRow(_));
                let owned = owned.filter(|_| !copies);
                self.pending.touch(argument, Touch { owned, effect });
            }
        }
        self.loops += 1;
        self.pending.clone()
    }

    /// Who accesses each address, if one lane does.
    pub(super) fn owned(&self, offsets: Value, effect: Effect) -> Owned {
        if let Some(first) = self.first(offsets, effect) {
            return Some(first);
        }
        let (layout, facts) = (self.layout(offsets), self.indices.fact(offsets));
        let bits = layout.tile_bits();
        let distinct = layout.dim_bits().len() == 1
            && facts.axis(0).counting() == bits
            && !layout.is_replicated();
        let from = || match self.indices.origin(offsets) {
            Some(origin) => origin
                .modulo(bits, &|value| self.indices.fact(value).divisor())
                .with(&|value| self.firsts[value]),
            None => Linear::symbol(self.firsts[offsets]),
        };
        distinct.then(|| Owner::Of(from(), layout))
    }

    /// The first lane, if it alone does what has this effect at these offsets. A scalar is read by all.
    fn first(&self, offsets: Value, effect: Effect) -> Owned {
        let alone = match effect {
            Effect::Reads => false,
            Effect::Writes | Effect::Combines(_) | Effect::Fetches(_) => {
                self.block.ty(offsets).is_scalar()
            }
        };
        alone.then_some(Owner::First)
    }

    /// After the body of a loop, before it is emitted: it may not have run, so what was pending before it still is.
    pub(super) fn leave_loop(&mut self, entered: &Pending) {
        self.loops -= 1;
        self.pending.merge(entered);
    }
}

/// The instructions of regions, and the values that are made there.
fn within(func: &Func, regions: &[Region]) -> (Vec<Inst>, BTreeSet<Value>) {
    let mut insts = Vec::new();
    for &region in regions {
        func.walk(region, &mut |inst| insts.push(inst));
    }
    let inner = insts.iter().flat_map(|&inst| func.op(inst).regions());
    let all = regions.iter().copied().chain(inner);
    let mut values: BTreeSet<Value> = all
        .flat_map(|region| func.region(region).parameters.clone())
        .collect();
    values.extend(
        insts
            .iter()
            .flat_map(|&inst| func.inst(inst).results.clone()),
    );
    (insts, values)
}
