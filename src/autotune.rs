//! The tuner: which configuration is fastest on the device in hand, among those that are right.
//!
//! A candidate may win only after its results were compared with the golden run: bit for bit
//! unless determinism is not guaranteed, by the standard tolerance otherwise. With the
//! feature `tuner-file` winners are kept in a JSON file, so that a later run measures nothing.

use std::fmt;
use std::time::{Duration, Instant};

use exactile_core::ir::Number;
use exactile_core::target::Determinism;

use crate::ahead::compile_all;
use crate::array::Array;
use crate::buffer::Buffer;
use crate::compare::{Comparable, Tolerance, compare_within};
use crate::device::{Device, DeviceKind};
use crate::error::{Error, Result};
use crate::winners::{Winner, WinnersFile};

/// Least time spent on measuring what may win.
const LEAST_TIME: Duration = Duration::from_millis(20);
/// Rounds of a race: each takes twice as long for a candidate as the one before it, with half of the candidates.
const ROUNDS: u32 = 4;
/// Time of the launches that a GPU gets in line.
const LINE_TIME: Duration = Duration::from_millis(5);
/// Least and most measured launches of one candidate.
const LAUNCHES: std::ops::Range<usize> = 3..100;

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
    fn text(&self, device: &Device) -> String {
        let bucket: Vec<usize> = self
            .extents
            .iter()
            .map(|&extent| extent.checked_next_power_of_two().unwrap_or(extent))
            .collect();
        format!(
            "{} {bucket:?} {} on {} by {}",
            self.kernel,
            self.variant,
            device.name(),
            env!("CARGO_PKG_VERSION")
        )
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
    /// Spoils the outputs, so that a candidate cannot pass by leaving the results of another.
    fn spoil(&mut self) -> Result<()>;
    /// Whether a launch is several kernels, one on the results of another: then some programs alone
    /// give no part of the results.
    fn in_phases(&self) -> bool {
        false
    }
}

/// What a kernel writes: a buffer, or a tuple of buffers.
pub trait Outputs {
    /// Copies on the host.
    fn read(&self) -> Result<Vec<Array>>;
    /// Overwrites them all; see [`Buffer::spoil`].
    fn spoil(&mut self) -> Result<()>;
}

impl<T: Number> Outputs for Buffer<T> {
    fn read(&self) -> Result<Vec<Array>> {
        Ok(vec![self.to_array()?])
    }

    fn spoil(&mut self) -> Result<()> {
        Buffer::spoil(self)
    }
}

