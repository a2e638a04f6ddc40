//! Compiled kernels in memory, found in two steps.
//!
//! The first key is what a launch knows without tracing: the kernel's identity, its data types and
//! configuration, the options, and what the arguments let the compiler assume. The second is what
//! determines the code: the printed IR with the target and options; kernels that differ in the
//! first key only share code.

use std::collections::BTreeMap;
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

#[derive(Default)]
struct Tables {
    by_launch: BTreeMap<LaunchKey, Arc<Compiled>>,
    by_code: BTreeMap<CodeKey, Arc<Compiled>>,
    seconds: f64,
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
