//! The search for the best configuration, on the bench's own clock and within a time.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::clock::Clock;
use crate::demo::Problem;
use exactile::Determinism;
use exactile::Device;
use exactile::internals::{self, Job, compile_all, threads};
use exactile::{Error, Result};
use exactile_kernels::Setting;

/// Time of one candidate in the first pass, and of the best ones in the second.
const TIMES: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(40));

/// Candidates that reach the second pass.
const FINALISTS: usize = 4;

/// How a search went.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Search {
    /// Configurations measured.
    pub measured: usize,
    /// Configurations that there were.
    pub candidates: usize,
    /// Configurations that did not compile or run, with the first one's reason.
    pub failed: usize,
    /// Why the first of these failed.
    pub reason: Option<String>,
    /// How many failed, by the reason.
    pub reasons: BTreeMap<String, usize>,
    /// Threads that compiled side by side.
    pub threads: usize,
    /// Seconds from the first compilation to the end of the last.
    pub seconds: f64,
    /// Seconds of the launches that prove candidates to run, in that time.
    pub launch_seconds: f64,
    /// Codes that the backend made; configurations may share them.
    pub codes: usize,
    /// Seconds of each stage of the compiler, of all threads together.
    pub stage_seconds: BTreeMap<String, f64>,
}

impl Search {
    /// The search as a line for people: where the time went.
    pub(super) fn line(&self) -> String {
        let stages = self.stage_seconds.iter();
        let mut stages: Vec<_> = stages.filter(|(_, seconds)| **seconds >= 0.05).collect();
        stages.sort_by(|one, other| other.1.total_cmp(one.1));
        let stages: Vec<String> = stages
            .iter()
            .map(|(name, seconds)| format!("{name} {seconds:.1}"))
            .collect();
        let mut line = format!(
            "{} of {} configurations compiled in {:.1} s by {} threads: {} codes; seconds of all \
             threads: {}; launches {:.1} s",
            self.measured,
            self.candidates,
            self.seconds,
            self.threads,
            self.codes,
            stages.join(", "),
            self.launch_seconds,
        );
        if let Some(reason) = &self.reason {
            line.push_str(&format!("; {} failed, first {reason}", self.failed));
        }
        line
    }
}

/// Compiles candidates on all cores until the time is over, each at every level, so that no level
/// has more to choose from, and runs them: the first one, then by estimated cost. Those that ran come back in this order.
pub(super) fn compile(
    device: &Device,
    problem: &mut Problem,
    candidates: &[Setting],
    levels: &[Determinism],
    time: Duration,
) -> Result<(Vec<Setting>, Search)> {
    let (before, begin) = (internals::costs(device), Instant::now());
    let mut launch = |candidate: &Setting, repeated: usize| -> Result<()> {
        for &level in levels {
            let setting = candidate.at(level);
            (0..repeated).try_for_each(|_| problem.launch(&setting))?;
        }
        Ok(())
    };
    let (candidates, sets) = in_turn(device, candidates, &mut |it| launch(it, 1));
    let mut trial = Trial {
        device,
        candidates: &candidates,
        time,
        tried: BTreeMap::new(),
        launching: Duration::ZERO,
    };
    // The second launch may use other code: that of launches proved in bounds.
    let mut run = |candidate: &Setting| launch(candidate, 2);
    compile_all(
        device,
        &sets,
        Some(time),
        threads(),
        &mut |index, outcome| {
            trial.take(index, outcome, &mut run);
        },
    );
    let seconds = begin.elapsed().as_secs_f64();
    trial.take_others(&mut run);
    let after = internals::costs(device);
    let spent = after.seconds.iter().map(|(&name, seconds)| {
        let before = before.seconds.get(name).copied().unwrap_or_default();
        (name.to_string(), seconds - before)
    });
    let mut search = Search {
        threads: threads(),
        seconds,
        codes: after.codes - before.codes,
        stage_seconds: spent.collect(),
        ..trial.search()
    };
    let compiled = trial.ready();
    if compiled.is_empty() {
        let reason = search.reason.take().unwrap_or_default();
        return Err(Error::Invalid(format!("no configuration runs: {reason}")));
    }
    Ok((compiled, search))
}

