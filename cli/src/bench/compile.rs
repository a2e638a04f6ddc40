//! `exactile bench compile`: how long the ready kernels take to compile for a GPU, which need not be there.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use exactile::{Result, Target};
use exactile_harness::bench::compile::{CompilePlan, CompileReport, compile, every_schedule};

use crate::progress::Progress;

/// Compiles what launches of all ready kernels run, from the trace to PTX, and with an assembler where the environment
/// names one.
#[derive(Args)]
pub(super) struct Compile {
    /// The GPU
    #[arg(long, value_parser = exactile::command::target, default_value = Target::SM_90A.name)]
    target: Target,
    /// Numbers of warps, each beside all kernels; each kernel has its own schedule when absent
    #[arg(long, value_delimiter = ',')]
    warps: Vec<u32>,
    /// The kernels' own schedules, then every number of warps
    #[arg(long, conflicts_with = "warps")]
    every_schedule: bool,
    /// A tile size in place of the kernels' own
    #[arg(long)]
    block: Option<usize>,
    /// Only launches whose names begin so
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Compilations of each kernel, of which the fastest counts
    #[arg(long, default_value_t = 3)]
    repetitions: usize,
    /// Seconds after which no launch is begun; the report counts what is left out
    #[arg(long, default_value_t = 600)]
    stop_after: u64,
    /// The commit that the report names
    #[arg(long, default_value = "unknown")]
    commit: String,
    /// Where to write the report as JSON
    #[arg(long)]
    out: Option<PathBuf>,
}

impl Compile {
    pub(super) fn execute(&self) -> Result<()> {
        let plan = CompilePlan {
            target: self.target,
            warps: match self.every_schedule {
                true => every_schedule(),
                false => self.warps.iter().copied().map(Some).collect(),
            },
            block: self.block,
            only: self.only.clone(),
            repetitions: self.repetitions,
            most: Duration::from_secs(self.stop_after),
        };
        let progress = Progress::start("compile");
        let measured = compile(&plan, &|line| progress.say(line.to_string()));
        drop(progress);
        let report = CompileReport {
            commit: self.commit.clone(),
            ..measured?
        };
        crate::print(&format!("{}\n", CompileReport::HEADER))?;
        for row in &report.rows {
            crate::print(&format!("{}\n", row.line()))?;
        }
        for refusal in &report.refused {
            crate::print(&format!("{}\n", refusal.line()))?;
        }
        crate::print(&format!("{}\n", report.summary()))?;
        match &self.out {
            Some(file) => {
                let text = serde_json::to_string_pretty(&report)
                    .map_err(|error| exactile::Error::Invalid(error.to_string()))?;
                exactile::internals::write_file(file, text.as_bytes())
            }
            None => Ok(()),
        }
    }
}
