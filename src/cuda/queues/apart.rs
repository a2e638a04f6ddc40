//! Streams that are apart.

use super::Gpu;
use crate::apart::{APART, own_default};
use crate::error::Result;
use crate::stream::DEFAULT;

impl Gpu {
    /// A stream beside the others that who waits for the device does not wait for, and is told nothing of: its number.
    pub(crate) fn stream_apart(&self) -> Result<usize> {
        let number = self.stream()?;
        self.queues().list[number].owner |= APART;
        Ok(number)
    }

    /// Where it lies.
    pub(crate) fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// The default stream for this thread.
    pub(crate) fn default_stream(&self) -> usize {
        own_default(self.address()).unwrap_or(DEFAULT)
    }
}
