//! Compiling ahead: launches that only say what they would compile, and threads that compile it.

mod crew;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use exactile_core::facts::{Facts, Known};
use exactile_core::ir::Grid;
use exactile_core::launch::{Launch, Numbers, Passed};
use exactile_core::schedule::cost::{Cost, Costs};
use exactile_core::target::{Bounds, Options, Target};
use exactile_core::verify::{BlockFunc, LaneFunc};
use exactile_store::Store;

use crate::cache::{Cache, Identity, LaunchKey};
use crate::code::Runs;
use crate::compile::{ORDINARY, Prepared, StageTime, block_ir, compile_times, lane_ir};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::inspection::{Asked, Inspection};
use crate::proofs::Reach;
use crate::slot::Slot;
use crate::warm::Warm;

pub(crate) use crew::{Outcome, STACK};
pub use crew::{compile_all, threads};

/// What a launch asks of the compiler.
#[derive(Clone)]
pub(crate) struct Request {
    key: LaunchKey,
}

/// Where the block IR for a request is.
pub(crate) struct Place<'a> {
    device: &'a Device,
    request: &'a Request,
    slot: Arc<Slot<Prepared>>,
    /// Whether an earlier launch proved this one in bounds, if that was asked.
    pub(crate) is_proved: bool,
}

/// What a launch under way may prove.
pub(crate) struct Proof {
    key: LaunchKey,
    slot: Arc<Slot<Prepared>>,
    reach: Reach,
}

impl Proof {
    /// Notes that the launch had no error.
    pub(crate) fn holds(self, cache: &Cache) {
        cache.prove(&self.key, &self.slot, self.reach);
    }
}

impl Request {
    /// The bounds of `options` do not matter: checked and unchecked code is made of the same request.
    pub(crate) fn new(kernel: Identity, options: Options, launch: &Launch<'_>) -> Self {
        let arguments = launch.arguments.iter();
        Self {
            key: LaunchKey {
                kernel,
                options: Options {
                    bounds: Bounds::Checked,
                    ..options
                },
                arguments: arguments.map(|&it| Known::of(it).code()).collect(),
            },
        }
    }

    /// Where the kernel for launches like this one is, and whether this one, if that is asked, is proved in bounds.
    pub(crate) fn place<'a>(
        &'a self,
        device: &'a Device,
        launch: Option<&Launch<'_>>,
    ) -> Place<'a> {
        let (slot, is_proved) = device.cache().place(&self.key, launch);
        Place {
            device,
            request: self,
            slot,
            is_proved,
        }
    }

    /// The same for who has the place already.
    pub(crate) fn place_at<'a>(
        &'a self,
        device: &'a Device,
        slot: &Arc<Slot<Prepared>>,
        launch: &Launch<'_>,
    ) -> Place<'a> {
        let is_proved = device.cache().is_proved(&self.key, slot, launch);
        Place::at(device, self, slot, is_proved)
    }

    /// The codes of what is known of each argument.
    pub(crate) fn known(&self) -> &[u8] {
        &self.key.arguments
    }

    /// What is said of the launch, for who wants to see its code.
    pub(crate) fn asked(&self, bounds: Bounds, trace: BlockFunc, launch: &Launch<'_>) -> Asked {
        Asked {
            trace,
            options: Options {
                bounds,
                ..self.key.options
            },
            facts: self.key.facts(),
            grid: launch.grid,
            arguments: launch.arguments.to_vec(),
        }
    }

    /// The request for later.
    pub(crate) fn job(
        &self,
        launch: &Launch<'_>,
        trace: impl Fn() -> Result<BlockFunc> + Send + Sync + 'static,
        needed: Needed,
    ) -> Job {
        Job {
            request: self.clone(),
            grid: launch.grid,
            arguments: launch.arguments.to_vec(),
            reach: Reach::of(launch, Numbers::ALL),
            trace: Box::new(trace),
            needed,
        }
    }
}

impl<'a> Place<'a> {
    /// A place that is known.
    pub(crate) fn at(
        device: &'a Device,
        request: &'a Request,
        slot: &Arc<Slot<Prepared>>,
        is_proved: bool,
    ) -> Self {
        Self {
            device,
            request,
            slot: Arc::clone(slot),
            is_proved,
        }
    }

    /// Keeps a launch of it for those that are like it.
    pub(crate) fn keep(&self, launch: &Launch<'_>, make: impl FnOnce() -> Option<Warm>) {
        let key = &self.request.key;
        self.device.cache().keep(key, &self.slot, launch, make);
    }

