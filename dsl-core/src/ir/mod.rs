//! The IR: values in SSA form, instructions in single-block regions, three stages.
//!
//! A [`Func`] owns arenas of values, instructions and regions; references such as [`Value`] print
//! as the text form writes them. A region is a list of instructions with parameters; control flow
//! is structured (`for`, `if`, `while` own regions). A value is visible from its definition to the
//! end of its region, nested regions included. A scalar is a tile of rank 0, so `add` is declared
//! once for scalars, tiles (block stage) and short vectors (lane stage).
//!
//! Everything that is true of an op is in its row: [`scalar_ops`] and [`functions`] for the
//! elementwise families, [`ops`] for the rest. The printed text of a function determines its results' bits: flags are
//! resolved into ops and attributes before anything else happens.

pub mod access;
pub mod attr;
pub mod carried;
pub mod dataflow;
pub mod dtype;
pub mod field;
pub mod floats;
pub mod func;
pub mod functions;
pub mod index_map;
pub mod infer;
mod inline_ptx;
pub mod layout_error;
pub mod linear;
pub mod matrix;
pub mod number;
pub mod numbers;
pub mod op;
pub mod operand;
pub mod ops;
pub mod prints;
pub mod round;
pub mod scalar_ops;
mod thread_block;
pub mod types;

pub use access::{Effect, MemoryAccess};
pub use attr::{
    AtomicOp, Axis, Bits, Cache, Direction, Grid, Indices, Literal, MemoryOrder, NumberFormat,
    Order, Precision, RoleRegions, Scope, SortOrder, Stage, program_coordinates, unflatten,
};
pub use carried::Carried;
pub use dtype::{Class, DType, FloatFormat};
pub use field::{Values, quote, unquote};
pub use func::{
    Access, Func, Inst, InstData, Layout, MAX_DEPTH, Parameter, Region, RegionData, Value,
    most_depth,
};
pub use functions::{Approximate, Function};
pub use index_map::IndexMap;
pub use number::Number;
pub use op::{Op, Results, Trait};
pub use scalar_ops::{Accepts, BinaryOp, CompareOp, RawOp, TernaryOp, UnaryOp};
pub use types::{Element, MAX_ELEMENTS, MAX_LEVELS, MAX_RANK, Shape, Space, Type};
