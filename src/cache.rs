//! Compiled kernels in memory, found in two steps.
//!
//! The first key is what a launch knows without tracing: the kernel's identity, its data types and
//! configuration, the options, and what the arguments let the compiler assume. The second is what
//! determines the code: the IR that a backend takes. Kernels that differ in the first key only share
//! code, and so do checked and unchecked code where nothing is checked, or levels of determinism
//! that come to the same. What a GPU runs is kept on disk too, see [`crate::disk`].

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use exactile_core::facts::{Facts, Known};
use exactile_core::ir::Func;
use exactile_core::lang::KernelIdentity;
use exactile_core::launch::Launch;
use exactile_core::target::Options;
use exactile_store::sum;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::bound::{Choices, FEW};
use crate::code::Runs;
use crate::compile::{Prepared, StageTime};
use crate::cuda::Words;
use crate::error::Result;
use crate::proofs::{Proofs, Reach};
use crate::slot::Slot;
use crate::warm::{Asked, Handed, Warm, Warms};

/// What a launch knows about a kernel without tracing it: plain data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LaunchKey {
    pub(crate) kernel: Identity,
    /// For checked code; the unchecked is made of the same.
    pub(crate) options: Options,
    /// The codes of what is known of each argument.
    pub(crate) arguments: SmallVec<[u8; FEW]>,
}

impl Hash for LaunchKey {
    /// The options are left out: few keys differ in them alone, and a configuration holds its schedule.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kernel.hash(state);
        self.arguments.hash(state);
    }
}

impl LaunchKey {
    /// What is known of each argument; the conditions are those of code that is yet to be made.
    pub(crate) fn facts(&self) -> Facts {
        let codes = self.arguments.iter();
        Facts {
            arguments: codes.map(|&code| Known::of_code(code)).collect(),
            ..Facts::default()
        }
    }
}

/// What tells a kernel from all others.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Identity {
    /// A function marked `#[kernel]`, with which of its optional parameters are choices.
    Function {
        kernel: KernelIdentity,
        choices: Choices,
    },
    /// IR in text form, with the file that errors name.
    Text { file: Arc<str>, source: Arc<str> },
}

impl Identity {
    /// The configuration of the kernel, printed, or the file of its text.
    pub(crate) fn config(&self) -> String {
        match self {
            Self::Function { kernel, .. } => kernel.config(),
            Self::Text { file, .. } => file.to_string(),
        }
    }
}

/// What determines code: the SHA-256 of the printed IR that it is made from, and of what else is said of it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct CodeKey(String);

impl CodeKey {
    /// Of code that names the lines of its source.
    pub(crate) fn with_lines(func: &Func) -> Self {
        let insts = func.all_insts();
        let lines: Vec<_> = insts.iter().map(|&inst| &func.inst(inst).loc).collect();
        Self::new(func, &format!("{lines:?}"))
    }

    /// Of code that knows nothing of its source.
    pub(crate) fn new(func: &Func, form: &str) -> Self {
        Self(sum(&format!("{form}\n{func}")))
    }

    /// The one that [`CodeKey::text`] gave; nothing of another text.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_sum = text.len() == 64 && text.bytes().all(is_digit);
        is_sum.then(|| Self(text.to_string()))
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
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

/// The block IR for launches with one key, and which of them are in bounds.
#[derive(Default)]
struct Launched {
    prepared: Arc<Slot<Prepared>>,
    proofs: Proofs,
}

impl Launched {
    fn is_proved(&mut self, launch: &Launch<'_>) -> bool {
        let numbers = self.prepared.made().and_then(|it| it.moved_by);
        numbers.is_some_and(|numbers| self.proofs.hold(launch, numbers))
    }
}

#[derive(Default)]
struct Tables {
    /// What is looked at first: launches that the next ones may be like.
    warm: FxHashMap<KernelIdentity, Warms>,
    by_launch: FxHashMap<LaunchKey, Launched>,
    by_code: BTreeMap<CodeKey, Arc<Slot<Arc<Runs>>>>,
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
        slots.iter().filter(|slot| slot.made().is_some()).count()
    }

