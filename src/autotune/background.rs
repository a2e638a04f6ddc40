//! Searches that go on while launches do.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use exactile_core::target::Determinism;

use super::{TuneKey, Tuner, Workload};
use crate::ahead::{STACK, threads};
use crate::array::Array;
use crate::capture;
use crate::device::Device;
use crate::ending;
use crate::error::{Error, Result};
use crate::made;
use crate::panics::guarded;
use crate::stream::Stream;
use crate::winners::{Known, Problem};

/// So many errors are kept for who waits.
const KEPT: usize = 64;

/// What tuners with one file know that search in the background.
#[derive(Default)]
pub(super) struct Background {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    seen: BTreeMap<Problem, Seen>,
    is_searching: bool,
    /// Of searches, until somebody waits.
    errors: Vec<String>,
}

/// What a launch has asked for.
#[derive(Clone)]
struct Seen {
    known: Option<Known>,
    /// Whether nothing is to be searched for any more: it is known, or a search has begun, which is not tried again.
    is_settled: bool,
}

impl fmt::Debug for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Background")
            .field("is_searching", &self.state().is_searching)
            .finish_non_exhaustive()
    }
}

/// What is known by the file of its tuners.
static BY_FILE: Mutex<BTreeMap<PathBuf, Arc<Background>>> = Mutex::new(BTreeMap::new());

impl Background {
    /// That of the tuners of a file, or one of its own.
    fn of(file: Option<&Path>) -> Arc<Self> {
        let Some(file) = file else {
            return Arc::default();
        };
        // Without a folder to begin at, the name is what there is.
        let file = std::path::absolute(file).unwrap_or_else(|_| file.to_path_buf());
        // A panic elsewhere leaves the table whole.
        let mut by_file = BY_FILE.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(by_file.entry(file).or_default())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The nearest of the winners that this process has found.
    pub(super) fn nearest(&self, problem: &Problem) -> Option<Known> {
        let state = self.state();
        let exact = |seen: &Seen| seen.known.clone().filter(|known| known.is_exact);
        let known = state.seen.iter().filter_map(|(other, seen)| {
            let distance = problem.distance(other)?;
            let is_exact = distance == 0.0;
            let known = exact(seen)?;
            Some((distance, Known { is_exact, ..known }))
        });
        let nearest = known.min_by(|(one, _), (other, _)| one.total_cmp(other));
        nearest.map(|(_, known)| known)
    }

    /// Notes a winner.
    pub(super) fn note(&self, problem: &Problem, known: Known) {
        let seen = Seen {
            known: Some(known),
            is_settled: true,
        };
        self.state().seen.insert(problem.clone(), seen);
    }

    /// What is known of a problem. Where it is not known itself, the first who asks while there is no other search begins one:
    /// what `prepare` gives, on a thread of its own; `is_candidate`: whether a winner can still be chosen.
    pub(super) fn find<S: FnOnce(&Tuner) -> Result<()> + Send + 'static>(
        self: &Arc<Self>,
        (tuner, device): (&Tuner, &Device),
        problem: Problem,
        is_candidate: impl Fn(&Known) -> bool,
        prepare: impl FnOnce() -> Result<S>,
    ) -> Result<Option<Known>> {
        let may_begin =
            !device.is_recording() && device.stand_in().is_none() && !capture::is_active();
        if let Some(known) = self.seen(&problem, may_begin) {
            return Ok(known);
        }
        let known = tuner.nearest(&problem)?;
        let exact = known.as_ref().filter(|known| known.is_exact);
        let seen = Seen {
            known: known.clone(),
            is_settled: exact.is_some_and(is_candidate),
        };
        if self.claims(&problem, seen, may_begin) {
            self.begin((tuner, device), problem, prepare);
        }
        Ok(known)
    }

    /// What an earlier launch was told, where nothing has changed since and no search could begin.
    fn seen(&self, problem: &Problem, may_begin: bool) -> Option<Option<Known>> {
        let state = self.state();
        let seen = state.seen.get(problem)?;
        let stays = seen.is_settled || state.is_searching || !may_begin;
        stays.then(|| seen.known.clone())
    }

