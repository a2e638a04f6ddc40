//! `exactile bench tuning`: how long tuning takes beside Triton's, and how good what it finds is.

use std::path::{Path, PathBuf};

use clap::Args;
use exactile::{Device, Error, Result};
use exactile_harness::bench::tuning::{TuningPlan, tuning};

use crate::progress::Progress;

/// Tunes softmax and a product of `f32` over 60 configurations each, beside Triton's exhaustive search over the same.
///
/// Fails where what is found takes more than 1.03 of the time of the best, each measured at length, or the search more
/// than a third of Triton's.
#[derive(Args)]
pub(super) struct Tuning {
    /// What runs them: `cpu`, `lanes`, `cuda` or `cuda:N`
    #[arg(long, default_value = "cuda")]
    device: String,
    /// Rows and columns of the softmax, and the extent of the matrices
    #[arg(long, value_delimiter = ',', default_values_t = [4096, 4096, 2048])]
    extents: Vec<usize>,
    /// The script that tunes with Triton, or `none`
    #[arg(long, default_value = "benches/peers/triton_autotune.py")]
    peer: PathBuf,
    /// The Python that runs it
    #[arg(long, default_value = "python3")]
    python: String,
    /// Where to write the report as JSON
    #[arg(long)]
    out: Option<PathBuf>,
}

impl Tuning {
    pub(super) fn execute(&self) -> Result<()> {
        let device = Device::from_name(&self.device)?;
        let [rows, columns, extent] = self.extents[..] else {
            return Err(Error::Invalid(format!(
                "found {} extents, expected 3",
                self.extents.len()
            )));
        };
        let script = Some(self.peer.as_path()).filter(|script| *script != Path::new("none"));
        let plan = TuningPlan {
            device: &device,
            extents: [rows, columns, extent],
            peer: script.map(|script| (self.python.as_str(), script)),
        };
        let progress = Progress::start("tuning");
        let report = tuning(&plan, &|line| progress.say(line.to_string()))?;
        drop(progress);
        for row in &report.rows {
            crate::print(&row.lines())?;
        }
        if let Some(file) = &self.out {
            let text = serde_json::to_string_pretty(&report)
                .map_err(|error| Error::Invalid(error.to_string()))?;
            exactile::internals::write_file(file, text.as_bytes())?;
        }
        report.verdict()
    }
}
