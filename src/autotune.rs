//! The tuner: which configuration is fastest on the device in hand, among those that are right.
//!
//! A candidate may win only after its results were compared with the golden run: bit for bit
//! unless determinism is not guaranteed, by the standard tolerance otherwise. With the
//! feature `tuner-file` winners are kept in a JSON file, so that a later run measures nothing.

mod background;
mod clock;
mod copies;
mod judge;
mod kernels;
mod race;
mod space;
mod trials;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use exactile_core::ir::Number;
use exactile_core::target::Determinism;

use crate::ahead;
use crate::array::Array;
use crate::buffer::Buffer;
use crate::device::Device;
use crate::ending;
use crate::error::Result;
use crate::winners::{Problem, Trial, Winner, WinnersFile};

pub use crate::winners::{Known, Provenance};
use background::Background;
use clock::Clock;
pub use clock::measure;
pub use kernels::{Tune, TunedKernel};
use race::{fastest, race};
use trials::Judged;
pub use trials::{Times, Tuned, Verdict};

/// What a winner holds for. Another key means another search.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TuneKey {
    /// The kernel's name.
    pub kernel: String,
    /// The extents of the problem; each is rounded up to a power of two, so that similar problems
    /// share a winner.
    pub extents: Vec<usize>,
    /// Whatever else the best configuration depends on: data types, determinism, the printed IR.
    pub variant: String,
}

impl TuneKey {
    /// The problem on a device, as the file of winners has it.
    fn problem(&self, device: &Device) -> Problem {
        let bucket = |&extent: &usize| extent.checked_next_power_of_two().unwrap_or(extent);
        Problem {
            kernel: self.kernel.clone(),
            variant: self.variant.clone(),
            extents: self.extents.iter().map(bucket).collect(),
            device: device.name().to_string(),
        }
    }
}

/// What the tuner runs: a problem with its buffers, launched once per call.
pub trait Workload<C> {
    /// Launches the kernel under `config`; may return before it has ended.
    ///
    /// A tuner calls it first to see what it would compile: launches by the calling thread on the
    /// tuner's device then do nothing.
    fn launch(&mut self, config: &C) -> Result<()>;
    /// What the last launch wrote.
    fn outputs(&self) -> Result<Vec<Array>>;
    /// The same, in memory of what it gave before, where that is as long: new memory takes longer than a copy.
    fn outputs_again(&self, earlier: Vec<Array>) -> Result<Vec<Array>> {
        drop(earlier);
        self.outputs()
    }
    /// Spoils the outputs, so that a candidate cannot pass by leaving the results of another.
    fn spoil(&mut self) -> Result<()>;
    /// Why a candidate is not worth compiling, if that is so.
    fn refuses(&self, _config: &C) -> Option<String> {
        None
    }
    /// Whether a launch is several kernels, one on the results of another: then some programs alone
    /// give no part of the results.
    fn in_phases(&self) -> bool {
        false
    }
}

impl<C, W: Workload<C> + ?Sized> Workload<C> for Box<W> {
    fn launch(&mut self, config: &C) -> Result<()> {
        (**self).launch(config)
    }

    fn outputs(&self) -> Result<Vec<Array>> {
        (**self).outputs()
    }

    fn outputs_again(&self, earlier: Vec<Array>) -> Result<Vec<Array>> {
        (**self).outputs_again(earlier)
    }

    fn spoil(&mut self) -> Result<()> {
        (**self).spoil()
    }

    fn refuses(&self, config: &C) -> Option<String> {
        (**self).refuses(config)
    }

    fn in_phases(&self) -> bool {
        (**self).in_phases()
    }
}

/// What a kernel writes: a buffer, or a tuple of buffers.
pub trait Outputs {
    /// Copies on the host, in the memory of `earlier` ones where these are as long.
    fn read(&self, earlier: &mut dyn Iterator<Item = Array>) -> Result<Vec<Array>>;
    /// Overwrites them all; see [`Buffer::spoil`].
    fn spoil(&mut self) -> Result<()>;
}

impl<T: Number> Outputs for Buffer<T> {
    fn read(&self, earlier: &mut dyn Iterator<Item = Array>) -> Result<Vec<Array>> {
        let earlier = earlier.next();
        let fitting = earlier.filter(|it| it.dtype() == T::DTYPE && it.shape() == [self.len()]);
        let mut array = fitting.map_or_else(|| Array::zeros(T::DTYPE, [self.len()]), Ok)?;
        self.part().read_to(array.bytes_mut())?;
        Ok(vec![array])
    }

    fn spoil(&mut self) -> Result<()> {
        Buffer::spoil(self)
    }
}

