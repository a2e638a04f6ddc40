//! `exactile compile`: how long the compiler takes.

use clap::Args;
use exactile::internals::Store;
use exactile::{Error, Result, Target};
use exactile_harness::cases::to_compile;
use exactile_harness::compile::{CompileRow, measure};

use super::settings::Settings;

/// Measures how long each stage of the compiler takes for the kernels of the demonstration.
#[derive(Args)]
pub(crate) struct Compile {
    /// Only these kernels
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// The machine that the code is for; with `EXACTILE_PTXAS`, the assembler runs too
    #[arg(long, value_parser = exactile::command::target, default_value = Target::CPU.name)]
    target: Target,
    /// Compilations of each kernel, of which the fastest counts
    #[arg(long, default_value_t = 5)]
    repetitions: usize,
    /// Take the code for a GPU from the cache on disk where it is there, and keep it there, as launches do
    #[arg(long)]
    cached: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: Settings,
}

impl Compile {
    pub(crate) fn execute(&self) -> Result<()> {
        let mut cases = to_compile();
        let only = |name: &str| self.only.is_empty() || self.only.iter().any(|it| it == name);
        cases.retain(|case| only(case.kernel));
        let options = self.settings.options();
        let store = self.cached.then(Store::of_environment).flatten();
        let (mut rows, mut refused): (Vec<CompileRow>, Vec<String>) = Default::default();
        for case in &cases {
            let (schedule, determinism) = (options.schedule, options.determinism);
            let (target, repetitions) = (&self.target, self.repetitions);
            let measured = measure(
                case,
                target,
                schedule,
                determinism,
                repetitions,
                store.as_ref(),
            );
            match measured {
                Ok(row) => {
                    if !self.json {
                        super::print(&format!("{}\n", row.line()))?;
                    }
                    rows.push(row);
                }
                Err(error) => refused.push(format!("{} {:?}: {error}", case.kernel, case.shape)),
            }
        }
        if self.json {
            super::print_json(&rows)?;
        } else if !rows.is_empty() {
            let mean = rows.iter().map(|row| row.ms).sum::<f64>() / rows.len() as f64;
            super::print(&format!("mean of {} rows: {mean:.2} ms\n", rows.len()))?;
        }
        match refused.is_empty() {
            true => Ok(()),
            false => Err(Error::Invalid(refused.join("\n"))),
        }
    }
}
