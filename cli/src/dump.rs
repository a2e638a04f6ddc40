//! `exactile dump`: what a stage of the compiler makes of a kernel.

use std::path::PathBuf;

use clap::Args;
use exactile::text_kernel::TextKernel;
use exactile::{Bounds, ListingStage, Result, Target};
use exactile_core::pipeline;

use super::settings::Settings;

/// Prints what a stage of the compiler makes of a kernel in text form.
#[derive(Args)]
pub(crate) struct Dump {
    /// The kernel
    file: PathBuf,
    /// `trace`, `block`, `worker` and `clif` for the CPU, `lane`, `llvm`, `llvm-opt` and `ptx` for
    /// the GPU, or a stage of the pipeline, such as `decompose`
    #[arg(long, value_parser = stage)]
    stage: Stage,
    /// The machine that a stage of the pipeline makes code for
    #[arg(long, value_parser = super::settings::target, default_value = Target::CPU.name)]
    target: Target,
    /// Without bounds checks: what runs once a launch was proved to be in bounds
    #[arg(long)]
    unchecked: bool,
    #[command(flatten)]
    settings: Settings,
}

impl Dump {
    pub(crate) fn execute(&self) -> Result<()> {
        let mut options = self.settings.options();
        if self.unchecked {
            options.bounds = Bounds::Unchecked;
        }
        let kernel = TextKernel::read(&self.file, options)?;
        super::print(&match self.stage {
            Stage::Listing(stage) => kernel.listing(stage)?,
            Stage::Pipeline(name) => kernel.after(name, &self.target)?,
        })
    }
}

/// What can be printed.
#[derive(Clone, Copy)]
enum Stage {
    Listing(ListingStage),
    Pipeline(&'static str),
}

fn stage(text: &str) -> Result<Stage, String> {
    let listings = || ListingStage::ALL.iter().map(|stage| stage.name());
    let listing = ListingStage::ALL
        .into_iter()
        .find(|stage| stage.name() == text);
    let named = || pipeline::stages().find(|name| *name == text);
    listing
        .map(Stage::Listing)
        .or_else(|| named().map(Stage::Pipeline))
        .ok_or_else(|| {
            let names: Vec<&str> = listings().chain(pipeline::stages()).collect();
            format!("expected `{}`", names.join("`, `"))
        })
}
