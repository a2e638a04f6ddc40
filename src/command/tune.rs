//! `tune`: the fastest configurations of kernels.

use std::env;
use std::fmt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::{Case, Run, chosen, note, print, progress, progress_end};
use crate::autotune::{Tuned, Tuner, Verdict};
use crate::device::Device;
use crate::error::{Error, Result};

/// Set in a process whose end another one watches.
const WATCHED: &str = "EXACTILE_TUNE_WATCHED";
/// So many times a process that ended is started again: twice for each of some candidates.
const MOST_STARTS: usize = 40;

/// What `tune` is asked for.
#[derive(Args, Clone, Debug)]
pub struct TuneOptions {
    /// Only these kernels
    #[arg(long, value_delimiter = ',')]
    pub kernel: Vec<String>,
    /// Where they run: `cpu`, `lanes`, `cuda` or `cuda:N`; a GPU if there is one when absent
    #[arg(long)]
    device: Option<String>,
    /// Seconds for each kernel
    #[arg(long, default_value_t = 20.0, value_parser = seconds)]
    budget: f64,
    /// The file that keeps the winners; what it knows is not searched for again
    #[arg(long, default_value = "winners.json")]
    file: PathBuf,
    /// Print JSON in place of tables
    #[arg(long)]
    pub json: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok();
    let valid = seconds.filter(|it| (0.0..=1e6).contains(it));
    valid.ok_or_else(|| "expected seconds, from 0 to 1000000".to_string())
}

impl TuneOptions {
    /// The device that was asked for.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn device(&self) -> Result<Device> {
        match &self.device {
            Some(name) => Device::from_name(name),
            None => Ok(Device::cuda(0).unwrap_or_else(|reason| {
                note(&format!("no GPU: {reason}"));
                Device::cpu()
            })),
        }
    }

    /// The tuner that was asked for, which tells of its progress on a terminal.
    pub fn tuner(&self) -> Tuner {
        Tuner::with_file(&self.file)
            .budget(Duration::from_secs_f64(self.budget))
            .on_progress(progress)
    }

    /// Prints what was found, and the errors of the kernels that have no winner.
    ///
    /// # Errors
    /// Those errors.
    pub fn finish(&self, reports: &[Report], failed: &[String]) -> Result<()> {
        progress_end();
        if self.json {
            let text = serde_json::to_string_pretty(reports)
                .map_err(|error| Error::Invalid(error.to_string()))?;
            print(&format!("{text}\n"))?;
        } else {
            for report in reports {
                print(&format!("{report}\n"))?;
            }
        }
        match failed.is_empty() {
            true => Ok(()),
            false => Err(Error::Invalid(failed.join("\n"))),
        }
    }

    pub(super) fn execute(&self, cases: &[Case]) -> Result<()> {
        let cases = chosen(cases, &self.kernel)?;
        supervised(|| {
            let (device, tuner) = (self.device()?, self.tuner());
            let (mut reports, mut failed) = (Vec::new(), Vec::new());
            for (name, case) in cases {
                let ran = case(&mut Run {
                    device: &device,
                    tunes: Some((&tuner, &mut reports)),
                    name,
                });
                if let Err(error) = ran {
                    failed.push(format!("{name}: {error}"));
                }
            }
            self.finish(&reports, &failed)
        })
    }
}

/// Does `work` in a process of its own, with the same command line, and starts it again where it was killed: the tuner's
/// file says by which candidate.
///
/// # Errors
/// Those of `work` come from that process, as its exit code; and that it was killed again and again.
pub fn supervised(work: impl FnOnce() -> Result<()>) -> Result<()> {
    let program = env::current_exe().ok();
    let Some(program) = program.filter(|_| env::var_os(WATCHED).is_none()) else {
        return work();
    };
    for _ in 0..MOST_STARTS {
        let status = Command::new(&program)
            .args(env::args_os().skip(1))
            .env(WATCHED, "1")
            .status();
        let Ok(status) = status else {
            return work();
        };
        match status.code() {
            Some(0) => return Ok(()),
            Some(code) if !is_crash(code) => {
                return Err(Error::Invalid("tuning failed, as told above".to_string()));
            }
            Some(_) | None if is_stopped(status) => {
                return Err(Error::Invalid("tuning was stopped".to_string()));
            }
            Some(_) | None => {
                progress_end();
                note(&format!(
                    "a candidate ended the process ({status}); starting again"
                ));
            }
        }
    }
    let message = format!("candidates ended the process {MOST_STARTS} times");
    Err(Error::Invalid(message))
}

/// Exit codes of Windows that say so; elsewhere there is none.
fn is_crash(code: i32) -> bool {
    cfg!(windows) && code < 0
}

/// Whether a person ended it.
#[cfg(unix)]
fn is_stopped(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    const HANGUP: i32 = 1;
    const INTERRUPT: i32 = 2;
    const KILL: i32 = 9;
    const TERMINATE: i32 = 15;
    let signal = status.signal();
    signal.is_some_and(|it| [HANGUP, INTERRUPT, KILL, TERMINATE].contains(&it))
}

#[cfg(not(unix))]
fn is_stopped(_: ExitStatus) -> bool {
    false
}

/// What `tune` found for a kernel.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Its name, with what tells its problems apart.
    pub kernel: String,
    /// The configuration that won.
    pub config: String,
    /// Its milliseconds, with cold caches on a GPU.
    pub ms: f64,
    /// The model of the device.
    pub device: String,
    /// The newest CUDA that its driver is for.
    pub driver: Option<String>,
    /// The sources of the compiler.
    pub sources: String,
    /// The day of the search.
    pub date: String,
    /// Seconds that the search took, when there was one.
    pub search_seconds: f64,
    /// Candidates; none where the winner was on file.
    pub candidates: usize,
    /// Those that were right and measured.
    pub measured: usize,
    #[serde(skip)]
    table: String,
}

impl Report {
    /// What a search found for `kernel`.
    pub fn new<C: fmt::Debug>(kernel: impl Into<String>, tuned: &Tuned<C>) -> Self {
        let provenance = &tuned.provenance;
        let trials = tuned.trials.iter();
        let measured = trials.filter(|(_, verdict)| matches!(verdict, Verdict::Measured(_)));
        Self {
            kernel: kernel.into(),
            config: format!("{:?}", tuned.config),
            ms: tuned.seconds * 1e3,
            device: provenance.device.clone(),
            driver: provenance.driver.clone(),
            sources: provenance.sources.clone(),
            date: provenance.date.clone(),
            search_seconds: provenance.search_seconds,
            candidates: tuned.trials.len(),
            measured: measured.count(),
            table: tuned.to_string(),
        }
    }
}

/// The ranked table.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.kernel, self.table)
    }
}
