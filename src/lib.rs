//! Kernels as Rust functions: the same bits on CPU and GPU.
//!
//! [`kernel`] turns a function over tiles into a [`Kernel`], which [`Kernel::launch`] runs on a
//! [`Device`] with [`Buffer`]s. [`compare`](compare()) judges results by their bits.

#![warn(missing_docs)]
// A print macro panics where its stream is full or closed.
#![warn(clippy::print_stdout, clippy::print_stderr)]

// The output of `#[kernel]` names this crate, also inside it.
extern crate self as exactile;

mod ahead;
mod apart;
mod arguments;
mod array;
pub mod autotune;
#[cfg(doctest)]
mod book;
mod bound;
mod buffer;
pub mod built;
mod cache;
mod capture;
mod code;
#[cfg(feature = "command")]
pub mod command;
mod compare;
mod compile;
mod compiled;
mod configure;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(not(feature = "cuda"))]
#[path = "cuda_absent.rs"]
mod cuda;
mod device;
mod disk;
mod ending;
mod error;
#[cfg(doctest)]
mod examples;
mod failure;
mod files;
mod foreign;
mod found;
mod graph;
mod grid;
mod hooks;
mod inline_ptx;
mod inspection;
#[doc(hidden)]
pub mod internals;
pub mod interop;
mod kernel;
mod launch;
mod listing;
#[cfg(feature = "nvptx")]
mod made;
#[cfg(not(feature = "nvptx"))]
#[path = "made_absent.rs"]
mod made;
mod memory;
#[cfg_attr(
    not(any(test, feature = "cuda")),
    expect(dead_code, reason = "streams of a GPU alone have an order")
)]
mod order;
mod panics;
mod part;
mod pinned;
mod placement;
pub mod prelude;
mod profile;
mod proofs;
mod replay_arrays;
mod shown;
mod slices;
mod slot;
mod smaller;
mod stream;
mod tensor;
pub mod text_kernel;
mod warm;
#[cfg(feature = "tuner-file")]
mod winners;
#[cfg(not(feature = "tuner-file"))]
#[path = "winners_absent.rs"]
mod winners;

/// What the output of the macros names; not for users.
#[doc(hidden)]
pub use exactile_core::lang::generated as __private;

#[doc(hidden)]
pub use arguments::BoundArguments;
pub use arguments::{Argument, Arguments, InPlace, Optional, Parameters};
pub use array::Array;
pub use buffer::Buffer;
pub use compare::{
    Comparable, Comparison, Mismatch, Tolerance, assert_bits_equal, compare, compare_within,
};
pub use compile::StageTime;
pub use configure::Configure;
#[doc(hidden)]
pub use configure::{Configured, Definition, MetaRow};
pub use device::{Device, DeviceKind};
pub use error::{Error, Result};
pub use exactile_core::ir::floats::*;
pub use exactile_core::ir::{DType, Number};
pub use exactile_core::target::{Bounds, Determinism, Options, Schedule, ScheduleField, Target};
pub use exactile_macros::{Carry, KernelArguments, device, kernel};
pub use graph::Graph;
pub use grid::IntoGrid;
pub use hooks::{LaunchHook, LaunchInfo, LaunchMoment};
pub use inline_ptx::inline_ptx;
pub use inspection::{Inspection, Resources};
pub use kernel::Kernel;
pub use listing::ListingStage;
pub use pinned::Pinned;
#[doc(hidden)]
pub use placement::{HostArguments, OnHost};
pub use placement::{HostArray, HostTensor, LaunchGrid};
pub use profile::{Profile, Span, SpanKind};
pub use replay_arrays::{ArrayList, ReplayArrays};
pub use slices::{BufferSlice, BufferSliceMut};
pub use stream::{Event, Queue, Stream};
pub use tensor::{TensorView, TensorViewMut};

/// Runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
