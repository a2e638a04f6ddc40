//! Lane IR to PTX through LLVM, and the CUDA driver.
//!
//! `emit` turns a verified lane function into PTX text; it needs no GPU, but the feature `llvm`. [`Driver`] finds the
//! devices at run time: nothing of CUDA is linked, so a program with this crate starts everywhere. Without `llvm`, which
//! is on unless a package says otherwise, kernels are loaded that another program has made: [`Ptx::from_bytes`].

#![warn(missing_docs)]

#[cfg(feature = "llvm")]
mod assemble;
mod buffer;
#[cfg(feature = "llvm")]
mod codegen;
#[cfg(feature = "llvm")]
mod compile;
#[cfg(feature = "llvm")]
mod contained;
mod driver;
mod entry;
mod error;
mod graph;
mod grid;
mod inlined;
mod kernel;
mod launch;
mod library;
mod link;
#[cfg(feature = "llvm")]
mod loops;
#[cfg(feature = "llvm")]
mod memory;
#[cfg(feature = "llvm")]
mod mend;
mod padded;
mod ptx;
mod record;
mod stored;
mod stream;
#[cfg(feature = "llvm")]
mod target;
#[cfg(feature = "llvm")]
mod toolkits;

#[cfg(feature = "llvm")]
pub use assemble::{Assembled, Assembler, assembler, keeps_operands};
pub use buffer::DeviceBuffer;
#[cfg(feature = "llvm")]
pub use codegen::{EmitOptions, emit, emit_with};
#[cfg(feature = "llvm")]
pub use contained::prepare;
pub use driver::{Context, Driver, LEAST_DRIVER};
pub use entry::LaidOut;
pub use error::{Error, Result};
pub use graph::{Graph, GraphRecords, Replay};
pub use grid::GridMapping;
pub use kernel::Kernel;
pub use launch::{ALIKE, FEW, Placed};
pub use ptx::Ptx;
pub use record::Records;
pub use stream::{Event, Pinned, Stream};

/// What this crate was built from: its sources and what is below them. Other ones may make other code, or read it
/// otherwise.
pub const SOURCES: &str = env!("EXACTILE_SOURCES");

/// The LLVM that code is made with. Another one may make other code.
#[cfg(feature = "llvm")]
pub fn generator() -> String {
    let (major, minor, patch) = inkwell::support::get_llvm_version();
    format!("LLVM {major}.{minor}.{patch}")
}
