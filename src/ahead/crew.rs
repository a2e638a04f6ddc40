//! Threads that compile what launches left.

use std::collections::{HashMap, HashSet};
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use exactile_core::target::Bounds;

use super::{Job, Needed};
use crate::cache::LaunchKey;
use crate::device::Device;
use crate::ending;
use crate::proofs::Reach;

/// Stack of a thread that compiles: that of a main thread, since passes recurse into nested regions.
pub(crate) const STACK: usize = 8 << 20;

/// Why a job failed; the same for all sets that have it.
pub(crate) type Outcome = Result<(), String>;

/// Compiles sets of jobs on so many threads, those in front first, but before them all what is like no other: of
/// jobs that come to the same code one thread has work, and others would wait for it.
///
/// `ended` gets the index of each set, on the calling thread, as soon as all its jobs have ended or
/// one has failed. Jobs that several sets have are compiled once. Once `limit` is over and a set is
/// ready, no job begins any more, and sets that are not complete then never end.
pub fn compile_all(
    device: &Device,
    sets: &[Vec<Job>],
    limit: Option<Duration>,
    threads: usize,
    ended: &mut dyn FnMut(usize, Outcome),
) {
    let units = units(sets);
    let mut left = vec![0; sets.len()];
    for unit in &units {
        left[unit.set] += 1;
    }
    let (sender, receiver) = channel();
    for (set, _) in left.iter().enumerate().filter(|(_, left)| **left == 0) {
        ended(set, Ok(()));
    }
    let crew = Crew {
        device,
        limit,
        begin: Instant::now(),
        next: AtomicUsize::new(0),
        ready: AtomicBool::new(false),
        sets: left.into_iter().map(Progress::new).collect(),
        units,
        outcomes: Mutex::default(),
    };
    thread::scope(|scope| {
        let mut started = 0;
        for _ in 0..threads.min(crew.units.len()) {
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

/// One code of a job.
#[derive(Clone, Copy)]
pub(super) struct Unit<'a> {
    pub(super) set: usize,
    job: &'a Job,
    bounds: Bounds,
}

/// What units have in common that come to the same code.
type Work<'a> = (&'a LaunchKey, Needed, Bounds, &'a Reach);

impl<'a> Unit<'a> {
    fn work(&self) -> Work<'a> {
        let Job {
            request,
            needed,
            reach,
            ..
        } = self.job;
        (&request.key, *needed, self.bounds, reach)
    }
}

/// The codes of all sets in the order of their turns.
pub(super) fn units(sets: &[Vec<Job>]) -> Vec<Unit<'_>> {
    let mut seen = HashSet::new();
    let sets = sets.iter().enumerate();
    let all = sets.flat_map(|(set, jobs)| {
        let units = jobs.iter().flat_map(move |job| {
            let bounds = job.needed.bounds().iter();
            bounds.map(move |&bounds| Unit { set, job, bounds })
        });
        units.collect::<Vec<_>>()
    });
    // Another grid mostly has the same code.
    let (mut first, again): (Vec<_>, Vec<_>) =
        all.partition(|unit| seen.insert((&unit.job.request.key, unit.bounds)));
    first.extend(again);
    first
}

/// How far a set is.
struct Progress {
    left: AtomicUsize,
    has_failed: AtomicBool,
}

impl Progress {
    fn new(left: usize) -> Self {
        Self {
            left: AtomicUsize::new(left),
            has_failed: AtomicBool::new(false),
        }
    }

    /// Notes the end of a unit, which may be that of the set.
    fn ended(&self, outcome: Outcome) -> Option<Outcome> {
        match outcome {
            Ok(()) => (self.left.fetch_sub(1, Ordering::Relaxed) == 1).then_some(Ok(())),
            Err(reason) => {
                let is_first = !self.has_failed.swap(true, Ordering::Relaxed);
                is_first.then_some(Err(reason))
            }
        }
    }
}

/// What the threads of [`compile_all`] share.
struct Crew<'a> {
    device: &'a Device,
    units: Vec<Unit<'a>>,
    sets: Vec<Progress>,
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
            let Some(unit) = self.units.get(index) else {
                return;
            };
            let set = &self.sets[unit.set];
            if set.has_failed.load(Ordering::Relaxed) {
                continue;
            }
            let over = self.limit.is_some_and(|limit| self.begin.elapsed() > limit);
            if over && self.ready.load(Ordering::Relaxed) || ending::is_near() {
                return;
            }
            let Some(outcome) = set.ended(self.outcome(unit)) else {
                continue;
            };
            self.ready.fetch_or(outcome.is_ok(), Ordering::Relaxed);
            if ended.send((unit.set, outcome)).is_err() {
                return;
            }
        }
    }

    fn outcome(&self, unit: &Unit<'a>) -> Outcome {
        let outcome = {
            let mut outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(outcomes.entry(unit.work()).or_default())
        };
        let made = outcome.get_or_init(|| {
            let made = unit.job.make(self.device, unit.bounds, &mut |_| Ok(()));
            made.map_err(|error| error.to_string())
        });
        made.clone()
    }
}
