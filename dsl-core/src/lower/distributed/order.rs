//! Program order between lanes: where a barrier must stand.
//!
//! Accesses of one program happen in program order. Lanes run ahead of each other, so a barrier
//! separates two accesses of one argument, one of them a store, unless every address stays in one
//! lane. Distinct arguments never alias: the launch sees to that. One barrier settles everything.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::Lowering;
use crate::ir::{Op, Region, Value};
use crate::layout::LinearLayout;

/// One access, as far as its order matters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Touch {
    /// The offsets and their layout, when these give each address to one lane; `None` otherwise.
    pub(super) owned: Option<(Value, Rc<LinearLayout>)>,
    pub(super) writes: bool,
}

impl Touch {
    fn conflicts(&self, later: &Touch) -> bool {
        let ordered = self.owned.is_some() && self.owned == later.owned;
        (self.writes || later.writes) && !ordered
    }
}

/// What lanes may have done since the last barrier.
#[derive(Clone, Debug, Default)]
pub(super) struct Pending {
    /// Accesses of each argument.
    global: BTreeMap<usize, BTreeSet<Touch>>,
    /// Whether the scratch area of shared memory was in use.
    shared: bool,
}

impl Pending {
    /// Adds what another path may have done.
    pub(super) fn merge(&mut self, other: &Pending) {
        for (&argument, touches) in &other.global {
            self.global
                .entry(argument)
                .or_default()
                .extend(touches.iter().cloned());
        }
        self.shared |= other.shared;
    }
}

impl Lowering<'_> {
    /// Emits a barrier.
    pub(super) fn barrier(&mut self) {
        self.builder.emit(Op::Barrier {}, &[]);
        self.pending = Pending::default();
    }

    /// Before an access of an argument: waits for earlier ones that it must not overtake.
    pub(super) fn order_access(&mut self, argument: usize, touch: Touch) {
        let earlier = self.pending.global.get(&argument);
        if earlier.is_some_and(|earlier| earlier.iter().any(|other| other.conflicts(&touch))) {
            self.barrier();
        }
        self.pending
            .global
            .entry(argument)
            .or_default()
            .insert(touch);
    }

    /// Before storing to the scratch area: waits for its last users.
    pub(super) fn begin_shared(&mut self) {
        if self.pending.shared {
            self.barrier();
        }
    }

    /// Between the stores to the scratch area and the loads from it.
    pub(super) fn publish_shared(&mut self) {
        self.barrier();
        self.pending.shared = true;
    }

    /// At the head of a loop: an iteration may follow any part of the one before. Returns what may be
    /// pending where the loop is entered.
    pub(super) fn enter_loop(&mut self, regions: &[Region]) -> Pending {
        let block = self.block;
        for &region in regions {
            block.walk(region, &mut |inst| {
                let (base, writes) = match block.op(inst) {
                    Op::Load { base, .. } => (*base, false),
                    Op::Store { base, .. } => (*base, true),
                    _ => return,
                };
                if let Some(argument) = block.parameter_index(base) {
                    let touch = Touch {
                        owned: None,
                        writes,
                    };
                    self.pending
                        .global
                        .entry(argument)
                        .or_default()
                        .insert(touch);
                }
            });
        }
        self.pending.shared = true;
        self.pending.clone()
    }

    /// After a loop: it may not have run, so what was pending before it still is.
    pub(super) fn leave_loop(&mut self, entered: &Pending) {
        self.pending.merge(entered);
    }
}
