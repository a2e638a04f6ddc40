//! `exactile selftest`: the test suites that need no checkout of the sources.

mod products;
mod programs;

use std::env;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use clap::{Args, Subcommand};
use exactile::Device;
use exactile::internals::write_file;
use exactile::{Error, Result};
use exactile_harness::testing::fuzz::{self, FuzzOptions, Said};
use exactile_harness::testing::programs::{ProgramsOptions, faults};
use exactile_harness::testing::{conformance, determinism, filetests, levels, planted, runtime};

use self::products::Products;
use self::programs::Programs;
use super::math::Math;
use super::progress::Progress;

/// Runs a test suite on this machine.
#[derive(Args)]
pub(crate) struct Selftest {
    #[command(subcommand)]
    suite: Suite,
}

#[derive(Subcommand)]
enum Suite {
    Conformance(Conformance),
    Determinism(Determinism),
    Filetests(Filetests),
    Products(Products),
    Programs(Programs),
    Faults(Faults),
    Fuzz(Fuzz),
    Math(Math),
    Runtime(Runtime),
}

impl Selftest {
    pub(crate) fn execute(&self) -> Result<()> {
        match &self.suite {
            Suite::Conformance(conformance) => conformance.execute(),
            Suite::Determinism(determinism) => determinism.execute(),
            Suite::Filetests(filetests) => filetests.execute(),
            Suite::Products(products) => products.execute(),
            Suite::Programs(programs) => programs.execute(),
            Suite::Faults(faults) => faults.execute(),
            Suite::Fuzz(fuzz) => fuzz.execute(),
            Suite::Math(math) => math.execute(),
            Suite::Runtime(runtime) => runtime.execute(),
        }
    }
}

/// Runs the cases of Triton's test suite on every device there is, and compares bits
#[derive(Args)]
struct Conformance {
    /// Run only checks whose name holds this text
    #[arg(long, default_value = "")]
    only: String,
    /// Write what each case gave on which devices to this file, as JSON
    #[arg(long, requires = "commit")]
    out: Option<PathBuf>,
    /// The commit that the report names
    #[arg(long)]
    commit: Option<String>,
}

impl Conformance {
    fn execute(&self) -> Result<()> {
        let mut devices = vec![Device::interpreter(), Device::cpu(), Device::lanes()];
        match Device::cuda(0) {
            Ok(device) => devices.push(device),
            Err(reason) => super::print(&format!("skipped: {reason}\n"))?,
        }
        let checks = conformance::run(&devices, &self.only);
        let (mut compared, mut failed) = (0, 0);
        for check in &checks {
            let name = &check.name;
            compared += check.compared();
            match &check.error {
                None => super::print(&format!("{name}: holds\n"))?,
                Some(error) => {
                    failed += 1;
                    super::print(&format!("{name}: FAILED: {error}\n"))?;
                }
            }
        }
        super::print(&format!("{compared} results compared, {failed} failures\n"))?;
        if let Some((file, commit)) = self.out.as_ref().zip(self.commit.as_ref()) {
            let report = conformance::Report::new(commit, &devices, checks);
            let text = report
                .to_json()
                .map_err(|error| Error::format(file, error.to_string()))?;
            write_file(file, text.as_bytes())?;
        }
        match failed {
            0 => Ok(()),
            _ => Err(Error::Mismatch("some cases failed".to_string())),
        }
    }
}

/// Compares sums and means over all tile sizes, schedules, batches and devices, and tells what each level keeps
#[derive(Args)]
struct Determinism {}

impl Determinism {
    fn execute(&self) -> Result<()> {
        let mut devices = vec![Device::interpreter(), Device::cpu(), Device::lanes()];
        match Device::cuda(0) {
            Ok(device) => devices.push(device),
            Err(reason) => super::print(&format!("skipped: {reason}\n"))?,
        }
        let progress = Progress::start("selftest determinism");
        let report = determinism::run(&devices)?;
        let lines = levels::run(&devices)?;
        drop(progress);
        super::print(&levels::table(&lines))?;
        for failure in &report.failures {
            super::print(&format!("{failure}\n"))?;
        }
        let mut failed = report.failures.len();
        for line in &lines {
            for change in line.broken() {
                failed += 1;
                let (kernel, level, change) = (line.kernel, line.level.name(), change.name());
                super::print(&format!(
                    "{kernel} breaks `{level}` with another {change}\n"
                ))?;
            }
        }
        let compared = report.compared + levels::compared(&lines);
        super::print(&format!("{compared} outputs compared, {failed} failures\n"))?;
        match failed {
            0 => Ok(()),
            _ => Err(Error::Mismatch("some outputs differ".to_string())),
        }
    }
}

/// Launches as a program does: streams, events, errors that come later, many threads
#[derive(Args)]
struct Runtime {}

impl Runtime {
    fn execute(&self) -> Result<()> {
        let mut devices = vec![Device::interpreter(), Device::cpu(), Device::lanes()];
        match Device::cuda(0) {
            Ok(device) => devices.push(device),
            Err(reason) => super::print(&format!("skipped: {reason}\n"))?,
        }
        let (mut ran, mut failed) = (0, 0);
        for device in &devices {
            for check in runtime::checks() {
                ran += 1;
                let result = match check.run(device) {
                    Ok(()) => "holds".to_string(),
                    Err(error) => {
                        failed += 1;
                        format!("FAILED: {error}")
                    }
                };
                super::print(&format!("{device}: {}: {result}\n", check.name))?;
            }
        }
        super::print(&format!("{ran} checks, {failed} failures\n"))?;
        match failed {
            0 => Ok(()),
            _ => Err(Error::Mismatch("some checks failed".to_string())),
        }
    }
}

