//! What programs hand each other: who has seen what of whom, by atomics that release and acquire.
//!
//! Programs run one after the other here, so a program sees all that those before it did. Elsewhere it sees
//! only what came before a release that it has acquired; what else it touches is a fault.

use std::collections::BTreeMap;

use crate::ir::MemoryOrder;

/// For each program, the number of releases that there were when it last released to whoever knows this.
type Seen = BTreeMap<u64, u64>;

/// The releases of a launch.
#[derive(Debug, Default)]
pub(super) struct Handed {
    /// How many releases there were.
    releases: u64,
    /// The program that runs, and what it has seen.
    running: (u64, Seen),
    /// What those see that acquire an element, by argument and position.
    left: BTreeMap<(usize, usize), Seen>,
}

impl Handed {
    /// The time of an access.
    pub(super) fn now(&self) -> u64 {
        self.releases
    }

    /// Whether a program has seen what another one did at some time.
    pub(super) fn has_seen(&self, program: u64, other: u64, time: u64) -> bool {
        let (running, seen) = &self.running;
        *running == program && seen.get(&other).is_some_and(|&until| until > time)
    }

    /// An atomic access of a program to a position of an argument: its order, and whether it stores. One that does not
    /// releases nothing.
    pub(super) fn touch(
        &mut self,
        program: u64,
        at: (usize, usize),
        order: Option<(MemoryOrder, bool)>,
    ) {
        let Some((order, stores)) = order else { return };
        if self.running.0 != program {
            self.running = (program, Seen::new());
        }
        if order.acquires()
            && let Some(left) = self.left.get(&at)
        {
            join(&mut self.running.1, left);
        }
        if order.releases() && stores {
            self.releases += 1;
            let left = self.left.entry(at).or_default();
            join(left, &self.running.1);
            left.insert(program, self.releases);
        }
    }
}

fn join(seen: &mut Seen, more: &Seen) {
    for (&program, &until) in more {
        let known = seen.entry(program).or_default();
        *known = until.max(*known);
    }
}
