//! The text form of the IR: one syntax for all ops, printed and parsed per kind of field.
//!
//! ```text
//! func @scale block (%0 x: ptr<f32>, %1 y: ptr<f32> write, %2 n: i64 divisor=16) {
//!   %3 = arange start=0, end=8 : tile<8xi64>
//!   %4 = load %0, %3 : tile<8xf32>
//!   %5 = constant value=f32(0x1p1) : tile<8xf32>
//!   %6 = mul %4, %5 : tile<8xf32>
//!   store %1, %3, %6
//! }
//! ```
//! Operands are positional, everything else is `name=value`, regions stand in braces, result types
//! after `:`. `;` starts a comment. Names of values are free when read and `%0`, `%1`, .. when
//! printed, so equal functions print equal text. A tile of the schedule stage names its layout, as in
//! `tile<8xf32, #l0>`; the body begins with what each layout is.

mod layouts;
mod lexer;
pub mod number;
mod parser;
mod printer;
mod render;
#[cfg(test)]
mod tests;

pub(crate) use layouts::written as layout_text;
pub use parser::parse;
pub use render::render;
