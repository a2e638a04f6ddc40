//! What makes code for GPUs, in a build with the feature `nvptx`. It needs no GPU.

use exactile_core::ir::Grid;
use exactile_core::target::Target;
use exactile_core::verify::LaneFunc;
use exactile_nvptx::{
    EmitOptions, GridMapping, Ptx, assembler, emit_with, generator, keeps_operands,
};

use crate::cuda::{Gpu, GpuCode};
use crate::error::{Error, Result};
use crate::listing::Listing;

fn failed(error: exactile_nvptx::Error) -> Error {
    Error::Device(error.to_string())
}

impl Gpu {
    /// Compiles and loads a kernel for launches over `grid`.
    pub fn compile(&self, func: &LaneFunc, grid: Grid) -> Result<GpuCode> {
        let mut ptx = ptx(func, &self.target(), GridMapping::of(grid), (false, false))?;
        assemble(&mut ptx)?;
        self.load(ptx)
    }
}

/// Says what makes code, by versions, and for which machine where nobody knows the driver that assembles PTX.
pub(crate) fn shipped(target: &Target) -> Result<(String, Target)> {
    Ok((generator(), target.holding(keeps_operands(true))))
}

/// Has the compiler make what it makes first: from then on the end of the process waits for its work.
pub(crate) fn prepare() -> Result<()> {
    exactile_nvptx::prepare().map_err(failed)
}

/// PTX for grids with this mapping.
///
/// `shown`: with the LLVM IR that it is made from; `lines`: with the lines of the kernel.
pub(crate) fn ptx(
    func: &LaneFunc,
    target: &Target,
    grid: GridMapping,
    (shown, lines): (bool, bool),
) -> Result<Ptx> {
    let options = EmitOptions {
        grid,
        llvm_ir: shown,
        lines,
        ..EmitOptions::new(*target)
    };
    emit_with(func, &func.name, options).map_err(failed)
}

/// Has a `ptxas` that is named, or found where the driver's is too old, make machine code; whether there is one.
pub(crate) fn assemble(ptx: &mut Ptx) -> Result<bool> {
    ptx.assemble().map_err(failed)
}

/// The programs that make code, by versions; nothing where the assembler that is named is not there.
pub(crate) fn maker() -> Option<String> {
    let assembler = assembler().ok()?;
    Some(format!("{}, assembler {assembler}", generator()))
}

/// Generates code for launches over `grid`, without a GPU.
pub fn listing(func: &LaneFunc, target: &Target, grid: Grid) -> Result<Listing> {
    let ptx = ptx(func, target, GridMapping::of(grid), (true, false))?;
    Ok(Listing {
        llvm_ir: ptx.llvm_ir().to_string(),
        optimized_llvm_ir: ptx.optimized_llvm_ir().to_string(),
        ptx: ptx.text().to_string(),
    })
}
