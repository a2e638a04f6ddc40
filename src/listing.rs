//! What each stage of a compilation makes, as text.

use exactile_core::facts::Facts;
use exactile_core::ir::{Func, Grid};
use exactile_core::pipeline;
use exactile_core::target::{Options, Target};
use exactile_core::verify::{BlockFunc, LaneFunc};
use exactile_cranelift::StandardFloats;

use crate::compile::{ORDINARY, block_ir, expect_known, lane_ir};
use crate::error::{Error, Result};
use crate::made;

/// What code generation writes for a kernel, without a GPU: LLVM IR before and after the optimiser,
/// and PTX.
pub struct Listing {
    pub llvm_ir: String,
    pub optimized_llvm_ir: String,
    pub ptx: String,
}

/// A stage whose product can be printed. None needs a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListingStage {
    /// Block IR as it was traced or read.
    Trace,
    /// Block IR after its passes.
    Block,
    /// Lane IR of a CPU worker.
    Worker,
    /// Lane IR of a GPU thread block.
    Lane,
    /// Cranelift's IR, and below it the machine code.
    Clif,
    /// LLVM IR as it is generated.
    Llvm,
    /// LLVM IR after the optimiser.
    OptimizedLlvm,
    /// PTX.
    Ptx,
}

impl ListingStage {
    /// Every stage, in order.
    pub const ALL: [Self; 8] = [
        Self::Trace,
        Self::Block,
        Self::Worker,
        Self::Lane,
        Self::Clif,
        Self::Llvm,
        Self::OptimizedLlvm,
        Self::Ptx,
    ];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Block => "block",
            Self::Worker => "worker",
            Self::Lane => "lane",
            Self::Clif => "clif",
            Self::Llvm => "llvm",
            Self::OptimizedLlvm => "llvm-opt",
            Self::Ptx => "ptx",
        }
    }
}

/// The grid of one program, and of as many as the hardware counts.
const ONE: Grid = [1, 1, 1];

/// The text of a kernel at a stage. LLVM IR and PTX need a build with the feature `nvptx`.
pub(crate) fn listing(traced: BlockFunc, options: &Options, stage: ListingStage) -> Result<String> {
    let lane = |traced, target| lane_ir(traced, &target, options, &ORDINARY);
    let gpu = |traced| {
        let lane = lane(traced, Target::SM_90A)?;
        made::listing(&lane, &Target::SM_90A, ONE)
    };
    match stage {
        ListingStage::Trace => Ok(traced.to_string()),
        ListingStage::Block => Ok(block_ir(traced, &Target::CPU, options, &ORDINARY)?.to_string()),
        ListingStage::Worker => Ok(lane(traced, Target::CPU)?.to_string()),
        ListingStage::Lane => Ok(lane(traced, Target::SM_90A)?.to_string()),
        ListingStage::Clif => clif(&lane(traced, Target::CPU)?),
        ListingStage::Llvm => Ok(gpu(traced)?.llvm_ir),
        ListingStage::OptimizedLlvm => Ok(gpu(traced)?.optimized_llvm_ir),
        ListingStage::Ptx => Ok(gpu(traced)?.ptx),
    }
}

/// Cranelift's IR of lane IR, and below it the machine code.
pub(crate) fn clif(lane: &LaneFunc) -> Result<String> {
    exactile_cranelift::clif(lane).map_err(|error| Error::Backend {
        kernel: lane.name.clone(),
        device: "the CPU".to_string(),
        message: error.to_string(),
    })
}

/// The text of a kernel after a stage of the pipeline for `target`.
pub(crate) fn after(
    traced: BlockFunc,
    target: &Target,
    options: &Options,
    facts: &Facts,
    stage: &str,
) -> Result<String> {
    expect_known(target)?;
    let _floats = StandardFloats::new();
    let kernel = traced.name.clone();
    let mut text = None;
    let observe = &mut |name: &'static str, func: &Func| {
        if name == stage {
            text = Some(func.to_string());
        }
    };
    let compiled = pipeline::compile(traced, target, options, facts, observe);
    match (text, compiled) {
        // What later stages refuse can still be looked at.
        (Some(text), _) => Ok(text),
        (None, Err(diagnostics)) => Err(Error::Compile {
            kernel,
            diagnostics,
        }),
        (None, Ok(_)) => Err(Error::Invalid(format!(
            "`{stage}` is no stage of the pipeline for `{}`, expected `{}`",
            target.name,
            pipeline::stages().collect::<Vec<_>>().join("`, `")
        ))),
    }
}
