//! `exactile plot`: charts of reports.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use exactile::internals::write_file;
use exactile::{Error, Result};
use exactile_harness::bench::Report;
use exactile_harness::plot::{Roof, roofline, sizes, tuning};

/// Draws a chart of a report of the benchmark as SVG.
#[derive(Args)]
pub(crate) struct Plot {
    #[command(subcommand)]
    chart: Chart,
}

#[derive(Subcommand)]
enum Chart {
    Roofline(Roofline),
    Sizes(Files),
    Tuning(Tuning),
}

/// What kernels compute a second over what they compute for each byte
#[derive(Args)]
struct Roofline {
    #[command(flatten)]
    files: Files,
    /// Gigabytes a second of the machine; those of the best copy of the report when absent
    #[arg(long)]
    bandwidth: Option<f64>,
    /// Teraflops a second of the machine, for the flat part of the roof
    #[arg(long)]
    peak: Option<f64>,
}

/// The time of each configuration that searches measured, beside the peers
#[derive(Args)]
struct Tuning {
    #[command(flatten)]
    files: Files,
    /// Only kernels whose name, type and extents hold this text
    #[arg(long, default_value = "")]
    only: String,
}

/// Gigabytes a second over sizes, of a report of `exactile bench --sizes`
#[derive(Args)]
struct Files {
    /// A report of `exactile bench --out`
    report: PathBuf,
    /// Where the chart goes; to standard output when absent
    #[arg(long)]
    out: Option<PathBuf>,
}

impl Plot {
    pub(crate) fn execute(&self) -> Result<()> {
        match &self.chart {
            Chart::Roofline(chart) => {
                let roof = Roof {
                    bandwidth: chart.bandwidth,
                    peak: chart.peak,
                };
                chart.files.draw(|report| roofline(report, roof))
            }
            Chart::Sizes(files) => files.draw(sizes),
            Chart::Tuning(chart) => chart.files.draw(|report| tuning(report, &chart.only)),
        }
    }
}

impl Files {
    fn draw(&self, draw: impl FnOnce(&Report) -> Result<String>) -> Result<()> {
        let text = draw(&read(&self.report)?)?;
        match &self.out {
            Some(file) => write_file(file, text.as_bytes()),
            None => super::print(&text),
        }
    }
}

fn read(file: &Path) -> Result<Report> {
    let text = std::fs::read_to_string(file).map_err(Error::file(file))?;
    serde_json::from_str(&text).map_err(|error| {
        Error::format(
            file,
            format!("not a report of `exactile bench --out`: {error}"),
        )
    })
}