macro_rules! output_tuples {
    ($(($($O:ident $index:tt),*);)*) => { $(
        impl<$($O: Outputs),*> Outputs for ($($O,)*) {
            fn read(&self, earlier: &mut dyn Iterator<Item = Array>) -> Result<Vec<Array>> {
                let mut read = Vec::new();
                $(read.append(&mut self.$index.read(earlier)?);)*
                Ok(read)
            }

            fn spoil(&mut self) -> Result<()> {
                $(self.$index.spoil()?;)*
                Ok(())
            }
        }
    )* };
}
output_tuples! {
    (A 0, B 1);
    (A 0, B 1, C 2);
}

/// A workload with outputs of its own: `launch` runs the kernel with them.
pub fn with_output<O: Outputs, C>(
    output: O,
    launch: impl FnMut(&mut O, &C) -> Result<()>,
) -> impl Workload<C> {
    WithOutput { output, launch }
}

struct WithOutput<O, F> {
    output: O,
    launch: F,
}

impl<O: Outputs, C, F> Workload<C> for WithOutput<O, F>
where
    F: FnMut(&mut O, &C) -> Result<()>,
{
    fn launch(&mut self, config: &C) -> Result<()> {
        (self.launch)(&mut self.output, config)
    }

    fn outputs(&self) -> Result<Vec<Array>> {
        self.output.read(&mut std::iter::empty())
    }

    fn outputs_again(&self, earlier: Vec<Array>) -> Result<Vec<Array>> {
        self.output.read(&mut earlier.into_iter())
    }

    fn spoil(&mut self) -> Result<()> {
        self.output.spoil()
    }
}

/// Takes a line about a search.
type Listener = Arc<dyn Fn(&str) + Send + Sync>;

/// A search with its file of winners.
#[doc = include_str!("examples/tuner.md")]
#[derive(Clone)]
pub struct Tuner {
    winners: WinnersFile,
    budget: Option<Duration>,
    listener: Option<Listener>,
    /// Threads that compile.
    threads: usize,
    /// Where searches go on behind launches.
    background: Option<Arc<Background>>,
}

impl fmt::Debug for Tuner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tuner")
            .field("winners", &self.winners)
            .field("budget", &self.budget)
            .finish_non_exhaustive()
    }
}

impl Tuner {
    fn new(winners: WinnersFile) -> Self {
        Self {
            winners,
            budget: None,
            listener: None,
            threads: ahead::threads(),
            background: None,
        }
    }

    /// A tuner that keeps winners in `file`, which threads and processes may share: each adds its own
    /// winners under the lock `file.lock`, and measures nothing meanwhile. A file that holds something
    /// else is renamed to `file.damaged`, with a number where that is there; what is no regular file is an error. Needs the
    /// feature `tuner-file`.
    ///
    /// While a candidate is traced or runs for the first time, a file beside this one names it. Where the process ends meanwhile, the
    /// next one notes that; what two processes did not survive is [`Verdict::Failed`] from then on and is not run.
    #[cfg(feature = "tuner-file")]
    pub fn with_file(file: impl Into<std::path::PathBuf>) -> Self {
        Self::new(WinnersFile::new(file.into()))
    }

    /// A tuner that remembers nothing.
    pub fn forgetful() -> Self {
        Self::new(WinnersFile::none())
    }

    /// Ends a search after this time: candidates that have not had their turn are [`Verdict::Skipped`]. Half of it is for
    /// listing candidates and compiling. What has begun goes on, and the first candidate has its turn and one that is right is looked for however
    /// long that takes.
    #[must_use]
    pub fn budget(self, budget: Duration) -> Self {
        Self {
            budget: Some(budget),
            ..self
        }
    }

    /// Has `listener` told what the search is about, a line at a time.
    #[must_use]
    pub fn on_progress(self, listener: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self {
            listener: Some(Arc::new(listener)),
            ..self
        }
    }

    fn say(&self, line: impl FnOnce() -> String) {
        if let Some(listener) = &self.listener {
            listener(&line());
        }
    }

    /// What is on file for a problem: the winner for it or, for one that nobody has tuned, that of the nearest problem of
    /// the same kernel, variant and device. Extents that differ by the fewest doublings are nearest. Nothing runs.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn known(&self, device: &Device, key: &TuneKey) -> Result<Option<Known>> {
        self.nearest(&key.problem(device))
    }

    /// The fastest of `candidates` whose results agree with `golden`.
    ///
    /// All candidates are compiled first, on all cores; those that the device has no room for are rejected. Each of the others is
    /// compared with `golden` as soon as it is compiled. Those that are right race: in each round the slower half leaves, and
    /// the others are measured twice as long. On a GPU the time that counts is that of a launch whose data lie in no
    /// cache.
    /// The winner on file is taken when it is among the candidates and its results still agree; that of the nearest
    /// problem has the first turn.
    ///
    /// # Errors
    /// When no candidate is right; the message says what each did. That the file cannot be read. Where it cannot be written,
    /// the winner is not lost: [`Tuned::unsaved`] says why.
    pub fn tune<C: Clone + fmt::Debug>(
        &self,
        device: &Device,
        key: &TuneKey,
        level: Determinism,
        candidates: &[C],
        golden: &[Array],
        workload: &mut impl Workload<C>,
    ) -> Result<Tuned<C>> {
        let problem = key.problem(device);
        let search = Search {
            tuner: self,
            device,
            problem: &problem,
            begin: Instant::now(),
        };
        search.tune(level, candidates, golden, workload)
    }
}