/// Candidates in the order of their turns, each with what `launch` would compile.
fn in_turn(
    device: &Device,
    candidates: &[Setting],
    launch: &mut dyn FnMut(&Setting) -> Result<()>,
) -> (Vec<Setting>, Vec<Vec<Job>>) {
    let listed = candidates.iter().map(|candidate| {
        // Where a launch cannot be recorded, the real one says why.
        let recorded = internals::record(device, || launch(candidate));
        let jobs = recorded.unwrap_or_default();
        (internals::estimated(device, &jobs), (*candidate, jobs))
    });
    let mut turns: Vec<_> = listed.collect();
    internals::in_turn(&mut turns);
    turns.into_iter().map(|(_, it)| it).unzip()
}

/// Runs candidates when their code is ready.
struct Trial<'a> {
    device: &'a Device,
    candidates: &'a [Setting],
    time: Duration,
    /// Candidates by index, with the reason where they failed.
    tried: BTreeMap<usize, Option<String>>,
    launching: Duration,
}

impl Trial<'_> {
    fn any_ready(&self) -> bool {
        self.tried.values().any(Option::is_none)
    }

    fn take(
        &mut self,
        index: usize,
        compiled: std::result::Result<(), String>,
        run: &mut dyn FnMut(&Setting) -> Result<()>,
    ) {
        if index > 0 && self.launching > self.time && self.any_ready() {
            return;
        }
        let begin = Instant::now();
        let ran = compiled.and_then(|()| {
            let ran = run(&self.candidates[index]).and_then(|()| self.device.synchronize());
            ran.map_err(|error| error.to_string())
        });
        self.launching += begin.elapsed();
        self.tried.insert(index, ran.err());
    }

    /// The first candidate has its turn even if it was not compiled in time, and when none of those runs that were, so have the
    /// others until one does.
    fn take_others(&mut self, run: &mut dyn FnMut(&Setting) -> Result<()>) {
        for index in 0..self.candidates.len() {
            if index > 0 && self.any_ready() {
                return;
            }
            if !self.tried.contains_key(&index) {
                self.take(index, Ok(()), run);
            }
        }
    }

    fn ready(&self) -> Vec<Setting> {
        let ready = self.tried.iter().filter(|(_, reason)| reason.is_none());
        ready.map(|(&index, _)| self.candidates[index]).collect()
    }

    fn search(&self) -> Search {
        let failures = self.tried.iter().filter_map(|(&index, reason)| {
            let reason = reason.as_ref()?;
            Some(format!("{:?}: {reason}", self.candidates[index]))
        });
        let failures: Vec<String> = failures.collect();
        let mut reasons = BTreeMap::new();
        for reason in self.tried.values().flatten() {
            *reasons.entry(reason.clone()).or_default() += 1;
        }
        Search {
            reasons,
            measured: self.tried.len() - failures.len(),
            candidates: self.candidates.len(),
            failed: failures.len(),
            reason: failures.into_iter().next(),
            launch_seconds: self.launching.as_secs_f64(),
            ..Search::default()
        }
    }
}

/// Candidates with the seconds that they took, the fastest first; at least one.
pub(super) type Ranked = Vec<(f64, Setting)>;

