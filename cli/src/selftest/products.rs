//! `exactile selftest products`: products of matrices and attention, drawn by a seed.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use exactile::internals::write_file;
use exactile::{Device, Error, Result};
use exactile_harness::testing::products::{self, Event, ProductsOptions, Report};

use crate::progress::Progress;

/// Runs products of matrices, or attention, under drawn settings on every device and compares bits with the CPU
#[derive(Args)]
pub(super) struct Products {
    /// Attention in place of products
    #[arg(long)]
    attention: bool,
    /// How many problems
    #[arg(long, default_value_t = ProductsOptions::default().count)]
    count: usize,
    /// The number of the first problem
    #[arg(long, value_name = "NUMBER", default_value_t = ProductsOptions::default().from)]
    from: usize,
    /// The seed of the run
    #[arg(long, default_value_t = ProductsOptions::default().seed)]
    seed: u64,
    /// Begin no problem after so many seconds
    #[arg(long)]
    seconds: Option<u64>,
    /// Run only the problem with this number
    #[arg(long, value_name = "NUMBER")]
    only: Option<usize>,
    /// Settings of each problem, the kernel's own choice among them
    #[arg(long, default_value_t = ProductsOptions::default().schedules)]
    schedules: usize,
    /// The most multiply-adds of a problem, up to 2^33
    #[arg(long, default_value_t = ProductsOptions::default().most, value_parser = clap::value_parser!(u64).range(4096..=1 << 33))]
    most: u64,
    /// Devices that must agree with the golden run of the CPU; when absent, the interpreter, the CPU, and the first GPU or the
    /// interpreter of a GPU's lanes
    #[arg(long, value_delimiter = ',')]
    device: Vec<String>,
    /// Where to write what came of the problems, as JSON
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The commit that the file names
    #[arg(long, default_value = "unknown")]
    commit: String,
}

/// How often progress is told where no line can move.
const TELLING: Duration = Duration::from_secs(10);

impl Products {
    pub(super) fn execute(&self) -> Result<()> {
        let report = self.run(ProductsOptions {
            seed: self.seed,
            from: self.from,
            count: self.count,
            only: self.only,
            time: self.seconds.map(Duration::from_secs),
            schedules: self.schedules,
            most: self.most,
            attention: self.attention,
            devices: self.devices()?,
            planted: false,
        })?;
        crate::print(&format!("{report}\n"))?;
        if let Some(file) = &self.out {
            let text = serde_json::to_string_pretty(&report.summary(&self.commit))
                .map_err(|error| Error::Invalid(format!("the report is no JSON: {error}")))?;
            write_file(file, format!("{text}\n").as_bytes())?;
        }
        match (report.failures.len(), report.passed()) {
            (_, true) => Ok(()),
            (0, false) => Err(Error::Mismatch("too few results were compared".to_string())),
            (failures, false) => Err(Error::Mismatch(format!("{failures} problems are wrong"))),
        }
    }

    fn devices(&self) -> Result<Vec<Device>> {
        if !self.device.is_empty() {
            let names = self.device.iter();
            return names.map(|name| Device::from_name(name)).collect();
        }
        let mut devices = vec![Device::interpreter(), Device::cpu()];
        devices.push(match Device::cuda(0) {
            Ok(device) => device,
            Err(reason) => {
                crate::print(&format!("skipped: {reason}\n"))?;
                Device::lanes()
            }
        });
        Ok(devices)
    }

    /// Runs the problems and prints each failure when it is found.
    fn run(&self, options: ProductsOptions) -> Result<Report> {
        let count = options.only.map_or(options.count, |_| 1);
        let progress = Progress::start(&format!("selftest products: {count}"));
        let (start, moves) = (Instant::now(), io::stderr().is_terminal());
        let (mut ended, mut failed, mut told) = (0, 0, start);
        let mut printed = Ok(());
        let report = products::run(options, &mut |event| match event {
            Event::Begun(number, title) if self.only.is_some() => {
                let next = progress.print(&format!("{number}: {title}\n"));
                if printed.is_ok() {
                    printed = next;
                }
            }
            Event::Begun(number, title) => {
                let line = format!(
                    "selftest products: {ended} of {count}, {failed} failures; {number}: {title}"
                );
                if moves {
                    progress.say(line);
                } else if told.elapsed() >= TELLING {
                    told = Instant::now();
                    crate::note(&line);
                }
            }
            Event::Failed(failure) => {
                failed += 1;
                let next = progress.print(&format!("{failure}\n\n"));
                if printed.is_ok() {
                    printed = next;
                }
            }
            Event::Ended => ended += 1,
        });
        printed?;
        report
    }
}
