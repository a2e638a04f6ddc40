//! Lane IR to CPU machine code through Cranelift: the golden path.
//!
//! [`compile`] translates a verified lane function of a CPU worker (no shuffles, no shared memory)
//! and [`Executable::launch`] runs it over a grid on a thread pool. Vectors become lists of 128-bit
//! registers; what the instruction set lacks is done lane by lane, and what is rare calls the
//! functions of [`exactile_core::semantics`] themselves.

#![warn(missing_docs)]

mod codegen;
mod environment;
mod jit;
mod prefetch;
mod preserving;
mod run;
mod runtime;
#[cfg(test)]
mod tests;

use thiserror::Error;

pub use environment::StandardFloats;
pub use jit::{Executable, clif, compile};
pub use run::Threads;

/// Why a function cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// The function uses what a CPU worker does not have.
    #[error("`{0}` does not run on the CPU")]
    Unsupported(&'static str),
    /// The function is for lanes of so many warps.
    #[error("a function for the lanes of {0} warps does not run on the CPU")]
    Lanes(u32),
    /// Cranelift has no code generator for this machine.
    #[error("no code generator for this machine: {0}")]
    Machine(String),
    /// Cranelift refused the code: a defect of this crate.
    #[error("code generation failed: {0}")]
    Codegen(String),
}
