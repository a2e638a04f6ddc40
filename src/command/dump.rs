//! `dump`: the code of a crate's kernels as text.

use clap::Args;
use exactile_core::target::{Bounds, Distribution, Target};

use super::{Case, Run, chosen, launches_nothing, print};
use crate::device::Device;
use crate::error::Result;
use crate::listing::ListingStage;

#[derive(Args)]
pub(super) struct Dump {
    /// The kernel
    kernel: String,
    /// `trace` or `block`; `worker` and `clif` for the CPU; `lane`, `llvm`, `llvm-opt` and `ptx` for a GPU
    #[arg(long, value_parser = stage)]
    stage: ListingStage,
    /// The machine that the code is for; `sm_90a` for the stages of a GPU when absent
    #[arg(long, value_parser = super::target)]
    target: Option<Target>,
    /// Without bounds checks: what runs once a launch was proved to be in bounds
    #[arg(long)]
    unchecked: bool,
}

impl Dump {
    pub(super) fn execute(&self, cases: &[Case]) -> Result<()> {
        let target = self.target.unwrap_or(match self.stage {
            ListingStage::Trace
            | ListingStage::Block
            | ListingStage::Worker
            | ListingStage::Clif => Target::CPU,
            ListingStage::Lane
            | ListingStage::Llvm
            | ListingStage::OptimizedLlvm
            | ListingStage::Ptx => Target::SM_90A,
        });
        let device = match target.distribution {
            Distribution::Sequential => Device::cpu(),
            Distribution::Distributed => Device::lanes(),
        };
        let bounds = match self.unchecked {
            true => Bounds::Unchecked,
            false => Bounds::Checked,
        };
        for (name, case) in chosen(cases, std::slice::from_ref(&self.kernel))? {
            let jobs = device.record(|| {
                case(&mut Run {
                    device: &device,
                    tunes: None,
                    name,
                })
            })?;
            if jobs.is_empty() {
                return Err(launches_nothing(name));
            }
            for job in jobs {
                print(&job.inspect(target, bounds)?.text(self.stage)?)?;
            }
        }
        Ok(())
    }
}

fn stage(text: &str) -> Result<ListingStage, String> {
    let mut stages = ListingStage::ALL.into_iter();
    stages.find(|stage| stage.name() == text).ok_or_else(|| {
        let names = ListingStage::ALL.iter().map(|stage| stage.name());
        format!("expected `{}`", names.collect::<Vec<_>>().join("`, `"))
    })
}
