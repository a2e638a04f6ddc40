//! Where the elements of a tile live on a GPU: linear layouts over GF(2), and the moves between them.
//!
//! A layout maps the bits of (register, lane, warp) to the bits of the flat row-major index of a
//! tile (arXiv 2505.23819). Vector widths, free reduction levels, shape ops and conversions are all
//! derived from that one map; nothing here knows kinds of layouts. `access` and `contiguity` say what
//! suits accesses of a function; the rest is pure data without IR.

pub mod access;
#[cfg(test)]
mod conversion_tests;
pub mod convert;
pub mod fragment;
pub mod group;
mod index_map;
pub mod reduction;
pub mod scan;
#[cfg(test)]
mod shape_tests;
pub mod shared;
mod shuffle;
pub mod slots;
pub mod sorting;

pub use crate::ir::layout_error::LayoutError;
pub use crate::ir::linear::{self, Holder, LinearLayout, Point};
pub use crate::ir::matrix::{self, BitMatrix, Span};
pub use convert::{
    Conversion, ConversionLimits, LaneSource, SharedAccess, SharedPlan, SharedSide, ShufflePlan,
    ShuffleRound, ThreadMap,
};
