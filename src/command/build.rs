//! `build`: the code of a crate's kernels for GPUs.

use std::path::PathBuf;

use clap::Args;
use exactile_core::target::Target;

use super::{Case, Run, chosen, print};
use crate::built::Build as Building;
use crate::error::Result;

#[derive(Args)]
pub(super) struct Build {
    /// The folder for the code and the manifest
    #[arg(long)]
    out: PathBuf,
    /// The machine that the code is for; several, with commas
    #[arg(long, required = true, value_delimiter = ',', value_parser = super::target)]
    target: Vec<Target>,
    /// Only these kernels
    kernels: Vec<String>,
}

impl Build {
    pub(super) fn execute(&self, cases: &[Case]) -> Result<()> {
        let cases = chosen(cases, &self.kernels)?;
        for target in &self.target {
            let mut building = Building::new(&self.out, target)?;
            for (name, case) in &cases {
                let records = building.add(|device| {
                    case(&mut Run {
                        device,
                        tunes: None,
                        name,
                    })
                })?;
                let bytes: u64 = records.iter().map(|record| record.bytes).sum();
                let (codes, target) = (records.len(), target.name);
                print(&format!(
                    "{name}: {codes} codes for {target}, {bytes} bytes\n"
                ))?;
            }
            building.finish()?;
        }
        Ok(())
    }
}
