//! What a launch runs: the text of every stage of its code, and what that takes of a GPU.

use std::fmt;
use std::sync::Arc;

use exactile_core::facts::Facts;
use exactile_core::ir::Grid;
use exactile_core::launch::{Launch, Passed};
use exactile_core::target::{Bounds, Distribution, Options, Target};
use exactile_core::verify::BlockFunc;
use exactile_cranelift::StandardFloats;

use crate::code::Runs;
use crate::compile::{Lowered, lowered_for};
use crate::cuda::GpuCode;
use crate::error::{Error, Result};
use crate::listing::{self, ListingStage};
use crate::made;

/// What is said of a launch before any of its code is made.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) trace: BlockFunc,
    pub(crate) options: Options,
    /// What is known of each argument.
    pub(crate) facts: Facts,
    pub(crate) grid: Grid,
    pub(crate) arguments: Vec<Passed>,
}

/// The code that a launch runs, with all that is known of its arguments: [`Kernel::inspect`] gives it.
///
/// [`Kernel::inspect`]: crate::Kernel::inspect
pub struct Inspection {
    asked: Asked,
    target: Target,
    /// What a GPU has loaded for it, where the launch is one on a GPU.
    runs: Option<Arc<Runs>>,
}

impl fmt::Debug for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inspection")
            .field("kernel", &self.asked.trace.name)
            .field("target", &self.target.name)
            .field("bounds", &self.bounds())
            .finish_non_exhaustive()
    }
}

impl Inspection {
    pub(crate) fn new(asked: Asked, target: Target, runs: Option<Arc<Runs>>) -> Self {
        Self {
            asked,
            target,
            runs,
        }
    }

    /// Whether the launch checks its accesses, or an earlier one has shown that it need not.
    pub fn bounds(&self) -> Bounds {
        self.asked.options.bounds
    }

    /// The machine that the code is for.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The same launch on another machine, which need not be there.
    #[must_use]
    pub fn on(self, target: Target) -> Self {
        Self {
            target,
            runs: None,
            ..self
        }
    }

    /// The code at a stage. A CPU has `trace`, `block`, `worker` and `clif`; a GPU `trace`, `block`, `lane` and,
    /// in a build with the feature `nvptx`, `llvm`, `llvm-opt` and `ptx`.
    ///
    /// # Errors
    /// What is wrong with the kernel, or a stage that the machine has not.
    pub fn text(&self, stage: ListingStage) -> Result<String> {
        let _floats = StandardFloats::new();
        let distribution = match stage {
            ListingStage::Trace => return Ok(self.asked.trace.to_string()),
            ListingStage::Block => return Ok(self.lowered()?.block.to_string()),
            ListingStage::Worker | ListingStage::Clif => Distribution::Sequential,
            ListingStage::Lane
            | ListingStage::Llvm
            | ListingStage::OptimizedLlvm
            | ListingStage::Ptx => Distribution::Distributed,
        };
        if distribution != self.target.distribution {
            return Err(Error::Invalid(format!(
                "code for `{}` has no stage `{}`",
                self.target.name,
                stage.name()
            )));
        }
        let lowered = self.lowered()?;
        if let ListingStage::Clif = stage {
            return listing::clif(&lowered.lane);
        }
        let gpu = || made::listing(&lowered.lane, &self.target, self.asked.grid);
        match stage {
            ListingStage::Llvm => gpu().map(|gpu| gpu.llvm_ir),
            ListingStage::OptimizedLlvm => gpu().map(|gpu| gpu.optimized_llvm_ir),
            ListingStage::Ptx => gpu().map(|gpu| gpu.ptx),
            ListingStage::Trace
            | ListingStage::Block
            | ListingStage::Worker
            | ListingStage::Lane
            | ListingStage::Clif => Ok(lowered.lane.to_string()),
        }
    }

    /// The code after a stage of the pipeline, as [`exactile_core::pipeline::stages`] names it.
    ///
    /// # Errors
    /// What is wrong with the kernel, or that the machine has no such stage.
    pub fn after(&self, stage: &str) -> Result<String> {
        let (trace, facts) = (self.asked.trace.clone(), self.lowered()?.facts);
        listing::after(trace, &self.target, &self.asked.options, &facts, stage)
    }

    /// What the code takes of the GPU that the launch is for.
    ///
    /// # Errors
    /// When the launch is for no GPU, or its driver does not say.
    pub fn resources(&self) -> Result<Resources> {
        match self.runs.as_deref() {
            Some(Runs::Gpu(code)) => code.resources(),
            Some(Runs::Interpreter(_) | Runs::Lanes(_) | Runs::Cpu(_)) | None => {
                Err(Error::Invalid(format!(
                    "kernel `{}`: code for `{}` is on no GPU that could tell its resources",
                    self.asked.trace.name, self.target.name
                )))
            }
        }
    }

    /// What a GPU runs, and the launch.
    pub(crate) fn gpu_launch(&self) -> Option<(&GpuCode, Launch<'_>)> {
        match self.runs.as_deref()? {
            Runs::Gpu(code) => Some((code, Launch::new(self.asked.grid, &self.asked.arguments))),
            Runs::Interpreter(_) | Runs::Lanes(_) | Runs::Cpu(_) => None,
        }
    }

    pub(crate) fn lowered(&self) -> Result<Lowered> {
        let asked = self.asked.clone();
        let launch = Launch::new(asked.grid, &asked.arguments);
        lowered_for(
            asked.trace,
            &self.target,
            &asked.options,
            &asked.facts,
            &launch,
        )
    }
}

/// What a kernel takes of a GPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resources {
    /// Threads of a thread block, at most.
    pub threads: u32,
    /// Programs that share a thread block, at most.
    pub programs: u32,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of local memory of a thread: spilled registers and its stack.
    pub local_bytes: u32,
    /// Bytes of shared memory of a thread block.
    pub shared_bytes: u32,
    /// Thread blocks that a multiprocessor runs at once.
    pub blocks: u32,
    /// Threads that a multiprocessor runs at once, of whatever kernels.
    pub most_threads: u32,
}

impl Resources {
    /// The share of a multiprocessor's threads that run at once, from 0 to 1.
    pub fn occupancy(&self) -> f64 {
        f64::from(self.blocks) * f64::from(self.threads) / f64::from(self.most_threads.max(1))
    }

    /// Why no multiprocessor can run a thread block, if that is so.
    pub(crate) fn shortage(&self) -> Option<String> {
        (self.blocks == 0).then(|| {
            format!(
                "no multiprocessor has room for a thread block of {} threads with {} registers each and {} bytes of shared \
                 memory",
                self.threads, self.registers, self.shared_bytes
            )
        })
    }
}

impl fmt::Display for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} threads of {} programs, {} registers, {} bytes of local memory, {} bytes of shared memory, {} thread \
             blocks a multiprocessor, occupancy {:.0} %",
            self.threads,
            self.programs,
            self.registers,
            self.local_bytes,
            self.shared_bytes,
            self.blocks,
            self.occupancy() * 100.0
        )
    }
}

#[cfg(test)]
mod tests;
