//! Compiling ahead: launches that only say what they would compile, and threads that compile it.

use std::collections::HashMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use exactile_core::facts::{Facts, Known};
use exactile_core::ir::Grid;
use exactile_core::launch::{Launch, Passed};
use exactile_core::target::{Bounds, Options, Target};
use exactile_core::verify::BlockFunc;
use exactile_store::Store;

use crate::cache::{Cache, Identity, LaunchKey};
use crate::compile::{ORDINARY, Prepared, StageTime, compile_times};
use crate::device::Device;
use crate::error::Result;
use crate::proofs::Reach;
use crate::slot::Slot;

/// Stack of a thread that compiles: that of a main thread, since passes recurse into nested regions.
const STACK: usize = 8 << 20;

/// What a launch asks of the compiler.
pub(crate) struct Request {
    key: LaunchKey,
}

/// Where the block IR for a request is.
pub(crate) struct Place<'a> {
    device: &'a Device,
    request: &'a Request,
    slot: Arc<Slot<Prepared>>,
    /// Whether an earlier launch proved those that reach as far in bounds, if that was asked.
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

    /// Where the kernel for launches like this one is.
    pub(crate) fn place<'a>(&'a self, device: &'a Device, reach: Option<&Reach>) -> Place<'a> {
        let (slot, is_proved) = device.cache().place(&self.key, reach);
        Place {
            device,
            request: self,
            slot,
            is_proved,
        }
    }

    /// The request for later.
    pub(crate) fn job(
        self,
        launch: &Launch<'_>,
        trace: impl Fn() -> Result<BlockFunc> + Send + Sync + 'static,
        needed: Needed,
    ) -> Job {
        Job {
            request: self,
            grid: launch.grid,
            arguments: launch.arguments.to_vec(),
            reach: Reach::of(launch),
            trace: Box::new(trace),
            needed,
        }
    }
}

