//! The kernel language, the IR, its meaning and its lowering.
//!
//! No `unsafe`, no I/O, no LLVM, no Cranelift, no CUDA. Rooms use lower floors only; the tidy test
//! lists them.

#![warn(missing_docs)]
#![forbid(unsafe_code)]

pub mod builder;
pub mod diagnostic;
pub mod entity;
pub mod facts;
pub mod interp;
pub mod ir;
pub mod lang;
pub mod launch;
pub mod layout;
pub mod lower;
pub mod passes;
pub mod pipeline;
pub mod random;
pub mod schedule;
pub mod semantics;
pub mod target;
pub mod text;
pub mod verify;

/// This package: its name, its version and a fingerprint of its sources. Other sources may make other code.
pub const SOURCES: &str = env!("EXACTILE_SOURCES");