macro_rules! output_tuples {
    ($(($($O:ident $index:tt),*);)*) => { $(
        impl<$($O: Outputs),*> Outputs for ($($O,)*) {
            fn read(&self) -> Result<Vec<Array>> {
                Ok([$(self.$index.read()?),*].concat())
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
        self.output.read()
    }

    fn spoil(&mut self) -> Result<()> {
        self.output.spoil()
    }
}

/// How a candidate fared.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// Right, and this fast: the median of the launches in the last round that it was in, in seconds.
    Measured(f64),
    /// Its results differ from the golden run.
    Wrong(String),
    /// It does not compile or run.
    Failed(String),
}

/// The outcome of a search.
#[derive(Clone, Debug)]
pub struct Tuned<C> {
    /// The winner.
    pub config: C,
    /// The winner's time, in seconds.
    pub seconds: f64,
    /// All candidates in the order given; empty when the winner came from the file.
    pub trials: Vec<(C, Verdict)>,
}

/// A search with its file of winners.
#[doc = include_str!("examples/tuner.md")]
#[derive(Clone, Debug)]
pub struct Tuner {
    winners: WinnersFile,
}

impl Tuner {
    /// A tuner that keeps winners in `file`, which threads and processes may share: each adds its own
    /// winners under the lock `file.lock`, and measures nothing meanwhile. A file that holds something
    /// else is renamed to `file.damaged`. Needs the feature `tuner-file`.
    #[cfg(feature = "tuner-file")]
    pub fn with_file(file: impl Into<std::path::PathBuf>) -> Self {
        Self {
            winners: WinnersFile::new(file.into()),
        }
    }

    /// A tuner that remembers nothing.
    pub fn forgetful() -> Self {
        Self {
            winners: WinnersFile::none(),
        }
    }

    /// The fastest of `candidates` whose results agree with `golden`.
    ///
    /// All candidates are compiled first, on all cores, then compared with `golden` one after another. Those that are
    /// right race: in each round the slower half leaves, and the others are measured twice as long.
    /// The winner on file is taken when it is among the candidates and its results still agree.
    /// It is an error when no candidate is right; the message says what each did.
    pub fn tune<C: Clone + fmt::Debug>(
        &self,
        device: &Device,
        key: &TuneKey,
        level: Determinism,
        candidates: &[C],
        golden: &[Array],
        workload: &mut impl Workload<C>,
    ) -> Result<Tuned<C>> {
        let key = key.text(device);
        if let Some(winner) = self.winners.find(&key)? {
            let same = |config: &&C| format!("{config:?}") == winner.config;
            if let Some(config) = candidates.iter().find(same)
                && check(device, level, config, golden, workload).is_ok_and(|wrong| wrong.is_none())
            {
                return Ok(Tuned {
                    config: config.clone(),
                    seconds: winner.seconds,
                    trials: Vec::new(),
                });
            }
        }
        let compiled = compile(device, candidates, workload);
        let judged = candidates
            .iter()
            .zip(compiled)
            .map(|(config, compiled)| match compiled {
                Ok(()) => judge(device, level, config, golden, workload),
                Err(reason) => Verdict::Failed(reason),
            });
        let mut verdicts: Vec<Verdict> = judged.collect();
        let last = race(&mut verdicts, |index, least| {
            measure_for(device, least, || workload.launch(&candidates[index]))
        });
        let trials: Vec<(C, Verdict)> = candidates.iter().cloned().zip(verdicts).collect();
        let (config, seconds) = fastest(&trials, &last)?;
        let winner = Winner {
            config: format!("{config:?}"),
            seconds,
        };
        self.winners.keep(key, winner)?;
        Ok(Tuned {
            config,
            seconds,
            trials,
        })
    }
}

/// The fastest of the `last` ones of a race, whose times are the surest; of all where none of those is left.
fn fastest<C: Clone + fmt::Debug>(trials: &[(C, Verdict)], last: &[usize]) -> Result<(C, f64)> {
    let time = |&index: &usize| match &trials[index].1 {
        Verdict::Measured(seconds) => Some((index, *seconds)),
        Verdict::Wrong(_) | Verdict::Failed(_) => None,
    };
    let all: Vec<usize> = (0..trials.len()).collect();
    let least = |indices: &[usize]| {
        let times = indices.iter().filter_map(time);
        times.min_by(|one, other| one.1.total_cmp(&other.1))
    };
    least(last)
        .or_else(|| least(&all))
        .map(|(index, seconds)| (trials[index].0.clone(), seconds))
        .ok_or_else(|| {
            let mut message = format!("none of {} configurations is right", trials.len());
            for (config, verdict) in trials {
                message.push_str(&format!("\n  {config:?}: {verdict:?}"));
            }
            Error::Mismatch(message)
        })
}

/// Compiles all candidates on all cores, before anything is measured, and says which ones do not
/// compile, and why.
fn compile<C>(
    device: &Device,
    candidates: &[C],
    workload: &mut impl Workload<C>,
) -> Vec<std::result::Result<(), String>> {
    let mut record = |config: &C| {
        // Where a launch cannot be recorded, the real one says why.
        device
            .record(|| workload.launch(config))
            .unwrap_or_default()
    };
    let sets: Vec<_> = candidates.iter().map(&mut record).collect();
    let mut outcomes = vec![Ok(()); sets.len()];
    compile_all(device, &sets, None, &mut |index, outcome| {
        outcomes[index] = outcome;
    });
    outcomes
}

/// Measures all that is right, and tells who was in the last round; `measure` takes the position of a candidate and the least time to spend on it.
fn race(
    verdicts: &mut [Verdict],
    mut measure: impl FnMut(usize, Duration) -> Result<f64>,
) -> Vec<usize> {
    let is_right = |verdict: &Verdict| matches!(verdict, Verdict::Measured(_));
    let mut left: Vec<usize> = (0..verdicts.len())
        .filter(|&index| is_right(&verdicts[index]))
        .collect();
    for round in (0..ROUNDS).rev() {
        // What is alone need not be quick.
        let shift = if left.len() > 2 { round } else { 0 };
        let mut times = Vec::new();
        for &index in &left {
            verdicts[index] = match measure(index, LEAST_TIME / (1 << shift)) {
                Ok(seconds) => {
                    times.push((seconds, index));
                    Verdict::Measured(seconds)
                }
                Err(error) => Verdict::Failed(error.to_string()),
            };
        }
        if shift == 0 {
            break;
        }
        times.sort_by(|one, other| one.0.total_cmp(&other.0));
        times.truncate(times.len().div_ceil(2));
        left = times.into_iter().map(|(_, index)| index).collect();
    }
    left
}

/// Whether a candidate is right; its time is to be measured yet.
fn judge<C>(
    device: &Device,
    level: Determinism,
    config: &C,
    golden: &[Array],
    workload: &mut impl Workload<C>,
) -> Verdict {
    match check(device, level, config, golden, workload) {
        Ok(Some(report)) => Verdict::Wrong(report),
        Ok(None) => Verdict::Measured(f64::INFINITY),
        Err(error) => Verdict::Failed(error.to_string()),
    }
}

/// Runs a candidate once and says how its results differ from the golden run, if they do.
fn check<C>(
    device: &Device,
    level: Determinism,
    config: &C,
    golden: &[Array],
    workload: &mut impl Workload<C>,
) -> Result<Option<String>> {
    workload.spoil()?;
    workload.launch(config)?;
    device.synchronize()?;
    let outputs = workload.outputs()?;
    if outputs.len() != golden.len() {
        return Err(Error::Invalid(format!(
            "the workload has {} outputs, the golden run {}",
            outputs.len(),
            golden.len()
        )));
    }
    for (got, want) in outputs.iter().zip(golden) {
        let comparison = compare_within(got, want, Tolerance::standard(want.dtype()))?;
        let right = match level {
            Determinism::NotGuaranteed => comparison.within_tolerance(),
            Determinism::BatchInvariant | Determinism::ScheduleInvariant | Determinism::Exact => {
                comparison.bits_equal()
            }
        };
        if !right {
            return Ok(Some(comparison.to_string()));
        }
    }
    Ok(None)
}

/// The median time of a launch, in seconds, after one launch to warm up.
///
/// On a GPU launches are put in line and waited for together, so that the figure is the time of the
/// kernel and not the latency of a launch.
pub fn measure(device: &Device, launch: impl FnMut() -> Result<()>) -> Result<f64> {
    measure_for(device, LEAST_TIME, launch)
}

/// The same in this time, or longer where launches are.
fn measure_for(
    device: &Device,
    least: Duration,
    mut launch: impl FnMut() -> Result<()>,
) -> Result<f64> {
    // The second launch may use other code than the first: that of launches proved in bounds.
    launch()?;
    device.synchronize()?;
    launch()?;
    device.synchronize()?;
    let mut timed = |count: usize| -> Result<f64> {
        let begin = Instant::now();
        for _ in 0..count {
            launch()?;
        }
        device.synchronize()?;
        Ok(begin.elapsed().as_secs_f64() / count as f64)
    };
    let line = match device.kind() {
        DeviceKind::Cpu | DeviceKind::Interpreter | DeviceKind::Lanes => 1,
        DeviceKind::Cuda(_) => (LINE_TIME.as_secs_f64() / timed(1)?).clamp(1.0, 1000.0) as usize,
    };
    let start = Instant::now();
    let mut times = Vec::new();
    while times.len() < LAUNCHES.start || (start.elapsed() < least && times.len() < LAUNCHES.end) {
        times.push(timed(line)?);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

#[cfg(test)]
mod tests;
