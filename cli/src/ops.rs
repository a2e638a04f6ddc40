//! `exactile ops`: every op of the IR with its stages and meaning.

use clap::Args;
use exactile::Result;
use exactile_harness::ops;

/// Lists the ops of the IR.
#[derive(Args)]
pub(crate) struct Ops {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Ops {
    pub(crate) fn execute(&self) -> Result<()> {
        let rows = ops::rows();
        if self.json {
            return super::print_json(&rows);
        }
        let text: String = rows
            .iter()
            .map(|row| {
                let stages = row.stages.join(" ");
                format!("{:18} {stages:12} {}\n", row.name, row.meaning)
            })
            .collect();
        super::print(&text)
    }
}
