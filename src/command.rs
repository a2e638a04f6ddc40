//! The command line of a crate with kernels: [`main!`](crate::main) gives it `tune`, `build` and `dump`.
//!
//! A kernel is named by a function that launches it on arguments of its choice, through a [`Run`]:
//!
//! ```no_run
//! use exactile::command::Run;
//! use exactile::prelude::*;
//!
//! #[kernel(BLOCK = 1024, grid = n.div_ceil(BLOCK))]
//! fn double<#[meta(256..=4096)] const BLOCK: usize>(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
//!     let at = program_id(0) * BLOCK + arange(0, BLOCK);
//!     store(out + at, load(x + at).mask(at < n) * 2.0).mask(at < n);
//! }
//!
//! fn doubles(run: &mut Run<'_>) -> exactile::Result<()> {
//!     let n = 1 << 20;
//!     let x = Buffer::from_slice(run.device(), &vec![1.5f32; n])?;
//!     let mut out = Buffer::zeros(run.device(), n)?;
//!     run.launch(double(), (), (&x, &mut out, n as i32))
//! }
//!
//! exactile::main!(kernels doubles);
//! ```

mod build;
mod dump;
mod options;
mod tune;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use log::{Level, LevelFilter, Log, Metadata, Record};

use crate::arguments::{Arguments, Parameters};
use crate::autotune::{Tune, Tuner};
use crate::configure::Configure;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::placement::LaunchGrid;

pub use options::target;
pub use tune::{Report, TuneOptions, supervised};

/// A kernel of a crate: its name, and the function that launches it.
pub type Case = (&'static str, fn(&mut Run<'_>) -> Result<()>);

/// What runs a kernel of [`main!`](crate::main): by the subcommand it is tuned, compiled or shown.
pub struct Run<'a> {
    device: &'a Device,
    tunes: Option<(&'a Tuner, &'a mut Vec<Report>)>,
    name: &'static str,
}

impl Run<'_> {
    /// The device for the arguments.
    pub fn device(&self) -> &Device {
        self.device
    }

    /// Launches the kernel with these arguments, or does with them what the command line asks for. A function may launch
    /// several kernels, one on the results of another.
    ///
    /// # Errors
    /// Those of a launch, and of what is done in its place.
    pub fn launch<'b, K: Configure, const COUNT: usize>(
        &mut self,
        kernel: K,
        grid: impl LaunchGrid,
        arguments: impl Arguments<'b, K::Parameters, COUNT>,
    ) -> Result<()>
    where
        K::Parameters: Parameters<COUNT>,
    {
        let Some((tuner, reports)) = &mut self.tunes else {
            let kernel = kernel.into_kernel();
            return kernel.launch(self.device, grid, arguments);
        };
        let tuned = kernel.tune_by(tuner, self.device, grid, arguments)?;
        reports.push(Report::new(self.name, &tuned.tuned));
        Ok(())
    }
}

#[derive(Parser)]
#[command(version)]
struct CommandLine {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Finds the fastest configuration of each kernel on a device, among those with the right results
    Tune(TuneOptions),
    /// Builds code for GPUs ahead of time, and lists it in a manifest
    Build(build::Build),
    /// Prints what a stage of the compiler makes of a kernel
    Dump(dump::Dump),
}

/// What [`main!`](crate::main) makes of a `main`.
#[doc(hidden)]
pub fn main(name: &'static str, version: &'static str, cases: &[Case]) -> ExitCode {
    say_warnings();
    let names: Vec<&str> = cases.iter().map(|(name, _)| *name).collect();
    let command = CommandLine::command()
        .name(name)
        .version(version)
        .about(format!("Kernels: {}", names.join(", ")));
    let parsed = CommandLine::from_arg_matches(&command.get_matches());
    let result = match parsed {
        Ok(CommandLine { action }) => match action {
            Action::Tune(options) => options.execute(cases),
            Action::Build(build) => build.execute(cases),
            Action::Dump(dump) => dump.execute(cases),
        },
        Err(error) => error.exit(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Those of the cases that are asked for: all where none is.
fn chosen(cases: &[Case], asked: &[String]) -> Result<Vec<Case>> {
    let known = |name: &&String| !cases.iter().any(|(case, _)| case == name);
    if let Some(name) = asked.iter().find(known) {
        let names: Vec<&str> = cases.iter().map(|(name, _)| *name).collect();
        return Err(Error::Invalid(format!(
            "there is no kernel `{name}`, expected `{}`",
            names.join("`, `")
        )));
    }
    let is_asked = |case: &Case| asked.is_empty() || asked.iter().any(|name| name == case.0);
    Ok(cases.iter().copied().filter(is_asked).collect())
}

/// The function of a case does nothing with its [`Run`].
fn launches_nothing(name: &str) -> Error {
    Error::Invalid(format!(
        "the function `{name}` launches nothing: call `launch` of the `Run` that it is given"
    ))
}

/// Says the warnings of this library on standard error from now on. For the programs of this repository.
#[doc(hidden)]
pub fn say_warnings() {
    // Where somebody has taken the log before, warnings are said there.
    if log::set_logger(&Warnings).is_ok() {
        log::set_max_level(LevelFilter::Warn);
    }
}

struct Warnings;

impl Log for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= Level::Warn && metadata.target().starts_with("exactile")
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            note(&format!("warning: {}", record.args()));
        }
    }

    fn flush(&self) {}
}

/// Says something beside the results. That nobody can hear it is no failure. For the programs of this repository.
#[doc(hidden)]
pub fn note(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// What is being done now, as a line of a terminal that the next one replaces.
fn progress(line: &str) {
    let mut stderr = io::stderr();
    if stderr.is_terminal() {
        let short: String = line.chars().take(100).collect();
        let _ = write!(stderr, "\r\x1b[K{short}");
    }
}

/// Takes the line of [`progress`] away.
fn progress_end() {
    progress("");
}

/// Prints results; a reader that closed the pipe early is no failure. For the programs of this repository.
///
/// # Errors
/// Standard output cannot be written.
#[doc(hidden)]
pub fn print(text: &str) -> Result<()> {
    let mut stdout = io::stdout();
    let printed = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
    match printed {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::Invalid(format!("standard output: {error}")))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// A `main` with the subcommands `tune`, `build` and `dump` for the kernels of a crate, each named by the function that
/// launches it on sample arguments: see [`command`](crate::command). Needs the feature `command`.
#[macro_export]
macro_rules! main {
    (kernels $($kernel:ident),+ $(,)?) => {
        fn main() -> ::std::process::ExitCode {
            $crate::command::main(
                env!("CARGO_PKG_NAME"),
                env!("CARGO_PKG_VERSION"),
                &[$((stringify!($kernel), $kernel)),+],
            )
        }
    };
}

#[cfg(test)]
mod tests;
