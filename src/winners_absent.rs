//! What stands for the tuner's file of winners without the feature `tuner-file`.

use crate::error::Result;

/// The configuration that won, as its `Debug` form, and its time.
pub(crate) struct Winner {
    pub(crate) config: String,
    pub(crate) seconds: f64,
}

/// No file of winners.
#[derive(Clone, Debug)]
pub(crate) struct WinnersFile;

impl WinnersFile {
    /// A tuner's memory that holds nothing.
    pub(crate) fn none() -> Self {
        Self
    }

    /// Nothing is on file.
    pub(crate) fn find(&self, _: &str) -> Result<Option<Winner>> {
        Ok(None)
    }

    /// Forgets the winner.
    pub(crate) fn keep(&self, _: String, _: Winner) -> Result<()> {
        Ok(())
    }
}
