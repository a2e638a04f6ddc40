//! The candidates of a search and how they fared.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use exactile_core::target::Determinism;

use super::{Search, Workload, judge};
use crate::ahead::{Job, Outcome, compile_all, estimated, in_turn};
use crate::array::Array;
use crate::ending;
use crate::error::{Error, Result};
use crate::winners::{Provenance, Trial};

/// How long a launch takes, in seconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Times {
    /// With nothing of its data in the caches of a GPU; on the host, with caches as they are. Medians, by which
    /// candidates are ranked.
    pub cold: f64,
    /// Launches in line, each with the data of the one before it in the caches; of those that came to the last round.
    pub warm: Option<f64>,
    /// Rounds of the race that the candidate was in; the times are those of the last of these.
    pub rounds: u32,
}

impl Times {
    /// Those that were in more rounds first, then by time.
    pub(super) fn rank(&self, other: &Self) -> Ordering {
        let rounds = other.rounds.cmp(&self.rounds);
        rounds.then(self.cold.total_cmp(&other.cold))
    }
}

/// How a candidate fared.
#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    /// Right, and this fast.
    Measured(Times),
    /// It was not run: it does not compile, or the device has no room for it.
    Rejected(String),
    /// Its results differ from the golden run.
    Wrong(String),
    /// It ran, and ended with an error or a panic; or processes ended while it ran.
    Failed(String),
    /// It had no turn.
    Skipped(String),
}

/// The outcome of a search.
#[derive(Clone, Debug)]
pub struct Tuned<C> {
    /// The winner.
    pub config: C,
    /// The winner's time, in seconds: [`Times::cold`].
    pub seconds: f64,
    /// All candidates in the order of their turns; empty when the winner came from the file.
    pub trials: Vec<(C, Verdict)>,
    /// Where and when the winner was found.
    pub provenance: Provenance,
    /// Why the winner is not on file, where it could not be written there.
    pub unsaved: Option<String>,
}

impl<C> Tuned<C> {
    /// That the winner is on file, for who sees nothing else of a search.
    pub(super) fn kept(self) -> Result<()> {
        match self.unsaved {
            None => Ok(()),
            Some(reason) => Err(Error::Invalid(not_on_file(&reason))),
        }
    }
}

fn not_on_file(reason: &str) -> String {
    format!("the winner is not on file: {reason}")
}

/// So many candidates of a kind have a line.
const MOST_LINES: usize = 50;

/// Lines of those that have no time, each with so many lines of the reason, and one that counts those beyond [`MOST_LINES`].
pub(super) fn others<C: fmt::Debug>(trials: &[(C, Verdict)], reasons: usize) -> String {
    let is_other = |trial: &&(C, Verdict)| !matches!(trial.1, Verdict::Measured(_));
    let mut lines = String::new();
    for (config, verdict) in trials.iter().filter(is_other).take(MOST_LINES) {
        let reason = list(verdict);
        let reason: Vec<&str> = reason.lines().take(reasons).collect();
        lines.push_str(&format!("   - {config:?}: {}\n", reason.join("\n")));
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, verdict) in trials.iter().filter(is_other).skip(MOST_LINES) {
        *counts.entry(verdict.word()).or_default() += 1;
    }
    if !counts.is_empty() {
        let counts = counts.iter().map(|(word, count)| format!("{count} {word}"));
        let counts = counts.collect::<Vec<_>>().join(", ");
        lines.push_str(&format!("   - more: {counts}\n"));
    }
    lines
}

/// A table: what was measured by rank, then the others with the reason.
impl<C: fmt::Debug> fmt::Display for Tuned<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.trials.is_empty() {
            let (config, provenance) = (&self.config, &self.provenance);
            return writeln!(f, "{config:?}, {} ms: {provenance}", self.seconds * 1e3);
        }
        writeln!(f, "rank    cold ms    warm ms  rounds  configuration")?;
        let time = |verdict: &Verdict| match verdict {
            Verdict::Measured(times) => Some(*times),
            Verdict::Rejected(_) | Verdict::Wrong(_) | Verdict::Failed(_) | Verdict::Skipped(_) => {
                None
            }
        };
        let trials = self.trials.iter();
        let mut measured: Vec<(&C, Times)> = trials
            .filter_map(|(config, verdict)| Some((config, time(verdict)?)))
            .collect();
        measured.sort_by(|(_, one), (_, other)| one.rank(other));
        let count = measured.len();
        for (index, (config, times)) in measured.into_iter().take(MOST_LINES).enumerate() {
            let warm = times.warm.map(|seconds| format!("{:.5}", seconds * 1e3));
            let (cold, warm) = (times.cold * 1e3, warm.unwrap_or_default());
            let (rank, rounds) = (index + 1, times.rounds);
            writeln!(f, "{rank:4} {cold:10.5} {warm:>10} {rounds:7}  {config:?}")?;
        }
        if count > MOST_LINES {
            writeln!(f, "   - {} more that are slower", count - MOST_LINES)?;
        }
        f.write_str(&others(&self.trials, 1))?;
        if let Some(reason) = &self.unsaved {
            writeln!(f, "{}", not_on_file(reason))?;
        }
        writeln!(f, "{}", self.provenance)
    }
}