    /// Notes what is known, and says whether a search is to begin.
    fn claims(&self, problem: &Problem, seen: Seen, may_begin: bool) -> bool {
        let mut state = self.state();
        let before = state.seen.get(problem);
        if before.is_some_and(|before| before.is_settled) {
            return false;
        }
        let begins = may_begin && !seen.is_settled && !state.is_searching;
        let seen = Seen {
            is_settled: seen.is_settled || begins,
            ..seen
        };
        state.seen.insert(problem.clone(), seen);
        state.is_searching |= begins;
        begins
    }

    fn begin<S: FnOnce(&Tuner) -> Result<()> + Send + 'static>(
        self: &Arc<Self>,
        (tuner, device): (&Tuner, &Device),
        problem: Problem,
        prepare: impl FnOnce() -> Result<S>,
    ) {
        let what = || "the search".to_string();
        let begun = guarded(what, prepare).and_then(|search| {
            // The other half of the cores is left to who launches.
            let tuner = tuner.with_threads((threads() / 2).max(1));
            let (this, device, problem) = (Arc::clone(self), device.clone(), problem.clone());
            let work = move || {
                let _work = ending::Work::begin();
                let outcome = guarded(what, || in_own_stream(&device, || search(&tuner)));
                this.ended(&tuner, &problem, outcome);
            };
            let builder = thread::Builder::new().name("exactile-tuner".to_string());
            let spawned = builder.stack_size(STACK).spawn(work);
            spawned.map_err(|error| Error::Invalid(format!("there is no thread for it: {error}")))
        });
        if let Err(error) = begun {
            self.ended(tuner, &problem, Err(error));
        }
    }

    fn ended(&self, tuner: &Tuner, problem: &Problem, outcome: Result<()>) {
        // Nobody needs to know that the end of the process ends a search.
        let outcome = outcome.err().filter(|_| !ending::is_near());
        let failed = outcome.map(|error| {
            let Problem {
                kernel, extents, ..
            } = problem;
            format!("the search in the background for `{kernel}` {extents:?} failed: {error}")
        });
        if let Some(line) = &failed {
            log::warn!("{line}");
            // A listener may panic, and nobody waits for this thread.
            let _ = guarded(String::new, || {
                tuner.say(|| line.clone());
                Ok(())
            });
        }
        let mut state = self.state();
        state.is_searching = false;
        state.errors.extend(failed);
        let surplus = state.errors.len().saturating_sub(KEPT);
        state.errors.drain(..surplus);
        drop(state);
        self.changed.notify_all();
    }

    /// Waits for the end of a search, this long at the most; whether none is under way.
    pub(super) fn wait(&self, limit: Duration) -> Result<bool> {
        let is_searching = |state: &mut State| state.is_searching;
        let waited = self
            .changed
            .wait_timeout_while(self.state(), limit, is_searching);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match state.errors.is_empty() {
            true => Ok(!state.is_searching),
            false => Err(Error::Invalid(std::mem::take(&mut state.errors).join("\n"))),
        }
    }
}

impl Tuner {
    /// Has [`Tune::tuned`](super::Tune::tuned) and [`choose`](Self::choose) begin a search where nobody has tuned the problem: on a thread of its own, while launches go
    /// on with what they have until then. The next one that asks takes the winner, which is kept in the file as any other.
    ///
    /// Tuners of one file, and clones of one that has none, search for one problem at a time, and for each once in a process. A search has a
    /// stream of its own, inputs of its own, and half of the cores to compile. What it finds is measured beside whatever else
    /// the device does. Where it fails the log says so at the level `warn`, and [`wait`](Self::wait). A process may end at any time.
    #[must_use]
    pub fn in_background(self) -> Self {
        let background = Background::of(self.winners.path());
        Self {
            background: Some(background),
            ..self
        }
    }

    /// Waits, this long at the most, until no search is under way in the [background](Self::in_background); whether none is.
    ///
    /// # Errors
    /// Those of searches that have ended since it was asked last.
    pub fn wait(&self, limit: Duration) -> Result<bool> {
        let background = self.background.as_ref();
        background.map_or(Ok(true), |background| background.wait(limit))
    }

    /// The same, but so many threads compile.
    fn with_threads(&self, threads: usize) -> Self {
        Self {
            threads,
            ..self.clone()
        }
    }

