//! Code that knows where rows end: for launches whose bounds of tiles leave out a part of them.

use std::sync::OnceLock;

use exactile_core::facts::{Facts, Within};
use exactile_core::launch::Launch;
use exactile_core::passes::prefixes::Prefixes;
use exactile_core::target::{Options, Target};
use exactile_core::verify::BlockFunc;
use smallvec::SmallVec;

use super::Prepared;
use crate::error::Result;
use crate::slot::Slot;

/// The most ranges of bounds of tiles that code is made for: launches with others share code that knows none.
const MOST_PREFIXES: usize = 4;

/// What is made of a function for launches whose bounds of tiles are known to lie in some range.
pub(super) struct Narrower {
    prefixes: Prefixes,
    traced: BlockFunc,
    facts: Facts,
    made: [OnceLock<(Vec<Within>, Slot<Box<Prepared>>)>; MOST_PREFIXES],
}

impl Narrower {
    /// Nothing where a function has no such bounds, or they are known.
    pub(super) fn of(
        traced: BlockFunc,
        block: &BlockFunc,
        target: &Target,
        options: &Options,
        facts: &Facts,
    ) -> Option<Self> {
        let prefixes =
            (facts.within.is_empty()).then(|| Prefixes::of(block, target, options.determinism))?;
        (!prefixes.is_empty()).then(|| Self {
            prefixes,
            traced,
            facts: facts.clone(),
            made: Default::default(),
        })
    }

    /// What launches like this one are known to have.
    pub(super) fn known(&self, launch: &Launch<'_>) -> SmallVec<[Within; 2]> {
        self.prefixes.known(launch).collect()
    }

    /// What `make` makes for bounds like those of this launch; nothing where none of them leaves out a part of its tile,
    /// or too many others came before.
    pub(super) fn prepared(
        &self,
        launch: &Launch<'_>,
        make: impl FnOnce(&Facts, &BlockFunc) -> Result<Prepared>,
    ) -> Option<Result<&Prepared>> {
        let within = self.known(launch);
        if within.is_empty() {
            return None;
        }
        let places = self.made.iter();
        let mut places = places.map(|it| it.get_or_init(|| (within.to_vec(), Slot::default())));
        let (within, place) = places.find(|(known, _)| known[..] == within[..])?;
        let made = place.get_or_make(|| {
            let facts = Facts {
                within: within.clone(),
                ..self.facts.clone()
            };
            make(&facts, &self.traced).map(Box::new)
        });
        Some(made.map(|prepared| &**prepared))
    }
}
