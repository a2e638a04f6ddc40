//! Points in the streams of a GPU.

use exactile_nvptx::Event;

use super::failed;
use crate::error::Result;

/// A point in a stream of a GPU.
#[derive(Debug)]
pub(crate) struct Point(pub(super) Event);

impl Point {
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.0.synchronize().map_err(failed)
    }

    pub(crate) fn has_ended(&self) -> Result<bool> {
        self.0.has_ended().map_err(failed)
    }

    /// Of one GPU; an error otherwise.
    pub(crate) fn seconds_since(&self, earlier: &Self) -> Result<f64> {
        earlier.synchronize()?;
        let time = self.0.milliseconds_since(&earlier.0).map_err(failed)?;
        Ok(f64::from(time) / 1e3)
    }
}
