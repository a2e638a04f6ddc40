//! Lane IR to PTX through LLVM, and the CUDA driver.
//!
//! [`emit`] turns a verified lane function into PTX text; it needs no GPU. [`Driver`] finds the
//! devices at run time: nothing of CUDA is linked, so a program with this crate starts everywhere.

#![warn(missing_docs)]

mod assemble;
mod codegen;
mod driver;
mod error;
mod kernel;
mod launch;
mod link;
mod memory;
mod ptx;
mod record;
mod stored;
mod stream;
mod target;

pub use assemble::{Assembled, Assembler, assembler, machine_code};
pub use codegen::{EmitOptions, GridMapping, emit, emit_with};
pub use driver::{Context, DeviceBuffer, Driver};
pub use error::{Error, Result};
pub use kernel::Kernel;
pub use ptx::Ptx;
pub use record::Records;
pub use stream::{Event, Stream};
pub use target::LEAST_DRIVER;

/// The code generator: its sources and the LLVM that it runs with. Another one may make other code.
pub fn generator() -> String {
    let (major, minor, patch) = inkwell::support::get_llvm_version();
    format!("{}, LLVM {major}.{minor}.{patch}", env!("EXACTILE_SOURCES"))
}
