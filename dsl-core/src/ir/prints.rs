//! How long the record of what a launch prints is, and a print in it: see `launch::printed`.

use super::op;

/// The words before the prints.
pub const COUNTERS: i64 = 2;

/// The words of a print before its elements.
pub const HEADER: i64 = 2;

/// The words of the record of a launch.
pub const WORDS: i64 = 1 << 16;

impl op::Print {
    /// The words that so many elements take.
    #[must_use]
    pub fn words_taken(&self, elements: i64) -> i64 {
        HEADER + elements * if self.mask.is_some() { 2 } else { 1 }
    }
}
