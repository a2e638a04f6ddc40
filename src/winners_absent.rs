//! What stands for the tuner's file of winners without the feature `tuner-file`.

use std::collections::BTreeSet;
use std::path::Path;

use crate::error::Result;
pub use crate::found::{Known, Provenance};
pub(crate) use crate::found::{Problem, Winner};

/// No file of winners.
#[derive(Clone, Debug)]
pub(crate) struct WinnersFile;

/// Nothing says what runs.
#[derive(Debug)]
pub(crate) struct Trial;

impl Trial {
    /// What stands for all candidates.
    pub(crate) const ALL: &str = "all candidates";
}

impl WinnersFile {
    /// A tuner's memory that holds nothing.
    pub(crate) fn none() -> Self {
        Self
    }

    /// It is nowhere.
    pub(crate) fn path(&self) -> Option<&Path> {
        None
    }

    /// Nothing is on file.
    pub(crate) fn nearest(&self, _: &Problem) -> Result<Option<Known>> {
        Ok(None)
    }

    /// Forgets the winner.
    pub(crate) fn keep(&self, _: Problem, _: Winner) -> Result<()> {
        Ok(())
    }

    /// Says nothing.
    pub(crate) fn begin(&self, _: &Problem, _: &str) -> Result<Trial> {
        Ok(Trial)
    }

    /// Forgets the crash.
    pub(crate) fn note_crash(&self, _: &Problem, _: &str) -> Result<()> {
        Ok(())
    }

    /// Nobody knows of a crash.
    pub(crate) fn crashed(&self, _: &Problem) -> Result<BTreeSet<String>> {
        Ok(BTreeSet::new())
    }
}
