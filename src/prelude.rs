//! What a file with kernels imports: `use exactile::prelude::*;`.

pub use crate::autotune::Tune;
pub use crate::{
    Buffer, Carry, Configure, Device, InPlace, KernelArguments, Optional, device, inline_ptx,
    kernel,
};
pub use exactile_core::ir::floats::*;
pub use exactile_core::lang::prelude::*;