/// Runs the filetests of the repository: interpreters, CPU, and GPU where there is one
#[derive(Args)]
struct Filetests {
    /// Run only files whose path holds this text
    #[arg(long, default_value = "")]
    only: String,
}

impl Filetests {
    fn execute(&self) -> Result<()> {
        let chosen = filetests::EMBEDDED.iter().copied();
        let chosen: Vec<_> = chosen
            .filter(|(name, _)| name.contains(&self.only))
            .collect();
        let progress = Progress::start(&format!("selftest filetests: {}", chosen.len()));
        let report = filetests::check_all(&chosen);
        drop(progress);
        for failure in &report.failures {
            super::print(&format!("{failure}\n"))?;
        }
        for reason in &report.skipped {
            super::print(&format!("skipped: {reason}\n"))?;
        }
        super::print(&format!(
            "{} files, {} runs compared, {} failures\n",
            chosen.len(),
            report.runs,
            report.failures.len()
        ))?;
        if report.failures.is_empty() {
            Ok(())
        } else {
            Err(Error::Mismatch("some filetests failed".to_string()))
        }
    }
}

/// Plants faults in lowered programs and reports which the programs find; then every fault of what orders lanes,
/// one at a time, in kernels and filetests
#[derive(Args)]
struct Faults {
    /// How many programs
    #[arg(long, default_value_t = ProgramsOptions::default().count)]
    count: usize,
    /// The seed of the run
    #[arg(long, default_value_t = ProgramsOptions::default().seed)]
    seed: u64,
    /// No programs, and only kernels and filetests whose names hold this text, such as `schedule/waves.bir @waves`
    #[arg(long, value_name = "NAME", conflicts_with = "count")]
    only: Option<String>,
}

impl Faults {
    fn execute(&self) -> Result<()> {
        let found_in_programs = match self.only {
            Some(_) => true,
            None => self.in_programs()?,
        };
        let progress = Progress::start("selftest faults: kernels and filetests");
        let each = planted::run(self.seed, self.only.as_deref().unwrap_or_default());
        drop(progress);
        super::print(&format!("{each}\n"))?;
        if found_in_programs && each.passed() {
            Ok(())
        } else {
            Err(Error::Mismatch(
                "some planted faults were not found".to_string(),
            ))
        }
    }

    fn in_programs(&self) -> Result<bool> {
        let progress = Progress::start(&format!("selftest faults: {} programs", self.count));
        let report = faults::run(&ProgramsOptions {
            seed: self.seed,
            count: self.count,
            ..ProgramsOptions::default()
        });
        drop(progress);
        super::print(&format!("{report}\n"))?;
        Ok(report.all_found())
    }
}

/// Mutates texts and generates programs until the time is over: nothing may panic, end the process or hang, and
/// what the interpreter runs must have the same bits everywhere
#[derive(Args)]
struct Fuzz {
    /// The seed of the run
    #[arg(long, default_value_t = FuzzOptions::default().seed)]
    seed: u64,
    /// The index of the first case
    #[arg(long, value_name = "INDEX", default_value_t = FuzzOptions::default().from)]
    from: u64,
    /// How long to go on
    #[arg(long, default_value_t = FuzzOptions::default().time.as_secs())]
    seconds: u64,
    /// How long a case may take
    #[arg(long, value_name = "SECONDS", default_value_t = FuzzOptions::default().case_time.as_secs())]
    case_seconds: u64,
    /// Run only the case with this index
    #[arg(long)]
    only: Option<u64>,
    /// Run the cases in this process and print what it is at, for the one that started it
    #[arg(long, hide = true)]
    child: bool,
}

impl Fuzz {
    fn execute(&self) -> Result<()> {
        let options = FuzzOptions {
            seed: self.seed,
            from: self.from,
            only: self.only,
            time: Duration::from_secs(self.seconds),
            case_time: Duration::from_secs(self.case_seconds),
        };
        if self.child {
            let say = |said| writeln!(io::stdout(), "{}", serde_json::to_string(&said)?);
            // Whoever listened is gone.
            let _ = fuzz::run_cases(&options, &mut { say });
            return Ok(());
        }
        let report = Self::run(&options)?;
        super::print(&format!("{report}\n"))?;
        if report.findings.is_empty() {
            Ok(())
        } else {
            let found = report.findings.len();
            Err(Error::Mismatch(format!("{found} findings")))
        }
    }

    /// Runs the cases in other processes and prints each finding when it is made.
    fn run(options: &FuzzOptions) -> Result<fuzz::Report> {
        let broken =
            |error: io::Error| Error::Invalid(format!("the process of the cases: {error}"));
        let program = env::current_exe().map_err(broken)?;
        let process = |options: &FuzzOptions| {
            let mut command = Command::new(&program);
            command.args(["selftest", "fuzz", "--child"]);
            command.args(["--seed", &options.seed.to_string()]);
            command.args(["--from", &options.from.to_string()]);
            command.args(["--seconds", &options.time.as_secs().to_string()]);
            if let Some(only) = options.only {
                command.args(["--only", &only.to_string()]);
            }
            command
        };
        let progress = Progress::start("selftest fuzz");
        let mut printed = Ok(());
        let report = fuzz::run(options, &process, &mut |said| match said {
            Said::Started(index) => progress.say(format!("selftest fuzz: case {index}")),
            Said::Ended(_) => {}
            Said::Found(finding) => {
                let next = progress.print(&format!("{finding}\n\n"));
                if printed.is_ok() {
                    printed = next;
                }
            }
        });
        printed?;
        report.map_err(broken)
    }
}
