//! Compiled kernels in memory, found in two steps.
//!
//! The first key is what a launch knows without tracing: the kernel's identity, its data types and
//! configuration, the options, and what the arguments let the compiler assume. The second is what
//! determines the code: the printed IR with the target and options; kernels that differ in the
//! first key only share code.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::compile::Compiled;
use crate::error::Result;

/// What a launch knows about a kernel without tracing it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct LaunchKey(pub(crate) String);

/// The printed IR, the target and the options.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct CodeKey(pub(crate) String);

/// How many kinds of launches are remembered to be in bounds.
const MOST_PROOFS: usize = 1 << 16;

#[derive(Default)]
struct Tables {
    by_launch: BTreeMap<LaunchKey, Arc<Compiled>>,
    by_code: BTreeMap<CodeKey, Arc<Compiled>>,
    seconds: f64,
    in_bounds: BTreeSet<String>,
}

/// The compiled kernels of a device.
#[derive(Default)]
pub(crate) struct Cache {
    tables: Mutex<Tables>,
}

impl Cache {
    fn tables(&self) -> MutexGuard<'_, Tables> {
        // A panic elsewhere leaves the tables whole: each change is one insertion.
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many different codes there are.
    pub(crate) fn len(&self) -> usize {
        self.tables().by_code.len()
    }

    /// Whether a checked launch has proved launches like this one in bounds.
    pub(crate) fn is_in_bounds(&self, launch: &str) -> bool {
        self.tables().in_bounds.contains(launch)
    }

    /// Notes that launches like this one are in bounds.
    pub(crate) fn proved(&self, launch: String) {
        let known = &mut self.tables().in_bounds;
        // Forgetting costs a checked launch and nothing else.
        if known.len() >= MOST_PROOFS {
            known.clear();
        }
        known.insert(launch);
    }

    /// Seconds spent so far.
    pub(crate) fn compile_seconds(&self) -> f64 {
        self.tables().seconds
    }

    /// Notes time spent on a kernel.
    pub(crate) fn spent(&self, time: Duration) {
        self.tables().seconds += time.as_secs_f64();
    }

    /// The code that an earlier launch with this key used.
    pub(crate) fn launched(&self, key: &LaunchKey) -> Option<Arc<Compiled>> {
        self.tables().by_launch.get(key).cloned()
    }

    /// The code for `code`, made by `compile` unless it is there; remembered for `launch` too.
    pub(crate) fn code(
        &self,
        launch: LaunchKey,
        code: CodeKey,
        compile: impl FnOnce() -> Result<Compiled>,
    ) -> Result<Arc<Compiled>> {
        let known = self.tables().by_code.get(&code).cloned();
        // Compiled without the lock: two threads may do the same work, and the first one's stays.
        let compiled = match known {
            Some(known) => known,
            None => Arc::new(compile()?),
        };
        let mut tables = self.tables();
        let kept = Arc::clone(tables.by_code.entry(code).or_insert(compiled));
        tables.by_launch.insert(launch, Arc::clone(&kept));
        Ok(kept)
    }
}