impl Place<'_> {
    /// The kernel; `trace` gives its IR when it is needed.
    pub(crate) fn prepared(&self, trace: impl FnOnce() -> Result<BlockFunc>) -> Result<&Prepared> {
        let key = &self.request.key;
        // Made without the lock on the tables: other kernels go on.
        self.slot
            .get_or_make(|| Prepared::new(self.device, &key.options, &key.facts(), trace))
    }

    /// Notes a checked launch without an error.
    pub(crate) fn prove(&self, reach: Reach) {
        self.device
            .cache()
            .prove(&self.request.key, &self.slot, reach);
    }

    /// What a checked launch proves once it has ended without an error.
    pub(crate) fn proof(&self, reach: Reach) -> Proof {
        Proof {
            key: self.request.key.clone(),
            slot: Arc::clone(&self.slot),
            reach,
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
    fn compile(&self, device: &Device) -> Result<()> {
        let place = self.request.place(device, None);
        let prepared = place.prepared(&self.trace)?;
        let proves = device.trusts_proofs() && prepared.is_provable;
        let launch = Launch::new(self.grid, &self.arguments);
        let bounds: &[Bounds] = match self.needed {
            Needed::Checked => &[Bounds::Checked],
            Needed::Unchecked => &[Bounds::Unchecked],
            Needed::Safe if proves => &[Bounds::Checked, Bounds::Unchecked],
            Needed::Safe => &[Bounds::Checked],
        };
        for &bounds in bounds {
            prepared.code(device, bounds, &launch)?;
        }
        Ok(())
    }

    /// The times of all stages for `target`, as [`Kernel::compile_times`](crate::Kernel::compile_times) has
    /// them, of checked code for this launch. That for a GPU is taken from `store` where it is there, and kept there.
    pub fn compile_times(&self, target: &Target, store: Option<&Store>) -> Result<Vec<StageTime>> {
        let key = &self.request.key;
        let facts = Facts {
            arguments: key.facts().arguments,
            ..ORDINARY
        };
        compile_times(target, &key.options, &facts, store, &self.trace)
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

/// Why a job failed; the same for all sets that have it.
type Outcome = std::result::Result<(), String>;

/// Compiles sets of jobs on all cores, those in front first.
///
/// `ended` gets the index of each set, on the calling thread, as soon as all its jobs have ended or
/// one has failed. Jobs that several sets have are compiled once. Once `limit` is over and a set is
/// ready, no job begins any more, and sets that are not complete then never end.
pub fn compile_all(
    device: &Device,
    sets: &[Vec<Job>],
    limit: Option<Duration>,
    ended: &mut dyn FnMut(usize, Outcome),
) {
    let crew = Crew {
        device,
        sets,
        limit,
        begin: Instant::now(),
        next: AtomicUsize::new(0),
        ready: AtomicBool::new(false),
        outcomes: Mutex::default(),
    };
    let (sender, receiver) = channel();
    thread::scope(|scope| {
        let mut started = 0;
        for _ in 0..threads().min(sets.len()) {
            let sender = sender.clone();
            let worker = thread::Builder::new().stack_size(STACK);
            let spawned = worker.spawn_scoped(scope, || {
                let sender = sender;
                crew.work(&sender);
            });
            started += usize::from(spawned.is_ok());
        }
        if started == 0 {
            crew.work(&sender);
        }
        drop(sender);
        for (set, outcome) in receiver {
            ended(set, outcome);
        }
    });
}

/// Threads that compile side by side.
pub fn threads() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// What jobs have in common that come to the same code.
type Work<'a> = (&'a LaunchKey, Needed, &'a Reach);

/// What the threads of [`compile_all`] share.
struct Crew<'a> {
    device: &'a Device,
    sets: &'a [Vec<Job>],
    limit: Option<Duration>,
    begin: Instant,
    next: AtomicUsize,
    ready: AtomicBool,
    outcomes: Mutex<HashMap<Work<'a>, Arc<OnceLock<Outcome>>>>,
}

impl<'a> Crew<'a> {
    fn work(&self, ended: &Sender<(usize, Outcome)>) {
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(set) = self.sets.get(index) else {
                return;
            };
            let Some(outcome) = self.compile(set) else {
                return;
            };
            self.ready.fetch_or(outcome.is_ok(), Ordering::Relaxed);
            if ended.send((index, outcome)).is_err() {
                return;
            }
        }
    }

    /// Nothing when the time is over before the end.
    fn compile(&self, set: &'a [Job]) -> Option<Outcome> {
        for job in set {
            let over = self.limit.is_some_and(|limit| self.begin.elapsed() > limit);
            if over && self.ready.load(Ordering::Relaxed) {
                return None;
            }
            let outcome = self.outcome(job);
            let outcome = outcome.get_or_init(|| {
                let compiled = job.compile(self.device);
                compiled.map_err(|error| error.to_string())
            });
            if outcome.is_err() {
                return Some(outcome.clone());
            }
        }
        Some(Ok(()))
    }

    fn outcome(&self, job: &'a Job) -> Arc<OnceLock<Outcome>> {
        let mut outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        let work = (&job.request.key, job.needed, &job.reach);
        Arc::clone(outcomes.entry(work).or_default())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::assert_bits_equal;
    use crate::prelude::*;

    /// A `BLOCK` that is no power of two is an error of the trace.
    #[kernel]
    fn scale<const BLOCK: usize, const TIMES: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: i32) {
        let at = program_id(0) * BLOCK + arange(0, BLOCK);
        let inside = at < n;
        let scaled = load(x + at).mask(inside) * TIMES as f64;
        store(y + at, scaled).mask(inside);
    }

    struct Setup {
        device: Device,
        x: Buffer<f32>,
        y: Buffer<f32>,
    }

    impl Setup {
        fn new(device: Device) -> Self {
            let x = Buffer::from_slice(&device, &[1.0f32; 100]).expect("fits");
            let y = Buffer::zeros(&device, 100).expect("fits");
            Self { device, x, y }
        }

        fn launch(&mut self, block: usize, times: usize, warps: u32) -> Result<()> {
            let schedule = crate::Schedule::AUTO.warps(warps);
            let kernel = scale(scale::Config::new(block, times).scheduled(schedule));
            let grid = 100usize.div_ceil(block);
            kernel.launch(&self.device, grid, (&self.x, &mut self.y, 100))
        }

        fn record(&mut self, (block, times, warps): (usize, usize, u32)) -> Vec<Job> {
            let device = self.device.clone();
            let recorded = device.record(|| self.launch(block, times, warps));
            recorded.expect("recording traces nothing")
        }

        fn compile(
            &mut self,
            sets: &[Vec<(usize, usize, u32)>],
            limit: Option<Duration>,
        ) -> BTreeMap<usize, Outcome> {
            let mut jobs = Vec::new();
            for set in sets {
                let set = set.iter().flat_map(|&settings| self.record(settings));
                jobs.push(set.collect());
            }
            let mut outcomes = BTreeMap::new();
            compile_all(&self.device, &jobs, limit, &mut |index, outcome| {
                let before = outcomes.insert(index, outcome);
                assert!(before.is_none(), "set {index} ended twice");
            });
            outcomes
        }

        fn codes(&self) -> usize {
            self.device.cache().costs().codes
        }
    }

    #[test]
    fn recorded_launches_do_nothing_and_those_of_other_threads_run() {
        let mut setup = Setup::new(Device::cpu());
        let device = setup.device.clone();
        let mut other = Setup::new(device.clone());
        let jobs = device.record(|| {
            setup.launch(16, 2, 1)?;
            thread::scope(|scope| scope.spawn(|| other.launch(16, 3, 1)).join())
                .expect("does not panic")
        });
        assert_eq!(jobs.expect("both are right").len(), 1);
        assert_bits_equal(&setup.y, &[0.0f32; 100]);
        assert_bits_equal(&other.y, &[3.0f32; 100]);
        setup.launch(16, 2, 1).expect("runs");
        assert_bits_equal(&setup.y, &[2.0f32; 100]);
    }

    #[test]
    fn a_recording_ends_with_an_error_or_a_panic() {
        let mut setup = Setup::new(Device::cpu());
        let device = setup.device.clone();
        let failed = device.record(|| Err(crate::Error::Invalid("no".to_string())));
        assert!(failed.is_err());
        let panics = std::panic::AssertUnwindSafe(|| device.record(|| panic!("on purpose")));
        assert!(std::panic::catch_unwind(panics).is_err());
        setup.launch(8, 2, 1).expect("runs");
        assert_bits_equal(&setup.y, &[2.0f32; 100]);
    }

    /// Later launches, checked and proved in bounds, compile nothing, and no code is made twice.
    #[test]
    fn jobs_of_several_sets_are_compiled_once() {
        for device in [Device::cpu(), Device::lanes(), Device::interpreter()] {
            let mut setup = Setup::new(device.clone());
            // The warps make other launches of them, and other code for a GPU alone.
            let all = [8, 16, 32, 64].map(|block| [(block, 2, 1), (block, 2, 2), (block, 5, 1)]);
            let sets: Vec<Vec<_>> = (0..40)
                .map(|index| all[index % 4].into_iter().chain(all[0]).collect())
                .collect();
            let outcomes = setup.compile(&sets, None);
            assert!(outcomes.len() == 40 && outcomes.values().all(Outcome::is_ok));
            let codes = setup.codes();
            let distinct = match device.kind() {
                crate::DeviceKind::Interpreter => 8,
                crate::DeviceKind::Cpu => 16,
                crate::DeviceKind::Lanes | crate::DeviceKind::Cuda(_) => 24,
            };
            assert_eq!(codes, distinct, "{device}");
            for (block, times, warps) in all.into_iter().flatten() {
                for _ in 0..2 {
                    setup.launch(block, times, warps).expect("runs");
                }
            }
            assert_eq!(setup.codes(), codes, "{device}");
        }
    }

    #[test]
    fn sets_that_fail_have_the_reason_of_a_launch() {
        let mut setup = Setup::new(Device::lanes());
        let sets = [(16, 2, 1), (24, 2, 1), (16, 2, 3), (32, 2, 1), (24, 2, 1)];
        let outcomes = setup.compile(&sets.map(|settings| vec![settings]), None);
        for (index, (block, times, warps)) in sets.into_iter().enumerate() {
            let launched = setup.launch(block, times, warps);
            let reason = launched.map_err(|error| error.to_string());
            assert_eq!(outcomes[&index], reason);
            assert_eq!(reason.is_err(), block == 24 || warps == 3, "{reason:?}");
        }
    }

    #[test]
    fn after_the_time_one_set_is_ready_and_few_more_are_begun() {
        let mut setup = Setup::new(Device::cpu());
        let failing = (0..3).map(|_| vec![(24, 1, 0)]);
        let good = (0..50).map(|times| vec![(8, times, 0), (16, times, 0)]);
        let sets: Vec<_> = failing.chain(good).collect();
        let outcomes = setup.compile(&sets, Some(Duration::ZERO));
        let ready = outcomes.values().filter(|outcome| outcome.is_ok()).count();
        assert!((1..=threads()).contains(&ready), "{outcomes:?}");
    }
}
