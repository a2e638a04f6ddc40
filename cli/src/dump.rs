//! `exactile dump`: what a stage of the compiler makes of a kernel.

use std::path::{Path, PathBuf};

use clap::Args;
use exactile::text_kernel::TextKernel;
use exactile::{Bounds, Error, ListingStage, Options, Result, Target};
use exactile_core::pipeline;
use exactile_harness::cases::ready::{Ready, ready};

use super::settings::{Settings, Tile};

/// Prints what a stage of the compiler makes of a kernel.
#[derive(Args)]
pub(crate) struct Dump {
    /// A file with a kernel in text form, of whose arguments nothing is known; or the name of a ready kernel, such as `softmax`
    /// or `"softmax bf16 61x1000"`, as its first launch of those that `bench compile` compiles runs it
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
    #[command(flatten)]
    tile: Tile,
}

impl Dump {
    pub(crate) fn execute(&self) -> Result<()> {
        let mut options = self.settings.options();
        if self.unchecked {
            options.bounds = Bounds::Unchecked;
        }
        let is_asked = |name: &str| self.kernel == Path::new(name);
        let mut ready = ready().into_iter();
        let found = ready.find(|it| is_asked(it.kernel()) || is_asked(&it.name));
        if let Some(ready) = found {
            return self.launches(&ready, &options);
        }
        let kernel = TextKernel::read(&self.kernel, options)?;
        if self.tile.is_stated() {
            return Err(Error::Invalid(format!(
                "`--block` and `--width` are of a ready kernel, found the kernel in text form `{}`",
                self.kernel.display()
            )));
        }
        super::print(&match self.stage {
            Stage::Listing(stage) => kernel.listing(stage)?,
            Stage::Pipeline(name) => kernel.after(name, &self.target)?,
        })
    }
}

impl Dump {
    /// The code of each launch of a ready kernel.
    fn launches(&self, ready: &Ready, options: &Options) -> Result<()> {
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
        for job in ready.jobs(&target, &self.tile.setting(options))? {
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
