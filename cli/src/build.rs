//! `exactile build`: code for GPUs ahead of time.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use exactile::built::{Build as Building, Record};
use exactile::{Error, Result, Target};
use exactile_harness::cases::to_compile;
use exactile_harness::compile::launch;
use exactile_harness::demo::Case;
use serde::Serialize;

use super::progress::Progress;
use super::settings::Settings;

/// Builds code for GPUs ahead of time, of the kernels of the demonstration, and lists it in a manifest.
///
/// A program of the same sources that is compiled without LLVM loads it: `Device::use_built`. A crate builds the code of
/// its own kernels by `exactile::built::Build`. The code is machine code where `EXACTILE_PTXAS` names an assembler, else
/// PTX, which the driver assembles. What the same compiler built in the folder before stays; all other code there is
/// removed.
#[derive(Args)]
pub(crate) struct Build {
    /// The folder for the code and the manifest
    #[arg(long)]
    out: PathBuf,
    /// The machine that the code is for; several, with commas
    #[arg(long, required = true, value_delimiter = ',', value_parser = exactile::command::target)]
    target: Vec<Target>,
    /// Only these kernels
    kernels: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: Settings,
}

/// What was built of a kernel.
#[derive(Serialize)]
struct Row {
    kernel: &'static str,
    dtype: &'static str,
    shape: Vec<usize>,
    target: &'static str,
    /// Codes that no kernel before had built.
    codes: usize,
    /// Of their files.
    bytes: u64,
    seconds: f64,
}

impl Build {
    pub(crate) fn execute(&self) -> Result<()> {
        let cases = self.cases()?;
        let progress = Progress::start("building");
        let (mut rows, mut refused): (Vec<Row>, Vec<String>) = Default::default();
        for target in &self.target {
            let mut building = Building::new(&self.out, target)?;
            for case in &cases {
                let (kernel, shape) = (case.kernel, &case.shape);
                progress.say(format!("{kernel} {shape:?} for {}", target.name));
                let start = Instant::now();
                match building.add(|device| self.launch(case, device)) {
                    Ok(records) => {
                        let row = Row::of(case, target, &records, start);
                        if !self.json {
                            progress.print(&row.line())?;
                        }
                        rows.push(row);
                    }
                    Err(error) => refused.push(format!("{kernel} {shape:?}: {error}")),
                }
            }
            building.finish()?;
        }
        drop(progress);
        if self.json {
            super::print_json(&rows)?;
        } else {
            let codes: usize = rows.iter().map(|row| row.codes).sum();
            let bytes: u64 = rows.iter().map(|row| row.bytes).sum();
            let folder = self.out.display();
            super::print(&format!("{codes} codes, {bytes} bytes in {folder}\n"))?;
        }
        match refused.is_empty() {
            true => Ok(()),
            false => Err(Error::Invalid(refused.join("\n"))),
        }
    }

    fn cases(&self) -> Result<Vec<Case>> {
        let mut cases = to_compile();
        let unknown = |name: &&String| !cases.iter().any(|case| case.kernel == name.as_str());
        if let Some(name) = self.kernels.iter().find(unknown) {
            let mut known: Vec<&str> = cases.iter().map(|case| case.kernel).collect();
            known.dedup();
            return Err(Error::Invalid(format!(
                "there is no kernel `{name}`, expected `{}`",
                known.join("`, `")
            )));
        }
        let only = |name: &str| self.kernels.is_empty() || self.kernels.iter().any(|it| it == name);
        cases.retain(|case| only(case.kernel));
        Ok(cases)
    }

    fn launch(&self, case: &Case, device: &exactile::Device) -> Result<()> {
        let options = self.settings.options();
        launch(case, device, options.schedule, options.determinism)
    }
}

impl Row {
    fn of(case: &Case, target: &Target, records: &[Record], start: Instant) -> Self {
        Self {
            kernel: case.kernel,
            dtype: case.dtype.name(),
            shape: case.shape.clone(),
            target: target.name,
            codes: records.len(),
            bytes: records.iter().map(|record| record.bytes).sum(),
            seconds: start.elapsed().as_secs_f64(),
        }
    }

    fn line(&self) -> String {
        let shape: Vec<String> = self.shape.iter().map(ToString::to_string).collect();
        format!(
            "{:15} {:5} {:16} {:7} {:2} codes {:9} bytes {:7.2} s\n",
            self.kernel,
            self.dtype,
            shape.join("x"),
            self.target,
            self.codes,
            self.bytes,
            self.seconds
        )
    }
}
