//! Program order between lanes: where a barrier must stand because of global memory. Where one must
//! because buffers share bytes, [`crate::passes::allocate`] decides.
//!
//! Accesses of one program happen in program order. Lanes run ahead of each other, so a barrier
//! separates two accesses of one argument that do not commute, unless every address stays in one
//! lane. Distinct arguments never alias: the launch sees to that. One barrier settles everything.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::Lowering;
use crate::ir::{Effect, MemoryOrder, Op, Region, Value, op};
use crate::layout::LinearLayout;

/// Why accesses with the same owner need no barrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The first lane of the first warp does them: what a scalar is stored or combined by.
    First,
    /// The offsets and their layout give each address to one lane.
    Of(Value, Rc<LinearLayout>),
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
        let block = self.block;
        for &region in regions {
            block.walk(region, &mut |inst| {
                let access = block.op(inst).access();
                if let Some(access) = access
                    && let Some(argument) = block.parameter_index(access.base)
                {
                    let touch = Touch {
                        owned: self.first(access.offsets, access.effect),
                        effect: access.effect,
                    };
                    self.pending.touch(argument, touch);
                }
            });
        }
        self.loops += 1;
        self.pending.clone()
    }

    /// The first lane, if it alone does what has this effect at these offsets. A scalar is read by all.
    pub(super) fn first(&self, offsets: Value, effect: Effect) -> Owned {
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
