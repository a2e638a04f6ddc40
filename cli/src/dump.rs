//! `exactile dump`: what a stage of the compiler makes of a kernel.

use std::path::PathBuf;

use clap::Args;
use exactile::text_kernel::TextKernel;
use exactile::{Bounds, ListingStage, Result};

use super::settings::Settings;

/// Prints what a stage of the compiler makes of a kernel in text form.
#[derive(Args)]
pub(crate) struct Dump {
    /// The kernel
    file: PathBuf,
    /// `trace`, `block`, `worker` and `clif` for the CPU, `lane`, `llvm`, `llvm-opt` and `ptx` for
    /// the GPU
    #[arg(long, value_parser = stage)]
    stage: ListingStage,
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
        super::print(&kernel.listing(self.stage)?)
    }
}

fn stage(text: &str) -> Result<ListingStage, String> {
    ListingStage::ALL
        .into_iter()
        .find(|stage| stage.name() == text)
        .ok_or_else(|| {
            let names: Vec<&str> = ListingStage::ALL.iter().map(|stage| stage.name()).collect();
            format!("expected `{}`", names.join("`, `"))
        })
}
