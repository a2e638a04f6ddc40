//! Which launches of a kernel are known to be in bounds. A proof belongs to the IR that was launched, so
//! that it never speaks for another trace of the same kernel.

use exactile_core::ir::Grid;
use exactile_core::launch::{Launch, Numbers, Passed};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use crate::bound::FEW;

/// How many kinds of launches of a kernel are remembered.
const MOST_PROOFS: usize = 1 << 16;

/// What the accesses of a kernel depend on where they do not on memory: how far they reach.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Reach {
    grid: Grid,
    /// For each argument the bytes of its memory, or the bits of the number, if that is among those that count.
    arguments: SmallVec<[u64; FEW]>,
}

impl Reach {
    /// That of a launch of which these numbers count.
    pub(crate) fn of(launch: &Launch<'_>, numbers: Numbers) -> Self {
        let mut arguments = SmallVec::new();
        arguments.extend(words(launch, numbers));
        Self {
            grid: launch.grid,
            arguments,
        }
    }

    /// Whether it is that of a launch of which the same numbers count.
    pub(crate) fn is_of(&self, launch: &Launch<'_>, numbers: Numbers) -> bool {
        let mut pairs = self.arguments.iter().zip(words(launch, numbers));
        self.grid == launch.grid
            && self.arguments.len() == launch.arguments.len()
            && pairs.all(|(&known, word)| known == word)
    }
}

fn words(launch: &Launch<'_>, numbers: Numbers) -> impl Iterator<Item = u64> {
    let arguments = launch.arguments.iter().enumerate();
    arguments.map(move |(index, argument)| match argument {
        Passed::Memory { bytes, .. } => *bytes,
        Passed::Scalar(literal) if numbers.has(index) => literal.bits,
        Passed::Scalar(_) => 0,
    })
}

/// The launches of a kernel that are known to be in bounds.
#[derive(Default)]
pub(crate) struct Proofs {
    known: FxHashSet<Reach>,
    /// The last of them that was asked for: the next one mostly reaches as far.
    last: Option<Reach>,
}

impl Proofs {
    /// Whether a launch of which these numbers count is known.
    pub(crate) fn hold(&mut self, launch: &Launch<'_>, numbers: Numbers) -> bool {
        if self
            .last
            .as_ref()
            .is_some_and(|it| it.is_of(launch, numbers))
        {
            return true;
        }
        if self.known.is_empty() {
            return false;
        }
        let found = self.known.get(&Reach::of(launch, numbers));
        if let Some(found) = found {
            self.last = Some(found.clone());
        }
        found.is_some()
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
