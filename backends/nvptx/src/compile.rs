//! Lane IR to a kernel on a device, in one step.

use std::sync::Arc;

use exactile_core::verify::LaneFunc;

use crate::codegen::{EmitOptions, emit_with};
use crate::driver::Context;
use crate::error::Result;
use crate::grid::GridMapping;
use crate::kernel::Kernel;

impl Context {
    /// Compiles a kernel for this device, for grids with this mapping.
    pub fn compile(&self, func: &LaneFunc, name: &str, grid: GridMapping) -> Result<Kernel> {
        let options = EmitOptions {
            grid,
            ..EmitOptions::new(self.target()?)
        };
        let mut ptx = emit_with(func, name, options)?;
        ptx.assemble()?;
        self.load(Arc::new(ptx))
    }
}
