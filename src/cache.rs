//! Compiled kernels in memory, found in two steps.
//!
//! The first key is what a launch knows without tracing: the kernel's identity, its data types and
//! configuration, the options, and what the arguments let the compiler assume. The second is what
//! determines the code: the IR that a backend takes. Kernels that differ in the first key only share
//! code, and so do checked and unchecked code where nothing is checked, or levels of determinism
//! that come to the same.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use exactile_core::facts::Facts;
use exactile_core::ir::Func;
use exactile_core::lang::KernelIdentity;
use exactile_core::target::Options;

use crate::compile::{Code, Prepared, StageTime};
use crate::error::Result;
use crate::slot::Slot;

/// What a launch knows about a kernel without tracing it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct LaunchKey {
    pub(crate) kernel: Identity,
    /// For checked code; the unchecked is made of the same.
    pub(crate) options: Options,
    pub(crate) facts: Facts,
}

/// What tells a kernel from all others.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Identity {
    /// A function marked `#[kernel]`.
    Function(KernelIdentity),
    /// IR in text form, with the file that errors name.
    Text { file: Arc<str>, source: Arc<str> },
}

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
    by_launch: HashMap<LaunchKey, Arc<Slot<Arc<Prepared>>>>,
    by_code: BTreeMap<CodeKey, Arc<Slot<Arc<Code>>>>,
    costs: Costs,
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
        slots.iter().filter(|slot| slot.is_made()).count()
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