/// A search under way.
struct Search<'a> {
    tuner: &'a Tuner,
    device: &'a Device,
    problem: &'a Problem,
    begin: Instant,
}

impl Search<'_> {
    /// Whether this part of the budget is over.
    fn is_over(&self, part: f64) -> bool {
        let spent = self.begin.elapsed().as_secs_f64();
        let budget = self.tuner.budget;
        budget.is_some_and(|budget| spent > budget.as_secs_f64() * part)
    }

    /// Says that this candidate runs, for as long as the result is there.
    fn trial(&self, config: &impl fmt::Debug) -> Result<Trial> {
        let winners = &self.tuner.winners;
        winners.begin(self.problem, &format!("{config:?}"))
    }

    /// See [`Tuner::tune`].
    fn tune<C: Clone + fmt::Debug>(
        &self,
        level: Determinism,
        candidates: &[C],
        golden: &[Array],
        workload: &mut impl Workload<C>,
    ) -> Result<Tuned<C>> {
        let mut order: Vec<C> = candidates.to_vec();
        if let Some(known) = self.tuner.nearest(self.problem)? {
            let is_known = |config: &C| format!("{config:?}") == known.config;
            if let Some(place) = order.iter().position(is_known) {
                order[..=place].rotate_right(1);
                if known.is_exact && self.is_right(level, &order[0], golden, workload)? {
                    self.tuner.note(self.problem, &known);
                    return Ok(Tuned {
                        config: order.swap_remove(0),
                        seconds: known.seconds,
                        trials: Vec::new(),
                        provenance: known.provenance,
                        unsaved: None,
                    });
                }
            }
        }
        let trials = self.run(level, &order, golden, workload)?;
        let (config, seconds) = fastest(&trials)?;
        let provenance = Provenance::now(self.device, self.begin.elapsed());
        let winner = Winner {
            config: format!("{config:?}"),
            seconds,
            provenance: provenance.clone(),
        };
        self.tuner.note(self.problem, &winner.known(self.problem));
        let kept = self.tuner.winners.keep(self.problem.clone(), winner);
        let unsaved = kept.err().map(|error| error.to_string());
        if let Some(reason) = &unsaved {
            log::warn!(
                "the winner of {} is not on file: {reason}",
                self.problem.kernel
            );
        }
        Ok(Tuned {
            config,
            seconds,
            trials,
            provenance,
            unsaved,
        })
    }

    /// Whether the winner on file still gives the golden results.
    fn is_right<C: fmt::Debug>(
        &self,
        level: Determinism,
        config: &C,
        golden: &[Array],
        workload: &mut impl Workload<C>,
    ) -> Result<bool> {
        let crashed = self.tuner.winners.crashed(self.problem)?;
        if crashed.contains(&format!("{config:?}")) {
            return Ok(false);
        }
        let _trial = self.trial(config)?;
        let checked = judge::check(
            self.device,
            level,
            config,
            (golden, &mut Vec::new()),
            workload,
        );
        Ok(checked.is_ok_and(|wrong| wrong.is_none()))
    }

    /// Why a candidate had no turn.
    fn no_time(&self) -> Verdict {
        let seconds = self.tuner.budget.unwrap_or_default().as_secs_f64();
        Verdict::Skipped(format!("the budget of {seconds} s was over"))
    }

    fn run<C: Clone + fmt::Debug>(
        &self,
        level: Determinism,
        candidates: &[C],
        golden: &[Array],
        workload: &mut impl Workload<C>,
    ) -> Result<Vec<(C, Verdict)>> {
        let judged = Judged::new(self, level, golden, workload).all(candidates)?;
        let (candidates, mut verdicts): (Vec<&C>, Vec<Verdict>) = judged.into_iter().unzip();
        let mut clock = Clock::new(self.device);
        let is_over = || self.is_over(1.0);
        race(&mut verdicts, &is_over, |index, least| {
            let config = candidates[index];
            ending::check()?;
            self.tuner.say(|| format!("measuring {config:?}"));
            judge::guarded(|| clock.times(least, || workload.launch(config)))
        });
        ending::check()?;
        for verdict in &mut verdicts {
            if matches!(verdict, Verdict::Measured(times) if times.cold.is_infinite()) {
                *verdict = self.no_time();
            }
        }
        Ok(candidates.into_iter().cloned().zip(verdicts).collect())
    }
}

#[cfg(test)]
mod tests;