    /// How many launches are kept for others to be like.
    pub(crate) fn kept_launches(&self) -> usize {
        self.tables().warm.values().map(Warms::len).sum()
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

    /// The place of the block IR for launches with this key, and whether this one, if that is
    /// asked, is proved in bounds.
    pub(crate) fn place(
        &self,
        key: &LaunchKey,
        launch: Option<&Launch<'_>>,
    ) -> (Arc<Slot<Prepared>>, bool) {
        let mut tables = self.tables();
        if let Some(launched) = tables.by_launch.get_mut(key) {
            let is_proved = launch.is_some_and(|launch| launched.is_proved(launch));
            return (Arc::clone(&launched.prepared), is_proved);
        }
        let launched = tables.by_launch.entry(key.clone()).or_default();
        (Arc::clone(&launched.prepared), false)
    }

    /// Whether a launch of the IR in this place is proved in bounds.
    pub(crate) fn is_proved(
        &self,
        key: &LaunchKey,
        place: &Arc<Slot<Prepared>>,
        launch: &Launch<'_>,
    ) -> bool {
        let mut tables = self.tables();
        let launched = tables.by_launch.get_mut(key);
        let same = launched.filter(|it| Arc::ptr_eq(&it.prepared, place));
        same.is_some_and(|it| it.is_proved(launch))
    }

    /// Notes a checked launch without an error of the IR in this place, unless another is there by now.
    pub(crate) fn prove(&self, key: &LaunchKey, place: &Arc<Slot<Prepared>>, reach: Reach) {
        if let Some(launched) = self.tables().by_launch.get_mut(key)
            && Arc::ptr_eq(&launched.prepared, place)
        {
            launched.proofs.add(reach);
        }
    }

    /// One that a launch of a kernel is like; then `words` are those of its arguments. It is the one lock of a launch for which
    /// there is one.
    pub(crate) fn warm(
        &self,
        kernel: &KernelIdentity,
        asked: Asked,
        handed: &Handed<'_, '_>,
        words: &mut Words,
    ) -> Option<Arc<Warm>> {
        self.tables().warm.get(kernel)?.find(asked, handed, words)
    }

    /// Keeps a launch of the IR in this place, unless another is there by now.
    pub(crate) fn keep(
        &self,
        key: &LaunchKey,
        place: &Arc<Slot<Prepared>>,
        launch: &Launch<'_>,
        make: impl FnOnce() -> Option<Warm>,
    ) {
        let mut tables = self.tables();
        let launched = tables.by_launch.get(key);
        if let Identity::Function { kernel, .. } = &key.kernel
            && launched.is_some_and(|it| Arc::ptr_eq(&it.prepared, place))
        {
            tables
                .warm
                .entry(kernel.clone())
                .or_default()
                .keep(launch, make);
        }
    }

    /// The code for a key, made by `make` unless it is there.
    pub(crate) fn code(
        &self,
        key: CodeKey,
        make: impl FnOnce() -> Result<Runs>,
    ) -> Result<Arc<Runs>> {
        let slot = Arc::clone(self.tables().by_code.entry(key).or_default());
        slot.get_or_make(|| make().map(Arc::new)).cloned()
    }

    /// Whether there is code for a key.
    #[cfg(test)]
    pub(crate) fn has(&self, key: &CodeKey) -> bool {
        let tables = self.tables();
        tables
            .by_code
            .get(key)
            .is_some_and(|slot| slot.made().is_some())
    }

    /// Notes that a backend makes a code.
    pub(crate) fn count(&self) {
        self.tables().costs.codes += 1;
    }

    /// Drops all code; what still uses it keeps it.
    pub(crate) fn forget_code(&self) {
        let mut tables = self.tables();
        let dropped = (
            std::mem::take(&mut tables.warm),
            std::mem::take(&mut tables.by_launch),
            std::mem::take(&mut tables.by_code),
        );
        drop(tables);
        drop(dropped);
    }
}
