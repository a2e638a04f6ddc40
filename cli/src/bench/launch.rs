//! `exactile bench launch`: what launches cost the host, beside the peers.

use std::env;
use std::path::PathBuf;

use clap::Args;
use exactile::internals::write_file;
use exactile::{Device, Error, Result};
use exactile_harness::bench::launch::{LaunchPlan, first_launches, run};

use crate::progress::Progress;

/// Measures what launches cost the host: warm ones beside the driver's own call, graphs, and the first ones of a process
#[derive(Args)]
pub(super) struct Launch {
    /// What runs them: `cpu`, `cuda` or `cuda:N`; a GPU if there is one when absent
    #[arg(long)]
    device: Option<String>,
    /// Batches of 50 launches of each row
    #[arg(long, default_value_t = 200)]
    batches: usize,
    /// Processes whose first launches are timed
    #[arg(long, default_value_t = 7)]
    processes: usize,
    /// The folder with `launch.py`, or `none`
    #[arg(long, default_value = "benches/peers")]
    peers: String,
    /// The Python that runs the peers
    #[arg(long, default_value = "python3")]
    python: String,
    /// Where to write the report as JSON
    #[arg(long)]
    out: Option<PathBuf>,
    /// The commit that the report names
    #[arg(long, default_value = "unknown")]
    commit: String,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// Time the first launches of this process alone
    #[arg(long, hide = true)]
    first: bool,
}

impl Launch {
    pub(super) fn execute(&self) -> Result<()> {
        if self.first {
            let device = self.device.as_deref().unwrap_or("cuda");
            return crate::print_json(&first_launches(device)?);
        }
        let device = match &self.device {
            Some(name) => Device::from_name(name)?,
            None => Device::cuda(0).unwrap_or_else(|reason| {
                crate::note(&format!("no GPU: {reason}"));
                Device::cpu()
            }),
        };
        for (option, count) in [("batches", self.batches), ("processes", self.processes)] {
            if count == 0 {
                return Err(Error::Invalid(format!("`--{option} 0` measures nothing")));
            }
        }
        let peers =
            (self.peers != "none").then(|| (self.python.clone(), PathBuf::from(&self.peers)));
        let program = env::current_exe();
        let plan = LaunchPlan {
            device,
            batches: self.batches,
            processes: self.processes,
            program: program.map_err(|error| Error::Invalid(format!("this program: {error}")))?,
            peers,
        };
        let progress = Progress::start("bench launch");
        let report = run(&plan, &self.commit)?;
        drop(progress);
        if let Some(file) = &self.out {
            let text = serde_json::to_string_pretty(&report);
            let text =
                text.map_err(|error| Error::Invalid(format!("the report is no JSON: {error}")))?;
            write_file(file, &[text.as_bytes(), b"\n"].concat())?;
        }
        if self.json {
            return crate::print_json(&report);
        }
        for row in &report.rows {
            crate::print(&format!("{}\n", row.line()))?;
        }
        report.notes.iter().for_each(|note| crate::note(note));
        Ok(())
    }
}
