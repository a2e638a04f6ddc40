//! `exactile dump`: what a stage of the compiler makes of a kernel.

use std::path::{Path, PathBuf};

use clap::Args;
use exactile::text_kernel::TextKernel;
use exactile::{Bounds, ListingStage, Options, Result, Target};
use exactile_core::pipeline;
use exactile_harness::cases::to_compile;
use exactile_harness::compile::launches;
use exactile_harness::demo::Case;

use super::settings::Settings;

/// Prints what a stage of the compiler makes of a kernel.
#[derive(Args)]
pub(crate) struct Dump {
    /// A file with a kernel in text form, of whose arguments nothing is known; or the name of a kernel of the
    /// demonstration, such as `softmax`, as its first launch there runs it
    kernel: PathBuf,
    /// `trace`, `block`, `worker` and `clif` for the CPU, `lane`, `llvm`, `llvm-opt` and `ptx` for
    /// the GPU, or a stage of the pipeline, such as `decompose`
    #[arg(long, value_parser = stage)]
    stage: Stage,
    /// The machine that a stage makes code for, where its name leaves that open
    #[arg(long, value_parser = exactile::command::target, default_value = Target::CPU.name)]
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
        let case = to_compile()
            .into_iter()
            .find(|case| self.kernel == Path::new(case.kernel));
        if let Some(case) = case {
            return self.launches(&case, &options);
        }
        let kernel = TextKernel::read(&self.kernel, options)?;
        super::print(&match self.stage {
            Stage::Listing(stage) => kernel.listing(stage)?,
            Stage::Pipeline(name) => kernel.after(name, &self.target)?,
        })
    }
}

impl Dump {
    /// The code of each launch of a case.
    fn launches(&self, case: &Case, options: &Options) -> Result<()> {
        let target = match self.stage {
            Stage::Listing(ListingStage::Trace | ListingStage::Block) | Stage::Pipeline(_) => {
                self.target
            }
            Stage::Listing(ListingStage::Worker | ListingStage::Clif) => Target::CPU,
            Stage::Listing(
                ListingStage::Lane
                | ListingStage::Llvm
                | ListingStage::OptimizedLlvm
                | ListingStage::Ptx,
            ) if self.target == Target::CPU => Target::SM_90A,
            Stage::Listing(
                ListingStage::Lane
                | ListingStage::Llvm
                | ListingStage::OptimizedLlvm
                | ListingStage::Ptx,
            ) => self.target,
        };
        let jobs = launches(case, &target, options.schedule, options.determinism)?;
        for job in jobs {
            let inspection = job.inspect(target, options.bounds)?;
            super::print(&match self.stage {
                Stage::Listing(stage) => inspection.text(stage)?,
                Stage::Pipeline(name) => inspection.after(name)?,
            })?;
        }
        Ok(())
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
