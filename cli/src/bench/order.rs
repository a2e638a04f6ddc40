//! `exactile bench order`: how well the estimated cost of launches orders what a tuner tries.

use std::path::PathBuf;

use clap::Args;
use exactile::{Error, Result, Target};
use exactile_harness::bench::order::{FIRST, order};
use exactile_harness::cases::subjects::{Size, subjects};

use crate::progress::Progress;

/// Compares the order of candidates by their estimated cost with the times that a report of a GPU holds of them. Nothing runs, and no
/// GPU is needed.
///
/// The table has the best time of the first candidates beside the best of all: by the estimate, and as they are listed. Its last
/// columns have the mean time over all tiles, beside the best of a tile, with the warps of code without a schedule, and with
/// those of the least estimate.
#[derive(Args)]
pub(super) struct Order {
    /// The reports of `exactile bench`
    #[arg(required = true)]
    reports: Vec<PathBuf>,
    /// Only these kernels
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// The GPU
    #[arg(long, value_parser = exactile::command::target, default_value = Target::SM_90A.name)]
    target: Target,
    /// Where to write all candidates with their estimates as JSON
    #[arg(long)]
    out: Option<PathBuf>,
}

impl Order {
    pub(super) fn execute(&self) -> Result<()> {
        let mut list = subjects(Size::Gpu);
        list.retain(|it| {
            self.only.is_empty() || self.only.iter().any(|name| name == it.case.kernel)
        });
        let progress = Progress::start("order");
        let mut rows = Vec::new();
        for report in &self.reports {
            rows.extend(order(report, &list, &self.target, &|line| {
                progress.say(line.to_string());
            })?);
        }
        drop(progress);
        let columns = FIRST.map(|first| format!("first {first} | as listed"));
        crate::print(&format!(
            "| kernel | candidates | {} | default warps | by the estimate |\n",
            columns.join(" | ")
        ))?;
        crate::print(&format!(
            "|---|--:|{}\n",
            "--:|".repeat(2 * FIRST.len() + 2)
        ))?;
        for row in &rows {
            crate::print(&format!("{}\n", row.line()))?;
        }
        match &self.out {
            Some(file) => {
                let text = serde_json::to_string_pretty(&rows)
                    .map_err(|error| Error::Invalid(error.to_string()))?;
                exactile::internals::write_file(file, text.as_bytes())
            }
            None => Ok(()),
        }
    }
}