impl Verdict {
    fn word(&self) -> &'static str {
        match self {
            Self::Measured(_) => "measured",
            Self::Rejected(_) => "rejected",
            Self::Wrong(_) => "wrong",
            Self::Failed(_) => "failed",
            Self::Skipped(_) => "skipped",
        }
    }
}

/// A verdict in words.
fn list(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Measured(times) => format!("{} ms", times.cold * 1e3),
        Verdict::Rejected(text)
        | Verdict::Wrong(text)
        | Verdict::Failed(text)
        | Verdict::Skipped(text) => {
            format!("{}: {text}", verdict.word())
        }
    }
}

/// What stands for a candidate that is to be judged or measured.
const READY: Verdict = Verdict::Measured(Times {
    cold: f64::INFINITY,
    warm: None,
    rounds: 0,
});

/// What became of the candidates that were judged.
pub(super) struct Judged<'a, W> {
    search: &'a Search<'a>,
    level: Determinism,
    golden: &'a [Array],
    workload: &'a mut W,
    /// What the one before has written.
    outputs: Vec<Array>,
    /// Whether one was right.
    any: bool,
    /// The one since which the device does not answer.
    lost: Option<String>,
}

impl<'a, W> Judged<'a, W> {
    pub(super) fn new(
        search: &'a Search<'a>,
        level: Determinism,
        golden: &'a [Array],
        workload: &'a mut W,
    ) -> Self {
        Self {
            search,
            level,
            golden,
            workload,
            outputs: Vec::new(),
            any: false,
            lost: None,
        }
    }

    /// Compiles all candidates on all cores, and runs each that is ready and compares its results while others are compiled;
    /// those that do not compile, or that the device has no room for, are rejected. All of them, in the order of their turns.
    pub(super) fn all<C: fmt::Debug>(mut self, candidates: &[C]) -> Result<Vec<(&C, Verdict)>>
    where
        W: Workload<C>,
    {
        let (search, winners) = (self.search, &self.search.tuner.winners);
        let crashed = winners.crashed(search.problem)?;
        let mut verdicts: Vec<Verdict> = candidates.iter().map(|_| search.no_time()).collect();
        pass_over(candidates, &mut verdicts, &crashed);
        let (sets, turns) = self.list(candidates, &mut verdicts)?;
        let candidates: Vec<&C> = turns.iter().map(|&turn| &candidates[turn]).collect();
        let mut verdicts: Vec<Verdict> = turns.iter().map(|&turn| verdicts[turn].clone()).collect();
        let mut told = Ok(());
        let mut take = |this: &mut Self, index: usize, outcome: Outcome| {
            if told.is_ok() && matches!(verdicts[index], Verdict::Skipped(_)) {
                let compiled = (candidates[index], sets[index].as_slice(), outcome);
                let judged = this.compiled(index, compiled);
                told = judged.map(|verdict| verdicts[index] = verdict);
            }
        };
        // Where a process ended while it compiled, nobody knows which candidate it was.
        if crashed.contains(Trial::ALL) {
            for (index, (&config, jobs)) in candidates.iter().zip(&sets).enumerate() {
                if index > 0 && search.is_over(0.5) {
                    break;
                }
                let ended = self.compile_alone(config, jobs)?;
                if let Some(outcome) = ended {
                    take(&mut self, index, outcome);
                }
            }
        } else {
            let spent = search.begin.elapsed();
            let limit = search.tuner.budget;
            let limit = limit.map(|budget| (budget / 2).saturating_sub(spent));
            let threads = search.tuner.threads;
            let _trial = winners.begin(search.problem, Trial::ALL)?;
            compile_all(
                search.device,
                &sets,
                limit,
                threads,
                &mut |index, outcome| {
                    take(&mut self, index, outcome);
                },
            );
        }
        told?;
        ending::check()?;
        // The first one has its turn however late it was compiled, and where nothing was right in time, so have all.
        for (index, (&config, verdict)) in candidates.iter().zip(&mut verdicts).enumerate() {
            if matches!(verdict, Verdict::Skipped(_)) && (index == 0 || !self.any) {
                let _trial = search.trial(config)?;
                *verdict = match self.refusal(config) {
                    Some(reason) => Verdict::Rejected(reason),
                    None => self.judge(config, index)?,
                };
            }
        }
        Ok(candidates.into_iter().zip(verdicts).collect())
    }

    fn compile_alone<C: fmt::Debug>(&self, config: &C, jobs: &Vec<Job>) -> Result<Option<Outcome>> {
        let _trial = self.search.trial(config)?;
        let mut ended = None;
        compile_all(
            self.search.device,
            std::slice::from_ref(jobs),
            None,
            1,
            &mut |_, outcome| {
                ended = Some(outcome);
            },
        );
        Ok(ended)
    }