/// The fastest of compiled candidates at one level, and all of them as they were measured in short.
pub(super) fn fastest(
    clock: &mut Clock,
    problem: &mut Problem,
    compiled: &[Setting],
    determinism: Determinism,
) -> Result<[Ranked; 2]> {
    let mut timed = Vec::new();
    for &candidate in compiled {
        let setting = candidate.at(determinism);
        let time = clock.median(TIMES.0, &mut || problem.launch(&setting))?;
        timed.push((time, setting));
    }
    timed.sort_by(|one, other| one.0.total_cmp(&other.0));
    let all = timed.clone();
    timed.truncate(FINALISTS);
    for (seconds, setting) in &mut timed {
        *seconds = clock.median(TIMES.1, &mut || problem.launch(setting))?;
    }
    timed.sort_by(|one, other| one.0.total_cmp(&other.0));
    match timed.is_empty() {
        true => Err(Error::Invalid("there are no configurations".to_string())),
        false => Ok([timed, all]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::problem;
    use exactile::Buffer;
    use exactile::Schedule;
    use exactile::prelude::*;

    const LEVELS: [Determinism; 2] = [Determinism::Exact, Determinism::NotGuaranteed];

    /// Sums of rows of 64; a `WIDTH` that is no power of two is an error of the trace.
    #[kernel]
    fn sums<const WIDTH: usize>(x: Ptr<f32>, out: PtrMut<f32>) {
        let row = program_id(0);
        let mut sum = sum_accumulator::<f32>([]);
        for start in range(0, 64).step(WIDTH) {
            sum.add(load(x + row * 64 + start + arange(0, WIDTH)), 0);
        }
        store(out + row, sum.finish());
    }

    fn setup(device: &Device) -> Problem {
        let x = Buffer::from_slice(device, &[0.1f32; 640]).expect("fits");
        let out = Buffer::<f32>::zeros(device, 10).expect("fits");
        let device = device.clone();
        problem(out, move |out, setting: &Setting| {
            let kernel = sums().width(setting.block).schedule(setting.schedule);
            // A grid that is too large is found by a launch alone.
            let grid = if setting.width == 0 { 10 } else { 11 };
            let kernel = kernel.determinism(setting.determinism);
            kernel.run(&device, grid, (&x, out))
        })
    }

    fn candidates() -> Vec<Setting> {
        let setting = |(block, warps, width)| Setting {
            block,
            width,
            schedule: Schedule::AUTO.warps(warps),
            ..Setting::default()
        };
        let all = [
            (64, 1, 0),
            (48, 1, 0),
            (32, 1, 0),
            (32, 3, 0),
            (16, 1, 1),
            (16, 2, 0),
            (8, 1, 0),
        ];
        all.map(setting).to_vec()
    }

    /// What one launch after another finds.
    fn serial(device: &Device, candidates: &[Setting]) -> (Vec<Setting>, Vec<String>) {
        let mut problem = setup(device);
        let (mut right, mut reasons) = (Vec::new(), Vec::new());
        for &candidate in candidates {
            let mut launches = LEVELS.map(|level| candidate.at(level)).into_iter();
            match launches.try_for_each(|setting| problem.launch(&setting)) {
                Ok(()) => right.push(candidate),
                Err(error) => reasons.push(format!("{candidate:?}: {error}")),
            }
        }
        (right, reasons)
    }

    #[test]
    fn a_search_finds_what_launches_one_after_another_find() {
        for device in [Device::cpu(), Device::lanes()] {
            let all = candidates();
            let mut problem = setup(&device);
            let (turns, _) = in_turn(&device, &all, &mut |it| problem.launch(it));
            assert_eq!(turns.first(), all.first());
            let (right, reasons) = serial(&device, &turns);
            internals::forget_code(&device);
            let before = internals::costs(&device).codes;
            let time = Duration::from_secs(600);
            let (compiled, search) = compile(&device, &mut setup(&device), &all, &LEVELS, time)
                .expect("some candidates are right");
            assert_eq!(compiled, right);
            assert_eq!(
                (search.measured, search.failed),
                (right.len(), reasons.len())
            );
            assert_eq!(search.candidates, all.len());
            assert_eq!(search.reason.as_ref(), reasons.first());
            assert_eq!(search.reasons.values().sum::<usize>(), reasons.len());
            assert_eq!(search.codes, internals::costs(&device).codes - before);
            assert!(search.stage_seconds.values().sum::<f64>() > 0.0);
            let line = search.line();
            let failed = format!("{} failed, first Setting", reasons.len());
            assert!(line.contains(&failed), "{line}");
        }
    }

    #[test]
    fn without_time_one_candidate_is_found_even_behind_failures() {
        let device = Device::cpu();
        let failing = [48, 24, 12].map(|block| Setting {
            block,
            ..Setting::default()
        });
        let overrun = Setting {
            block: 8,
            width: 1,
            ..Setting::default()
        };
        let all = [&failing[..], &[overrun], &candidates()].concat();
        let time = Duration::ZERO;
        let (compiled, search) = compile(&device, &mut setup(&device), &all, &LEVELS, time)
            .expect("some candidates are right");
        assert!(!compiled.is_empty());
        assert_eq!(search.measured, compiled.len());
        let none = compile(&device, &mut setup(&device), &failing, &LEVELS, time);
        let message = none.expect_err("none is right").to_string();
        assert!(message.contains("block: 48"), "{message}");
    }
}
