//! The record in which checked launches keep their least out-of-bounds access.

use exactile_core::target::BoundsError;

use crate::driver::{Context, DeviceBuffer, Stream};
use crate::error::Result;

/// Nonzero while a lane reads or writes the record; only its low half is used. The record is an
/// array of 64-bit words.
pub(crate) const LOCK: usize = 0;

/// Nonzero once there is an error.
pub(crate) const PRESENT: usize = 1;

/// The fields of the least error: program, site, element, offset.
pub(crate) const FIELDS: usize = 2;

/// Words of the record.
const WORDS: usize = 6;

/// Where checked launches note the least out-of-bounds access.
#[derive(Debug)]
pub struct ErrorRecord {
    buffer: DeviceBuffer,
}

impl ErrorRecord {
    /// The address that a launch passes.
    pub(crate) fn address(&self) -> u64 {
        self.buffer.address()
    }

    /// The least error of the launches in `stream` since the last call, waiting for them.
    pub fn take(&mut self, stream: &Stream) -> Result<Option<BoundsError>> {
        let mut bytes = [0u8; WORDS * 8];
        self.buffer.copy_to_host(&mut bytes, stream)?;
        let word = |index: usize| {
            let mut word = [0u8; 8];
            word.copy_from_slice(&bytes[index * 8..index * 8 + 8]);
            u64::from_ne_bytes(word)
        };
        if word(PRESENT) == 0 {
            return Ok(None);
        }
        self.buffer.fill(0, stream)?;
        let field = |index: usize| word(FIELDS + index);
        Ok(Some(BoundsError {
            program: field(0),
            site: field(1),
            element: field(2),
            offset: field(3) as i64,
        }))
    }
}

impl Context {
    /// A record for the errors of checked launches.
    pub fn error_record(&self) -> Result<ErrorRecord> {
        let buffer = self.allocate(WORDS * 8)?;
        Ok(ErrorRecord { buffer })
    }
}