    /// What each candidate would compile, as far as a quarter of the budget goes, and the turns of all: the first one, of which
    /// its lister or a file thinks most, then those that were listed, by their estimated cost. Those that are refused are rejected.
    fn list<C: fmt::Debug>(
        &mut self,
        candidates: &[C],
        verdicts: &mut [Verdict],
    ) -> Result<(Vec<Vec<Job>>, Vec<usize>)>
    where
        W: Workload<C>,
    {
        let mut sets: Vec<(f64, (usize, Vec<Job>))> = Vec::new();
        for (place, (config, verdict)) in candidates.iter().zip(verdicts).enumerate() {
            if !sets.is_empty() && self.search.is_over(0.25) {
                break;
            }
            let (mut cost, mut jobs) = (f64::INFINITY, Vec::new());
            if let Verdict::Skipped(_) = verdict {
                let _trial = self.search.trial(config)?;
                match self.refusal(config) {
                    Some(reason) => *verdict = Verdict::Rejected(reason),
                    None => {
                        jobs = self.jobs(config);
                        let device = self.search.device;
                        let found = judge::guarded(|| Ok(estimated(device, &jobs)));
                        cost = found.unwrap_or(cost);
                    }
                }
            }
            sets.push((cost, (place, jobs)));
        }
        in_turn(&mut sets);
        let unlisted = sets.len()..candidates.len();
        let (listed, sets): (Vec<usize>, _) = sets.into_iter().map(|(_, it)| it).unzip();
        Ok((sets, listed.into_iter().chain(unlisted).collect()))
    }

    /// Why a candidate is not worth compiling, if that is so.
    fn refusal<C>(&self, config: &C) -> Option<String>
    where
        W: Workload<C>,
    {
        let refused = judge::guarded(|| Ok(self.workload.refuses(config)));
        refused.unwrap_or_else(|error| Some(error.to_string()))
    }

    /// What a candidate would compile.
    fn jobs<C>(&mut self, config: &C) -> Vec<Job>
    where
        W: Workload<C>,
    {
        let (device, workload) = (self.search.device, &mut *self.workload);
        let recorded = judge::guarded(|| device.record(|| workload.launch(config)));
        // Where a launch cannot be recorded, the real one says why.
        recorded.unwrap_or_default()
    }

    /// What becomes of a candidate that was compiled.
    fn compiled<C: fmt::Debug>(
        &mut self,
        index: usize,
        (config, jobs, outcome): (&C, &[Job], Outcome),
    ) -> Result<Verdict>
    where
        W: Workload<C>,
    {
        let search = self.search;
        search.tuner.say(|| format!("compiled {config:?}"));
        let short = |job: &Job| job.shortage(search.device).unwrap_or_default();
        let reason = match (&self.lost, outcome) {
            (None, Err(reason)) => Some(reason),
            (None, Ok(())) => jobs.iter().find_map(short),
            // Nothing can be loaded there.
            (Some(_), _) => None,
        };
        reason.map_or_else(|| self.judge(config, index), |it| Ok(Verdict::Rejected(it)))
    }

    /// Runs a candidate, of this place among the turns, and compares its results.
    fn judge<C: fmt::Debug>(&mut self, config: &C, index: usize) -> Result<Verdict>
    where
        W: Workload<C>,
    {
        let (device, tuner) = (self.search.device, self.search.tuner);
        ending::check()?;
        if let Some(by) = &self.lost {
            let reason = format!("the device does not answer since {by} ran");
            return Ok(Verdict::Skipped(reason));
        }
        if index > 0 && self.any && self.search.is_over(0.75) {
            return Ok(self.search.no_time());
        }
        tuner.say(|| format!("comparing {config:?}"));
        let name = format!("{config:?}");
        let _trial = tuner.winners.begin(self.search.problem, &name)?;
        let results = (self.golden, &mut self.outputs);
        let verdict = match judge::check(device, self.level, config, results, self.workload) {
            Ok(Some(report)) => Verdict::Wrong(report),
            Ok(None) => READY,
            Err(error) => Verdict::Failed(error.to_string()),
        };
        self.any |= verdict == READY;
        if let Verdict::Failed(_) = verdict
            && judge::finish(device).is_err()
        {
            if let Err(error) = tuner.winners.note_crash(self.search.problem, &name) {
                log::warn!("nobody will know that {name} took its device with it: {error}");
            }
            self.lost = Some(name);
        }
        Ok(verdict)
    }
}

/// Candidates that processes did not survive have had their turn.
fn pass_over<C: fmt::Debug>(
    candidates: &[C],
    verdicts: &mut [Verdict],
    crashed: &BTreeSet<String>,
) {
    if crashed.is_empty() {
        return;
    }
    for (config, verdict) in candidates.iter().zip(verdicts) {
        if crashed.contains(&format!("{config:?}")) {
            let reason = "the process that ran it ended, twice, or its device was lost";
            *verdict = Verdict::Failed(reason.to_string());
        }
    }
}

/// Time of a search in words.
impl fmt::Display for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let search = Duration::from_secs_f64(self.search_seconds.max(0.0));
        write!(f, "found on {} in {:.2} s", self.date, search.as_secs_f64())?;
        write!(f, " on {}", self.device)?;
        if let Some(driver) = &self.driver {
            write!(f, " with driver {driver}")?;
        }
        write!(f, " by {}", self.sources)
    }
}