    /// For who keeps it.
    pub(crate) fn slot(&self) -> Arc<Slot<Prepared>> {
        Arc::clone(&self.slot)
    }

    /// The kernel; `trace` gives its IR when it is needed.
    pub(crate) fn prepared(&self, trace: impl FnOnce() -> Result<BlockFunc>) -> Result<&Prepared> {
        let key = &self.request.key;
        // Made without the lock on the tables: other kernels go on.
        self.slot.get_or_make(|| {
            let config = key.kernel.config();
            Prepared::new(self.device, &config, &key.options, &key.facts(), trace)
        })
    }
}

/// What a checked launch proves once it has ended without an error. The code may take more arguments than the launch has.
#[derive(Clone, Copy)]
pub(crate) struct Proves<'a> {
    pub(crate) place: &'a Place<'a>,
    pub(crate) launch: &'a Launch<'a>,
    /// Those that the accesses follow from.
    pub(crate) numbers: Numbers,
}

impl Proves<'_> {
    fn reach(&self) -> Reach {
        Reach::of(self.launch, self.numbers)
    }

    /// Notes that it has.
    pub(crate) fn prove(&self) {
        let Place {
            device,
            request,
            slot,
            ..
        } = self.place;
        device.cache().prove(&request.key, slot, self.reach());
    }

    /// The same for who knows its end later.
    pub(crate) fn proof(&self) -> Proof {
        Proof {
            key: self.place.request.key.clone(),
            slot: Arc::clone(&self.place.slot),
            reach: self.reach(),
        }
    }
}

/// The code that a launch and its repetitions run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Needed {
    /// Checked code.
    Checked,
    /// Unchecked code.
    Unchecked,
    /// Checked code, and unchecked code where the checks prove later launches in bounds.
    Safe,
}

impl Needed {
    fn bounds(self) -> &'static [Bounds] {
        match self {
            Self::Checked => &[Bounds::Checked],
            Self::Unchecked => &[Bounds::Unchecked],
            Self::Safe => &[Bounds::Checked, Bounds::Unchecked],
        }
    }
}

/// A recorded launch: what to compile for it, on any thread.
pub struct Job {
    request: Request,
    grid: Grid,
    arguments: Vec<Passed>,
    reach: Reach,
    trace: Box<dyn Fn() -> Result<BlockFunc> + Send + Sync>,
    needed: Needed,
}

impl Job {
    pub(crate) fn compile(&self, device: &Device) -> Result<()> {
        self.each_code(device, &mut |_| Ok(()))
    }

    /// Why no multiprocessor of the device has room for a thread block of the code, if that is so.
    ///
    /// # Errors
    /// The code does not compile.
    pub fn shortage(&self, device: &Device) -> Result<Option<String>> {
        let mut shortage = None;
        self.each_code(device, &mut |runs| {
            if let Runs::Gpu(code) = runs {
                shortage = shortage.take().or(code.resources()?.shortage());
            }
            Ok(())
        })?;
        Ok(shortage)
    }

    /// Makes all its codes, and hands each to `take`.
    fn each_code(&self, device: &Device, take: &mut dyn FnMut(&Runs) -> Result<()>) -> Result<()> {
        let bounds = self.needed.bounds().iter();
        bounds
            .copied()
            .try_for_each(|bounds| self.make(device, bounds, take))
    }

    /// Makes one of its codes and hands it to `take`, unless launches never come to run it.
    fn make(
        &self,
        device: &Device,
        bounds: Bounds,
        take: &mut dyn FnMut(&Runs) -> Result<()>,
    ) -> Result<()> {
        let place = self.request.place(device, None);
        let prepared = place.prepared(&self.trace)?;
        let proves = device.trusts_proofs() && prepared.moved_by.is_some();
        if (self.needed, bounds) == (Needed::Safe, Bounds::Unchecked) && !proves {
            return Ok(());
        }
        let launch = Launch::new(self.grid, &self.arguments);
        take(&prepared.code(device, bounds, &launch)?.runs)
    }

    /// The code of the launch, on a machine.
    ///
    /// # Errors
    /// What is wrong with the kernel.
    pub fn inspect(&self, target: Target, bounds: Bounds) -> Result<Inspection> {
        let launch = Launch::new(self.grid, &self.arguments);
        let asked = self.request.asked(bounds, (self.trace)()?, &launch);
        Ok(Inspection::new(asked, target, None))
    }

