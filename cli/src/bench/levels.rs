//! `exactile bench levels`: what each level of determinism costs.

use std::path::PathBuf;

use clap::Args;
use exactile::{Device, Error, Result};
use exactile_harness::bench::levels::{LevelsPlan, levels};

use crate::progress::Progress;

/// Measures ten kernels as nobody has tuned them at all levels of determinism, in turns.
#[derive(Args)]
pub(super) struct Levels {
    /// What runs them: `cpu`, `lanes`, `cuda` or `cuda:N`
    #[arg(long, default_value = "cuda")]
    device: String,
    /// Times that each level is measured
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Small inputs and little time: a test of this
    #[arg(long)]
    quick: bool,
    /// The commit that the report names
    #[arg(long, default_value = "unknown")]
    commit: String,
    /// Where to write the report as JSON
    #[arg(long)]
    out: Option<PathBuf>,
}

impl Levels {
    pub(super) fn execute(&self) -> Result<()> {
        let device = Device::from_name(&self.device)?;
        let plan = LevelsPlan {
            device: &device,
            is_quick: self.quick,
            rounds: self.rounds.max(1),
            commit: self.commit.clone(),
        };
        let progress = Progress::start("levels");
        let report = levels(&plan, &|line| progress.say(line.to_string()))?;
        drop(progress);
        for row in &report.rows {
            crate::print(&row.line())?;
        }
        if let Some(file) = &self.out {
            let text = serde_json::to_string_pretty(&report)
                .map_err(|error| Error::Invalid(error.to_string()))?;
            exactile::internals::write_file(file, text.as_bytes())?;
        }
        Ok(())
    }
}
