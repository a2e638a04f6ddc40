//! What came of each way to run a program, counted.

use std::collections::BTreeMap;

use serde::Serialize;

use super::subject::{Compared, Subject};

/// The programs of a way, by what came of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Count {
    /// Those with the bits of the interpreter.
    pub same: usize,
    /// Those with other bits, and those that could not be run.
    pub wrong: usize,
    /// Those that have no such way.
    pub absent: usize,
}

/// The programs of each way; `None` is the run that says what is right.
pub type Counts = BTreeMap<Option<Subject>, Count>;

impl Count {
    /// Counts a program.
    pub(super) fn note<E>(&mut self, compared: &Result<Compared, E>) {
        match compared {
            Ok(Compared::Same) => self.same += 1,
            Ok(Compared::Absent) => self.absent += 1,
            Ok(Compared::Other(_)) | Err(_) => self.wrong += 1,
        }
    }

    /// Adds the counts of other programs.
    pub fn add(&mut self, other: Self) {
        self.same += other.same;
        self.wrong += other.wrong;
        self.absent += other.absent;
    }

    /// All programs of the way.
    pub fn total(&self) -> usize {
        self.same + self.wrong + self.absent
    }
}
