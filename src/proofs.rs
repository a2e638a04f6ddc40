//! Which launches of a kernel are known to be in bounds. A proof belongs to the IR that was launched, so
//! that it never speaks for another trace of the same kernel.

use exactile_core::ir::Grid;
use exactile_core::launch::{Launch, Passed};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use crate::bound::FEW;

/// How many kinds of launches of a kernel are remembered.
const MOST_PROOFS: usize = 1 << 16;

/// All that the accesses of a kernel can depend on but memory.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Reach {
    grid: Grid,
    /// For each argument the bytes of its memory, or the bits of the number.
    arguments: SmallVec<[u64; FEW]>,
}

impl Reach {
    pub(crate) fn of(launch: &Launch<'_>) -> Self {
        let mut arguments = SmallVec::new();
        arguments.extend(launch.arguments.iter().map(word));
        Self {
            grid: launch.grid,
            arguments,
        }
    }

    /// Whether it is that of a launch.
    pub(crate) fn is_of(&self, launch: &Launch<'_>) -> bool {
        let mut pairs = self.arguments.iter().zip(launch.arguments);
        self.grid == launch.grid
            && self.arguments.len() == launch.arguments.len()
            && pairs.all(|(&known, argument)| known == word(argument))
    }
}

fn word(argument: &Passed) -> u64 {
    match argument {
        Passed::Memory { bytes, .. } => *bytes,
        Passed::Scalar(literal) => literal.bits,
    }
}

/// The launches of a kernel that are known to be in bounds.
#[derive(Default)]
pub(crate) struct Proofs {
    known: FxHashSet<Reach>,
}

impl Proofs {
    pub(crate) fn hold(&self, reach: &Reach) -> bool {
        self.known.contains(reach)
    }

    /// Notes a checked launch without an error.
    pub(crate) fn add(&mut self, reach: Reach) {
        // Forgetting costs a checked launch and nothing else.
        if self.known.len() >= MOST_PROOFS {
            self.known.clear();
        }
        self.known.insert(reach);
    }
}
