//! `exactile bench`: the kernels in exact mode and without promises beside other libraries.

mod compile;
mod launch;
mod levels;
mod order;
mod tuning;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use exactile::{Device, DeviceKind, Error, Result};
use exactile_harness::bench::{
    Library, PeersCommand, Plan, Regime, Report, Sampling, Subject, run,
};
use exactile_harness::cases::subjects::{Size, sizes, subjects};

use super::progress::Progress;
use super::settings::Stated;

use compile::Compile;
use launch::Launch;
use levels::Levels;
use order::Order;
use tuning::Tuning;

/// Measures the ready kernels beside those of other libraries, in turns.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Bench {
    #[command(subcommand)]
    other: Option<Other>,
    /// What runs them: `cpu`, `lanes`, `cuda` or `cuda:N`; a GPU if there is one when absent
    #[arg(long)]
    device: Option<String>,
    /// One thread of the CPU, also for the peers
    #[arg(long)]
    one_core: bool,
    /// Only these kernels, or rows such as `tensor_matmul bf16 1024x1024x1024`
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Additions and softmax of 2^10 to 2^30 elements in place of all kernels, for `exactile plot sizes`
    #[arg(long)]
    sizes: bool,
    /// Times that each contestant is measured
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// What a GPU does before a launch that is timed: `flushed` caches before each, `rested` before short bursts, or
    /// `sustained` in bursts back to back, where the power bounds the clock rate; one row each
    #[arg(long, value_delimiter = ',', default_value = "flushed", value_parser = Regime::from_name)]
    regime: Vec<Regime>,
    /// Small inputs and little time: a test of the harness
    #[arg(long)]
    quick: bool,
    /// The folder with `peers.py`, or `none`
    #[arg(long, default_value = "benches/peers")]
    peers: String,
    /// The Python that runs the peers
    #[arg(long, default_value = "python3")]
    python: String,
    /// Seconds that tuning one kernel may take, half for this side, half for the peers
    #[arg(long, default_value_t = 24.0)]
    seconds: f64,
    /// Draw so many settings of each kernel from all that it may have, compare their bits, and say how the default does beside the
    /// best; they may take as many seconds as tuning
    #[arg(long)]
    sample: Option<usize>,
    /// What the settings are drawn by
    #[arg(long, default_value_t = 0, requires = "sample")]
    seed: u64,
    #[command(flatten)]
    stated: Stated,
    /// Begin no kernel after so many seconds
    #[arg(long, default_value_t = 1e6)]
    stop_after: f64,
    /// Where to write the report, after each kernel
    #[arg(long)]
    out: Option<PathBuf>,
    /// Go on with the report there, if it is of the same commit and device
    #[arg(long, requires = "out")]
    resume: bool,
    /// The commit that the report names
    #[arg(long, default_value = "unknown")]
    commit: String,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum Other {
    Compile(Compile),
    Launch(Launch),
    Levels(Levels),
    Order(Order),
    Tuning(Tuning),
}

impl Bench {
    pub(crate) fn execute(&self) -> Result<()> {
        match &self.other {
            Some(Other::Compile(compile)) => return compile.execute(),
            Some(Other::Launch(launch)) => return launch.execute(),
            Some(Other::Levels(levels)) => return levels.execute(),
            Some(Other::Order(order)) => return order.execute(),
            Some(Other::Tuning(tuning)) => return tuning.execute(),
            None => {}
        }
        let plan = self.plan()?;
        let subjects = self.subjects(&plan.device)?;
        let mut report = Report::new(self.commit.clone(), plan.device.name().to_string());
        if let Some(file) = self.out.as_ref().filter(|_| self.resume) {
            report = report.resume(file)?;
        }
        let progress = Progress::start("bench");
        let keep = &mut |report: &Report| match &self.out {
            Some(file) => report.write(file),
            None => Ok(()),
        };
        let report = run(&plan, &subjects, report, keep, &|line| progress.note(line))?;
        drop(progress);
        if self.json {
            super::print_json(&report)?;
        } else {
            for row in &report.rows {
                super::print(&format!("{}\n", row.line()))?;
            }
        }
        report.verdict()
    }

