//! A kernel in the user's hands: inspect it, check it, launch it.

use std::fmt;
use std::sync::Arc;

use exactile_core::diagnostic::Diagnostics;
use exactile_core::ir::Grid;
use exactile_core::lang::{KernelSource, LoopOrder};
use exactile_core::passes::tile_order;
use exactile_core::target::{Bounds, Determinism, Options, Target};
use exactile_core::verify::BlockFunc;
use exactile_cranelift::StandardFloats;

use crate::arguments::BoundArguments;
use crate::compile::{ORDINARY, StageTime, block_ir, compile_times};
use crate::compiled::Ready;
use crate::error::{Error, Result};
use crate::listing::{ListingStage, listing};
use crate::smaller::Smaller;

/// The grid that a kernel states for these arguments, once its constraint holds.
pub(crate) type Placement = Arc<dyn Fn(&BoundArguments<'_>) -> Result<Option<Grid>> + Send + Sync>;

/// A kernel with its configuration: what calling a `#[kernel]` function gives, once it is [configured](crate::Configure).
///
/// `P` is the tuple of its parameter types.
#[must_use = "a kernel does nothing until it is launched"]
pub struct Kernel<P> {
    pub(crate) source: KernelSource<P>,
    pub(crate) determinism: Determinism,
    /// What was not set and has no default.
    pub(crate) missing: Option<Arc<str>>,
    pub(crate) place: Option<Placement>,
    /// The same with smaller tiles, for problems that are small for a device.
    pub(crate) smaller: Option<Smaller<P>>,
    /// The code of all launches, where it is compiled for one kind of them.
    pub(crate) ready: Option<Arc<Ready>>,
}

impl<P> From<KernelSource<P>> for Kernel<P> {
    fn from(source: KernelSource<P>) -> Self {
        Self {
            source,
            determinism: Determinism::default(),
            missing: None,
            place: None,
            smaller: None,
            ready: None,
        }
    }
}

impl<P> Clone for Kernel<P> {
    fn clone(&self) -> Self {
        Self {
            source: self.source.clone(),
            determinism: self.determinism,
            missing: self.missing.clone(),
            place: self.place.clone(),
            smaller: self.smaller.clone(),
            ready: self.ready.clone(),
        }
    }
}

impl<P> fmt::Debug for Kernel<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel")
            .field("name", &self.name())
            .field("config", &self.config())
            .field("determinism", &self.determinism)
            .finish()
    }
}

impl<P> Kernel<P> {
    /// The level of determinism promised.
    pub fn determinism_level(&self) -> Determinism {
        self.determinism
    }

    /// The function's name.
    pub fn name(&self) -> &'static str {
        self.source.name()
    }

    /// The configuration, printed.
    pub fn config(&self) -> String {
        self.source.identity().config()
    }

    /// Traces the kernel, verifies it and resolves its flags, without a device: errors in shapes
    /// and types come here, all at once, each with its source line. Optional parameters are there; a launch
    /// without one checks the kernel without it.
    pub fn check(&self) -> Result<()> {
        block_ir(
            self.trace()?,
            &Target::CPU,
            &self.options(Bounds::Checked),
            &ORDINARY,
        )
        .map(drop)
    }

    /// The block IR as it was traced.
    pub fn ir(&self) -> Result<String> {
        Ok(self.trace()?.to_string())
    }

    /// Lane IR of a CPU worker, for a checked launch.
    pub fn worker_ir(&self) -> Result<String> {
        self.listing(ListingStage::Worker)
    }

    /// Lane IR of a GPU thread block, for a checked launch. Needs no GPU.
    pub fn lane_ir(&self) -> Result<String> {
        self.listing(ListingStage::Lane)
    }

    /// Cranelift's IR, and below it the machine code of this computer's processor.
    pub fn clif(&self) -> Result<String> {
        self.listing(ListingStage::Clif)
    }

    /// LLVM IR for a GPU. Needs no GPU, but a build with the feature `nvptx`.
    pub fn llvm_ir(&self) -> Result<String> {
        self.listing(ListingStage::Llvm)
    }

    /// PTX. Needs no GPU, but a build with the feature `nvptx`.
    pub fn ptx(&self) -> Result<String> {
        self.listing(ListingStage::Ptx)
    }

    /// The text of any stage. Nothing is assumed of the arguments, so a launch may use code with
    /// wider accesses: [`inspect`](Self::inspect) shows that.
    pub fn listing(&self, stage: ListingStage) -> Result<String> {
        listing(self.trace()?, &self.options(Bounds::Checked), stage)
    }

    /// How long each stage takes from the trace to machine code of a CPU, or to PTX, which needs no GPU
    /// but a build with the feature `nvptx`. Where `EXACTILE_PTXAS` names an assembler, it has a stage.
    pub fn compile_times(&self, target: &Target) -> Result<Vec<StageTime>> {
        let options = self.options(Bounds::Checked);
        compile_times(target, &options, &ORDINARY, None, || self.trace())
    }

    pub(crate) fn options(&self, bounds: Bounds) -> Options {
        Options {
            determinism: self.determinism,
            bounds,
            schedule: self.source.schedule(),
        }
    }

    /// The block IR as it was traced, verified. Optional parameters are there.
    ///
    /// # Errors
    /// What is wrong in the body; from `Determinism::ScheduleInvariant` on also what
    /// [`lints`](Self::lints) says of a kernel that does not declare `order = "tile"`.
    pub fn trace(&self) -> Result<BlockFunc> {
        self.trace_with(&[])
    }

    /// [`trace`](Self::trace), with other choices of a launch than that optional parameters are there, tensors begin at
    /// their lowest element and nothing is written in place.
    pub(crate) fn trace_with(&self, choices: &[bool]) -> Result<BlockFunc> {
        let func = self.traced(choices)?;
        let promises = self.determinism >= Determinism::ScheduleInvariant;
        if promises && self.source.order() == LoopOrder::Whole {
            let found = tile_order::find(&func);
            return found.into_result(func).map_err(|it| self.error(it));
        }
        Ok(func)
    }

    /// Where the bits of a loop's sums follow the tile size, at any level of determinism, whether the
    /// kernel declares `order = "tile"` or not.
    ///
    /// # Errors
    /// What is wrong in the body.
    pub fn lints(&self) -> Result<Diagnostics> {
        let func = self.traced(&[])?;
        Ok(tile_order::find(&func))
    }

    fn traced(&self, choices: &[bool]) -> Result<BlockFunc> {
        self.check_set()?;
        let _floats = StandardFloats::new();
        self.source.trace(choices).map_err(|it| self.error(it))
    }

    fn error(&self, diagnostics: Diagnostics) -> Error {
        Error::Compile {
            kernel: self.name().to_string(),
            diagnostics,
        }
    }
}
