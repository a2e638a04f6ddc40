//! The `exactile` command: its subcommands and their arguments. Results go to standard output, everything else to standard
//! error; a failure exits with 1, a wrong command line with 2.

// A print macro panics where its stream is full or closed.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod bench;
mod build;
mod built;
mod cache;
mod compile;
mod demo;
mod dump;
mod math;
mod ops;
mod plot;
mod progress;
mod run;
mod selftest;
mod settings;
mod tune;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use exactile::command::{note, print, say_warnings};
use exactile::{Error, Result};
use serde::Serialize;

/// Kernels as Rust functions: the same bits on CPU and GPU.
#[derive(Parser)]
#[command(name = "exactile", version)]
struct Command {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Bench(bench::Bench),
    Build(build::Build),
    Built(built::Built),
    Cache(cache::Cache),
    Compile(compile::Compile),
    Demo(demo::Demo),
    Dump(dump::Dump),
    Run(run::Run),
    Ops(ops::Ops),
    Plot(plot::Plot),
    Selftest(selftest::Selftest),
    Tune(tune::Tune),
}

fn main() -> ExitCode {
    say_warnings();
    let command = Command::parse();
    let result = match command.action {
        Action::Bench(bench) => bench.execute(),
        Action::Build(build) => build.execute(),
        Action::Built(built) => built.execute(),
        Action::Cache(cache) => cache.execute(),
        Action::Compile(compile) => compile.execute(),
        Action::Demo(demo) => demo.execute(),
        Action::Dump(dump) => dump.execute(),
        Action::Run(run) => run.execute(),
        Action::Ops(ops) => ops.execute(),
        Action::Plot(plot) => plot.execute(),
        Action::Selftest(selftest) => selftest.execute(),
        Action::Tune(tune) => tune.execute(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let text = error.to_string();
            let prefix = if text.starts_with("error: ") {
                ""
            } else {
                "error: "
            };
            note(&format!("{prefix}{text}"));
            ExitCode::FAILURE
        }
    }
}

fn print_json(value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Error::Invalid(format!("the report is no JSON: {error}")))?;
    print(&format!("{text}\n"))
}