    fn device(&self) -> Result<Device> {
        match (&self.device, self.one_core) {
            (Some(name), true) if name != "cpu" => Err(Error::Invalid(format!(
                "`--one-core` is for the CPU, found device `{name}`"
            ))),
            (_, true) => Ok(Device::cpu_single_thread()),
            (Some(name), false) => Device::from_name(name),
            (None, false) => Ok(Device::cuda(0).unwrap_or_else(|reason| {
                super::note(&format!("no GPU: {reason}"));
                Device::cpu()
            })),
        }
    }

    fn plan(&self) -> Result<Plan> {
        let device = self.device()?;
        // What compiling costs is measured.
        device.use_disk(false);
        let library = match device.kind() {
            DeviceKind::Cuda(_) => Library::Gpu,
            DeviceKind::Cpu | DeviceKind::Interpreter | DeviceKind::Lanes if self.one_core => {
                Library::OneCore
            }
            DeviceKind::Cpu | DeviceKind::Interpreter | DeviceKind::Lanes => Library::Cpu,
        };
        let peers = (self.peers != "none").then(|| PeersCommand {
            python: self.python.clone(),
            folder: PathBuf::from(&self.peers),
            library,
        });
        let time = |seconds: f64| {
            Duration::try_from_secs_f64(seconds)
                .map_err(|_| Error::Invalid(format!("{seconds} seconds are no time")))
        };
        if self.rounds == 0 {
            return Err(Error::Invalid("`--rounds 0` measures nothing".to_string()));
        }
        Ok(Plan {
            peers,
            rounds: self.rounds,
            tuning: time(if self.quick { 2.0 } else { self.seconds })?,
            sampling: self.sample.map(|settings| Sampling {
                settings,
                seed: self.seed,
            }),
            round: time(if self.quick { 1e-3 } else { 0.08 })?,
            regimes: self.regimes(&device)?,
            device,
            deadline: time(self.stop_after)?,
        })
    }

    /// Those asked for, each once.
    fn regimes(&self, device: &Device) -> Result<Vec<Regime>> {
        let bursts = self
            .regime
            .iter()
            .find(|regime| **regime != Regime::Flushed);
        if let (Some(regime), false) = (bursts, matches!(device.kind(), DeviceKind::Cuda(_))) {
            return Err(Error::Invalid(format!(
                "`--regime {}` is of a GPU, found device `{}`; leave it out",
                regime.name(),
                device.name()
            )));
        }
        Ok(BTreeSet::from_iter(self.regime.iter().copied())
            .into_iter()
            .collect())
    }

    fn subjects(&self, device: &Device) -> Result<Vec<Subject>> {
        let size = match (self.quick, device.kind()) {
            (true, _) => Size::Quick,
            (false, DeviceKind::Cuda(_)) => Size::Gpu,
            (false, DeviceKind::Cpu | DeviceKind::Interpreter | DeviceKind::Lanes) => Size::Cpu,
        };
        let mut subjects = match self.sizes {
            true => sizes(size),
            false => subjects(size),
        };
        for wanted in &self.only {
            if !subjects.iter().any(|subject| subject.is(wanted)) {
                let is_close =
                    |title: &&String| title.split(' ').next() == wanted.split(' ').next();
                let titles: Vec<String> = subjects.iter().map(Subject::title).collect();
                let mut found: BTreeSet<&str> =
                    titles.iter().filter(is_close).map(String::as_str).collect();
                if found.is_empty() {
                    found.extend(subjects.iter().map(|subject| subject.case.kernel));
                }
                return Err(Error::Invalid(format!(
                    "no kernel or row `{wanted}`, found {found:?}"
                )));
            }
        }
        if !self.only.is_empty() {
            subjects.retain(|subject| self.only.iter().any(|wanted| subject.is(wanted)));
        }
        if let Some(setting) = self.stated.setting() {
            for subject in &mut subjects {
                subject.candidates = vec![setting];
            }
        }
        Ok(subjects)
    }
}
