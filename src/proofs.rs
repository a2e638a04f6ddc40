//! Which launches of a kernel are known to be in bounds. A proof belongs to the IR that was launched, so
//! that it never speaks for another trace of the same kernel.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use exactile_core::ir::Grid;
use exactile_core::launch::{Launch, Passed};

/// How many kinds of launches of a kernel are remembered.
const MOST_PROOFS: usize = 1 << 16;

/// All that the accesses of a kernel can depend on but memory, and the conditions that code relies on.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Reach {
    grid: Grid,
    /// The arguments, as if all memory began at 0.
    arguments: Vec<Passed>,
}

impl Reach {
    pub(crate) fn of(launch: &Launch<'_>) -> Self {
        let arguments = launch.arguments.iter().map(|&argument| match argument {
            Passed::Memory { bytes, access, .. } => Passed::Memory {
                address: 0,
                bytes,
                access,
            },
            Passed::Scalar(_) => argument,
        });
        Self {
            grid: launch.grid,
            arguments: arguments.collect(),
        }
    }

    /// A launch that reaches as far.
    pub(crate) fn launch(&self) -> Launch<'_> {
        Launch::new(self.grid, &self.arguments)
    }
}

/// The launches of a kernel that are known to be in bounds.
pub(crate) struct Proofs {
    possible: bool,
    known: Mutex<HashSet<Reach>>,
}

impl Proofs {
    /// `possible`: whether the accesses ignore memory.
    pub(crate) fn new(possible: bool) -> Self {
        Self {
            possible,
            known: Mutex::default(),
        }
    }

    fn known(&self) -> MutexGuard<'_, HashSet<Reach>> {
        // A panic elsewhere leaves the set whole: each change is one insertion.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a checked launch without an error proves later ones in bounds.
    pub(crate) fn are_possible(&self) -> bool {
        self.possible
    }

    pub(crate) fn hold(&self, launch: &Reach) -> bool {
        self.possible && self.known().contains(launch)
    }

    /// Notes a checked launch without an error.
    pub(crate) fn add(&self, launch: Reach) {
        if !self.possible {
            return;
        }
        let mut known = self.known();
        // Forgetting costs a checked launch and nothing else.
        if known.len() >= MOST_PROOFS {
            known.clear();
        }
        known.insert(launch);
    }
}
