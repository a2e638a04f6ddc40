//! `exactile bench compile`: how long the ready kernels take to compile for a GPU, which need not be there.

use std::path::PathBuf;

use clap::Args;
use exactile::{Result, Target};
use exactile_harness::bench::compile::{CompilePlan, CompileReport, compile};

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
    /// A tile size in place of the kernels' own
    #[arg(long)]
    block: Option<usize>,
    /// Only launches whose names begin so
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Compilations of each kernel, of which the fastest counts
    #[arg(long, default_value_t = 3)]
    repetitions: usize,
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
            warps: self.warps.clone(),
            block: self.block,
            only: self.only.clone(),
            repetitions: self.repetitions,
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
            let warps = refusal
                .warps
                .map_or("auto".to_string(), |it| it.to_string());
            let (launch, message) = (&refusal.launch, refusal.message.trim_end());
            crate::print(&format!("{launch} on {warps} warps, refused: {message}\n"))?;
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
