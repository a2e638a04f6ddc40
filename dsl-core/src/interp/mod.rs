//! Interpreters: what a kernel means, executed slowly and with every check.
//!
//! [`block`] runs a block function and is the specification: golden values come from it alone, and
//! it never calls the lowering. [`lane`] runs a lane function, the warps of a thread block in turns,
//! so that code made for a GPU is executed without one. Both work on the host memory that a
//! compiled kernel would work on and stop at the first fault.

mod arena;
pub mod block;
mod clock;
mod copies;
mod elements;
pub mod fault;
mod handed;
pub mod lane;
mod lane_memory;
mod mask;
pub mod memory;
mod phases;
mod race;
mod tile;
mod traffic;

pub use fault::{Fault, FaultKind};
