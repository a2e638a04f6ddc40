//! `tune`: the fastest configurations of kernels.

use std::env;
use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{self, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use tempfile::NamedTempFile;

use super::{Case, Run, chosen, launches_nothing, note, print, progress, progress_end};
use crate::autotune::{Tuned, Tuner, Verdict};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::panics::guarded;

/// Set in a process whose end another one watches: a file that is to be removed once the work is done.
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
        supervised(|| self.tune_all(&cases))
    }

    /// Whatever one case does, the others have their turn.
    pub(super) fn tune_all(&self, cases: &[Case]) -> Result<()> {
        let (device, tuner) = (self.device()?, self.tuner());
        let (mut reports, mut failed) = (Vec::new(), Vec::new());
        for (name, case) in cases {
            let before = reports.len();
            let mut run = Run {
                device: &device,
                tunes: Some((&tuner, &mut reports)),
                name,
            };
            let ran = guarded(|| format!("the function `{name}`"), || case(&mut run));
            match ran {
                Err(error) => failed.push(format!("{name}: {error}")),
                Ok(()) if reports.len() == before => {
                    failed.push(format!("{name}: {}", launches_nothing(name)));
                }
                Ok(()) => {}
            }
        }
        self.finish(&reports, &failed)
    }
}

/// Does `work` in a process of its own, with the same command line, and starts it again where that was ended before the work
/// was done: the tuner's file says by which candidate. That process ends with this one, and has no standard input.
///
/// # Errors
/// Those of `work` come from that process, as its exit code; and that it was ended again and again.
pub fn supervised(work: impl FnOnce() -> Result<()>) -> Result<()> {
    if let Some(file) = env::var_os(WATCHED) {
        let _done = Done(PathBuf::from(file));
        end_with_parent();
        return work();
    }
    let (Ok(program), Ok(undone)) = (env::current_exe(), NamedTempFile::new()) else {
        return work();
    };
    let undone = undone.into_temp_path();
    for _ in 0..MOST_STARTS {
        let child = Command::new(&program)
            .args(env::args_os().skip(1))
            .env(WATCHED, &undone)
            .stdin(Stdio::piped())
            .spawn();
        let Ok(mut child) = child else {
            return work();
        };
        // Open as long as this process lives; a wait would close it.
        let alive = child.stdin.take();
        let status = child.wait();
        drop(alive);
        let status = status.map_err(|error| Error::Invalid(error.to_string()))?;
        let is_done = !undone.exists();
        if is_stopped(status) {
            return Err(Error::Invalid("tuning was stopped".to_string()));
        } else if is_done && status.success() {
            return Ok(());
        } else if is_done {
            return Err(Error::Invalid("tuning failed, as told above".to_string()));
        }
        progress_end();
        note(&format!(
            "a candidate ended the process ({status}); starting again"
        ));
    }
    let message = format!("candidates ended the process {MOST_STARTS} times");
    Err(Error::Invalid(message))
}

/// Removes a file where the work of this process is done, by a panic too: what ends the process leaves it.
struct Done(PathBuf);

impl Drop for Done {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Ends this process when the one that started it does, which has the other end of the standard input.
#[expect(
    clippy::exit,
    reason = "nobody is left who could be told that the search is to end"
)]
fn end_with_parent() {
    let watch = || {
        while io::stdin().read(&mut [0]).is_ok_and(|bytes| bytes > 0) {}
        process::exit(1)
    };
    // Where there is no thread, it ends when its work does.
    let _ = thread::Builder::new().spawn(watch);
}

/// Whether a person ended it. The system kills what takes too much memory.
#[cfg(unix)]
fn is_stopped(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    const HANGUP: i32 = 1;
    const INTERRUPT: i32 = 2;
    const TERMINATE: i32 = 15;
    let signal = status.signal();
    signal.is_some_and(|it| [HANGUP, INTERRUPT, TERMINATE].contains(&it))
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
