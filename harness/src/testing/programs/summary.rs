//! What a run of random programs writes to a file.

use std::collections::BTreeMap;

use serde::Serialize;

use super::counts::Count;
use super::run::{Failure, Report};
use super::subject::Subject;
use super::watch::Stage;
use crate::bench::today;

/// A run as JSON has it.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The commit that was tested.
    pub commit: String,
    /// The day, in UTC.
    pub date: String,
    /// The seed of the run.
    pub seed: u64,
    /// The index of the first program.
    pub from: usize,
    /// How many programs were asked for.
    pub asked: usize,
    /// How many were run: those from the first on.
    pub programs: usize,
    /// How long the run took.
    pub seconds: f64,
    /// On how many threads.
    pub threads: usize,
    /// Programs in a second of a thread.
    pub rate_of_a_thread: f64,
    /// Why the GPU was left out, if it was.
    pub gpu_left_out: Option<String>,
    /// What came of the programs, by what ran them.
    pub stages: BTreeMap<&'static str, Count>,
    /// The same for each way to run a program.
    pub ways: Vec<Way>,
    /// The programs that are wrong.
    pub failures: Vec<Failed>,
    /// The programs that took longest.
    pub slowest: Vec<String>,
    /// The share of the time that each kind of stage has taken.
    pub shares: BTreeMap<String, f64>,
}

/// A way to run programs.
#[derive(Clone, Debug, Serialize)]
pub struct Way {
    /// What runs them.
    pub stage: &'static str,
    /// What is run.
    pub way: String,
    /// The number of warps, where there are any.
    pub warps: Option<u32>,
    /// What came of them.
    #[serde(flatten)]
    pub count: Count,
}

/// A program that is wrong.
#[derive(Clone, Debug, Serialize)]
pub struct Failed {
    /// Which, and the way to run it.
    pub title: String,
    /// What went wrong.
    pub message: String,
    /// How to run it again.
    pub again: String,
}

/// What runs programs.
const STAGES: [&str; 5] = ["interpreter", "schedule", "cpu", "lanes", "gpu"];

/// What runs programs in one of the ways.
fn stage(subject: Option<Subject>) -> &'static str {
    let [interpreter, schedule, cpu, lanes, gpu] = STAGES;
    match subject {
        None | Some(Subject::Text | Subject::Tidy | Subject::Prepared) => interpreter,
        Some(Subject::Scheduled(_)) => schedule,
        Some(Subject::Cpu) => cpu,
        Some(Subject::Sequential | Subject::Varied(_) | Subject::Distributed(_)) => lanes,
        Some(Subject::Cuda(_)) => gpu,
    }
}

impl Summary {
    /// The summary of a run of this commit.
    pub fn new(report: &Report, commit: &str) -> Self {
        let options = &report.options;
        let mut stages: BTreeMap<_, _> = STAGES.map(|it| (it, Count::default())).into();
        let mut ways = Vec::new();
        for (&subject, &count) in &report.counts {
            stages.entry(stage(subject)).or_default().add(count);
            ways.push(Way {
                stage: stage(subject),
                way: subject.map_or(Stage::Interpreter, Stage::Subject).kind(),
                warps: subject.and_then(Subject::warps),
                count,
            });
        }
        let again = |failure: &Failure| {
            let (seed, index) = (options.seed, failure.index);
            format!("exactile selftest programs --seed {seed} --only {index}")
        };
        let failed = |failure: &Failure| Failed {
            title: failure.title(),
            message: failure.message.clone(),
            again: again(failure),
        };
        let total = report.total_seconds();
        let share = |seconds: f64| seconds / total.max(f64::MIN_POSITIVE);
        let shares = report.spent.iter();
        Self {
            commit: commit.to_string(),
            date: today(),
            seed: options.seed,
            from: options.only.unwrap_or(options.from),
            asked: options.only.map_or(options.count, |_| 1),
            programs: report.programs,
            seconds: report.time.as_secs_f64(),
            threads: report.threads,
            rate_of_a_thread: report.rate(),
            gpu_left_out: report.skipped.clone(),
            stages,
            ways,
            failures: report.failures.iter().map(failed).collect(),
            slowest: report.slowest.iter().map(ToString::to_string).collect(),
            shares: shares
                .map(|(kind, time)| (kind.clone(), share(time.as_secs_f64())))
                .collect(),
        }
    }
}
