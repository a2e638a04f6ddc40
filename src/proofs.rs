//! Which launches of a kernel are known to be in bounds. A proof belongs to the IR that was launched, so
//! that it never speaks for another trace of the same kernel.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use exactile_core::ir::Grid;

use crate::bound::Bound;

/// How many kinds of launches of a kernel are remembered.
const MOST_PROOFS: usize = 1 << 16;

/// All that the accesses of a kernel can depend on but memory.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Proven {
    grid: Grid,
    /// For each argument the bytes of its memory, or the bits of the number.
    arguments: Vec<u64>,
}

impl Proven {
    pub(crate) fn of(grid: Grid, arguments: &[Bound<'_>]) -> Self {
        let values = arguments.iter().map(|argument| match argument {
            Bound::Read(..) | Bound::ReadWrite(..) => argument.bytes(),
            Bound::Scalar(literal) => literal.bits,
        });
        Self {
            grid,
            arguments: values.collect(),
        }
    }
}

/// The launches of a kernel that are known to be in bounds.
pub(crate) struct Proofs {
    possible: bool,
    known: Mutex<BTreeSet<Proven>>,
}

impl Proofs {
    /// `possible`: whether the accesses ignore memory.
    pub(crate) fn new(possible: bool) -> Self {
        Self {
            possible,
            known: Mutex::default(),
        }
    }

    fn known(&self) -> MutexGuard<'_, BTreeSet<Proven>> {
        // A panic elsewhere leaves the set whole: each change is one insertion.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a checked launch without an error proves later ones in bounds.
    pub(crate) fn are_possible(&self) -> bool {
        self.possible
    }

    pub(crate) fn hold(&self, launch: &Proven) -> bool {
        self.possible && self.known().contains(launch)
    }

    /// Notes a checked launch without an error.
    pub(crate) fn add(&self, launch: Proven) {
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