    /// The one of `candidates` that is known to be the fastest for a problem, or for the nearest one. A tuner that searches
    /// [in the background](Self::in_background) begins a search where that is not known, unless another one is under way: `workload` makes the golden results and what
    /// is launched, on the thread of the search, from data of its own. There the default stream of `device` is that of the search.
    ///
    /// # Errors
    /// The file cannot be read.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use exactile::autotune::{TuneKey, Tuner, with_output};
    /// # use exactile::{Array, Determinism, prelude::*};
    /// # #[kernel]
    /// # fn doubled<const BLOCK: usize>(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    /// #     let at = program_id(0) * BLOCK + arange(0, BLOCK);
    /// #     store(out + at, load(x + at).mask(at < n) * 2.0).mask(at < n);
    /// # }
    /// let (tuner, device, n) = (Tuner::forgetful().in_background(), Device::cpu(), 1000);
    /// let choose = || {
    ///     let key = TuneKey { kernel: "doubled".into(), extents: vec![n], variant: "f32".into() };
    ///     tuner.choose(&device, &key, Determinism::Exact, &[256, 1024], move |device| {
    ///         let (device, x) = (device.clone(), Buffer::from_slice(device, &vec![1.5f32; n])?);
    ///         let out = Buffer::zeros(&device, n)?;
    ///         let workload = with_output(out, move |out, &block: &usize| {
    ///             let kernel = doubled().block(block);
    ///             kernel.launch(&device, n.div_ceil(block), (&x, out, n as i32))
    ///         });
    ///         Ok((vec![Array::from_slice([n], &vec![3.0f32; n])?], workload))
    ///     })
    /// };
    /// assert_eq!(choose()?, None);
    /// assert!(tuner.wait(Duration::from_secs(60))?);
    /// assert!(choose()?.is_some());
    /// # Ok::<(), exactile::Error>(())
    /// ```
    pub fn choose<C, W>(
        &self,
        device: &Device,
        key: &TuneKey,
        level: Determinism,
        candidates: &[C],
        workload: impl FnOnce(&Device) -> Result<(Vec<Array>, W)> + Send + 'static,
    ) -> Result<Option<C>>
    where
        C: Clone + fmt::Debug + Send + 'static,
        W: Workload<C>,
    {
        self.find(device, key, candidates, || {
            let (device, key, candidates) = (device.clone(), key.clone(), candidates.to_vec());
            Ok(move |tuner: &Tuner| {
                let (golden, mut workload) = workload(&device)?;
                let tuned = tuner.tune(&device, &key, level, &candidates, &golden, &mut workload);
                tuned?.kept()
            })
        })
    }

    /// The same; `prepare` gives the search.
    pub(super) fn find<C: Clone + fmt::Debug, S: FnOnce(&Self) -> Result<()> + Send + 'static>(
        &self,
        device: &Device,
        key: &TuneKey,
        candidates: &[C],
        prepare: impl FnOnce() -> Result<S>,
    ) -> Result<Option<C>> {
        let problem = key.problem(device);
        let chosen = |known: &Known| {
            let mut candidates = candidates.iter();
            candidates.find(|config| format!("{config:?}") == known.config)
        };
        let known = match &self.background {
            None => self.nearest(&problem)?,
            Some(background) => {
                let is_candidate = |known: &Known| chosen(known).is_some();
                background.find((self, device), problem, is_candidate, prepare)?
            }
        };
        Ok(known.as_ref().and_then(chosen).cloned())
    }

    /// What is on file, or known to this process alone.
    pub(super) fn nearest(&self, problem: &Problem) -> Result<Option<Known>> {
        let own = self.background.as_ref();
        let own = own.and_then(|background| background.nearest(problem));
        if own.as_ref().is_some_and(|known| known.is_exact) {
            return Ok(own);
        }
        let known = own.into_iter().chain(self.winners.nearest(problem)?);
        Ok(known.min_by(|one, other| one.distance(problem).total_cmp(&other.distance(problem))))
    }

    /// Notes a winner for launches of this process.
    pub(super) fn note(&self, problem: &Problem, known: &Known) {
        if let Some(background) = &self.background {
            background.note(problem, known.clone());
        }
    }
}

/// Does `work` in a stream of its own, whose errors nobody else is told.
fn in_own_stream(device: &Device, work: impl FnOnce() -> Result<()>) -> Result<()> {
    if device.runs_gpu_code() {
        made::prepare()?;
    }
    let stream = Stream::apart(device)?;
    let outcome = stream.as_default(work);
    // What is left there was noted as a verdict, or is what `work` failed for.
    let _ = stream.synchronize();
    outcome
}
