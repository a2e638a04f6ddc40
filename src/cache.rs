//! Compiled kernels in memory, found in two steps.
//!
//! The first key is what a launch knows without tracing: the kernel's identity, its data types and
//! configuration, the options, and what the arguments let the compiler assume. The second is what
//! determines the code: the IR that a backend takes. Kernels that differ in the first key only share
//! code, and so do checked and unchecked code where nothing is checked, or levels of determinism
//! that come to the same.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use exactile_core::ir::Func;

use crate::compile::{Code, Prepared, StageTime};
use crate::error::Result;

/// What a launch knows about a kernel without tracing it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct LaunchKey(pub(crate) String);

/// The printed IR that code is made from, and the lines that errors name, as 128 bits of hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct CodeKey([u64; 2]);

impl CodeKey {
    pub(crate) fn of(func: &Func) -> Self {
        let printed = func.to_string();
        let insts = func.all_insts();
        let lines: Vec<_> = insts.iter().map(|&inst| &func.inst(inst).loc).collect();
        Self([0, 1].map(|half: u64| {
            let mut hasher = DefaultHasher::new();
            (half, &printed, &lines).hash(&mut hasher);
            hasher.finish()
        }))
    }
}

/// How many kinds of launches are remembered to be in bounds.
const MOST_PROOFS: usize = 1 << 16;

/// What is made when it is first needed, and once: others wait for the one that makes it. A failure
/// leaves it to the next one.
pub(crate) struct Slot<T>(Mutex<Option<T>>);

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T: Clone> Slot<T> {
    pub(crate) fn get_or_make(&self, make: impl FnOnce() -> Result<T>) -> Result<T> {
        // Whoever panicked while making it left nothing.
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*slot {
            Some(made) => Ok(made.clone()),
            None => Ok(slot.insert(make()?).clone()),
        }
    }
}

/// What compiling has cost so far.
#[derive(Clone, Default, Debug)]
pub struct Costs {
    /// Codes that a backend made.
    pub codes: usize,
    /// Seconds by stage, of all threads together.
    pub seconds: BTreeMap<&'static str, f64>,
}

#[derive(Default)]
struct Tables {
    by_launch: BTreeMap<LaunchKey, Arc<Slot<Arc<Prepared>>>>,
    by_code: BTreeMap<CodeKey, Arc<Slot<Arc<Code>>>>,
    costs: Costs,
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
        let slots: Vec<_> = self.tables().by_code.values().cloned().collect();
        let made =
            |slot: &&Arc<Slot<Arc<Code>>>| slot.0.try_lock().is_ok_and(|code| code.is_some());
        slots.iter().filter(made).count()
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

    /// What was spent so far.
    pub(crate) fn costs(&self) -> Costs {
        self.tables().costs.clone()
    }

    /// Notes the stages of a compilation.
    pub(crate) fn spent(&self, stages: &[StageTime]) {
        let seconds = &mut self.tables().costs.seconds;
        for stage in stages {
            *seconds.entry(stage.name).or_default() += stage.time.as_secs_f64();
        }
    }

    /// The block IR for launches with this key, made by `prepare` unless it is there.
    pub(crate) fn prepared(
        &self,
        key: &LaunchKey,
        prepare: impl FnOnce() -> Result<Prepared>,
    ) -> Result<Arc<Prepared>> {
        let known = self.tables().by_launch.get(key).cloned();
        let slot = known.unwrap_or_else(|| {
            let mut tables = self.tables();
            Arc::clone(tables.by_launch.entry(key.clone()).or_default())
        });
        // Made without the lock on the tables: other kernels go on.
        slot.get_or_make(|| prepare().map(Arc::new))
    }

    /// The code for a key, made by `compile` unless it is there.
    pub(crate) fn code(
        &self,
        key: CodeKey,
        compile: impl FnOnce() -> Result<Code>,
    ) -> Result<Arc<Code>> {
        let slot = Arc::clone(self.tables().by_code.entry(key).or_default());
        slot.get_or_make(|| {
            self.tables().costs.codes += 1;
            compile().map(Arc::new)
        })
    }

    /// Drops all code; what still uses it keeps it.
    pub(crate) fn forget_code(&self) {
        let mut tables = self.tables();
        let dropped = (
            std::mem::take(&mut tables.by_launch),
            std::mem::take(&mut tables.by_code),
        );
        drop(tables);
        drop(dropped);
    }
}
