//! The one meaning of the elementwise ops, as pure functions on bits.
//!
//! A number is a `u64` whose low bits are the number in its [`DType`](crate::ir::DType) and whose
//! other bits are zero, as in [`Literal`](crate::ir::Literal). The interpreter and constant
//! folding call these functions; compiled code must agree with them in every bit, except that the
//! sign and payload of a NaN are open (compare [`canonical`] numbers).

pub mod cast;
pub mod derived;
pub mod dot;
pub mod elementwise;
pub mod enclosure;
pub mod mma;
pub mod oracle;
pub mod order;
pub mod reduction;
pub mod scalar;

pub use cast::{bitcast, canonical, cast};
pub use derived::evaluate::{approximate, function};
pub use elementwise::elementwise;
pub use scalar::{binary, compare, raw, ternary, unary};

#[cfg(test)]
mod tests;