    /// The times of all stages for `target`, as [`Kernel::compile_times`](crate::Kernel::compile_times) has
    /// them, of checked code for launches like this one, wherever their rows end. That for a GPU is taken from `store` where it
    /// is there, and kept there.
    pub fn compile_times(&self, target: &Target, store: Option<&Store>) -> Result<Vec<StageTime>> {
        let options = &self.request.key.options;
        compile_times(target, options, &self.ordinary(), store, &self.trace)
    }

    /// The code of a lane for `target` that [`compile_times`](Self::compile_times) times.
    ///
    /// # Errors
    /// What is wrong with the kernel, and schedules that the target has no room for.
    pub fn lane(&self, target: &Target) -> Result<LaneFunc> {
        let options = &self.request.key.options;
        lane_ir((self.trace)()?, target, options, &self.ordinary())
    }

    /// About how long the launch takes on `target`, by the schedule that it asks for; or any launch of its kernel, of which nothing
    /// is known.
    ///
    /// # Errors
    /// What is wrong with the kernel, and numbers that its schedule cannot have.
    pub fn cost(&self, target: &Target, is_known: bool) -> Result<Cost> {
        let options = &self.request.key.options;
        let checked = options.schedule.check(&target.gpu);
        checked.map_err(Error::Invalid)?;
        let func = block_ir((self.trace)()?, target, options, &self.ordinary())?;
        let launch = Launch::new(self.grid, &self.arguments);
        let known = is_known.then_some(&launch);
        Ok(Costs::of(&func, target, known).on(&options.schedule))
    }

    fn ordinary(&self) -> Facts {
        Facts {
            arguments: self.request.key.facts().arguments,
            ..ORDINARY
        }
    }
}

/// The estimated cycles of launches by which candidates of a search have their turns; infinitely many where nothing is known of
/// them, and on a CPU.
#[must_use]
pub fn estimated(device: &Device, jobs: &[Job]) -> f64 {
    if jobs.is_empty() || !device.runs_lanes() {
        return f64::INFINITY;
    }
    let target = device.target();
    let costs = jobs.iter().map(|job| job.cost(&target, true));
    let cycles = costs.map(|cost| cost.map_or(f64::INFINITY, |cost| cost.cycles));
    cycles.sum()
}

/// Puts candidates, each behind what its launches are [`estimated`] to cost, in the order of their turns: the first one, of which its lister
/// thinks most, stays first, and the cheapest follow.
pub fn in_turn<T>(candidates: &mut [(f64, T)]) {
    if let [_, others @ ..] = candidates {
        others.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    }
}

/// The launches that threads record in place of running them, innermost recording last.
#[derive(Default)]
pub(crate) struct Recordings {
    /// How many there are, for launches to pass by without the lock.
    count: AtomicUsize,
    active: Mutex<Vec<(ThreadId, Vec<Job>)>>,
}

impl Recordings {
    fn active(&self) -> MutexGuard<'_, Vec<(ThreadId, Vec<Job>)>> {
        // A panic elsewhere leaves the list whole: each change is one insertion or removal.
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_active(&self) -> bool {
        // A thread that records has counted itself.
        self.count.load(Ordering::Relaxed) > 0 && {
            let this = thread::current().id();
            self.active().iter().any(|(id, _)| *id == this)
        }
    }

    pub(crate) fn note(&self, job: Job) {
        let this = thread::current().id();
        if let Some((_, jobs)) = self.active().iter_mut().rfind(|(id, _)| *id == this) {
            jobs.push(job);
        }
    }

    pub(crate) fn record(&self, work: impl FnOnce() -> Result<()>) -> Result<Vec<Job>> {
        let this = thread::current().id();
        self.active().push((this, Vec::new()));
        self.count.fetch_add(1, Ordering::Relaxed);
        // Even where `work` panics: the next launches must run.
        let _end = Ending(self);
        work()?;
        let mut active = self.active();
        let jobs = active.iter_mut().rfind(|(id, _)| *id == this);
        Ok(jobs
            .map(|(_, jobs)| std::mem::take(jobs))
            .unwrap_or_default())
    }
}

/// Ends the innermost recording of this thread.
struct Ending<'a>(&'a Recordings);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let this = thread::current().id();
        let mut active = self.0.active();
        if let Some(last) = active.iter().rposition(|(id, _)| *id == this) {
            active.remove(last);
            self.0.count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
