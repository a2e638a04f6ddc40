//! The derived functions: each defined once, as instructions over primitives.
//!
//! Both backends and the interpreter compute these instructions, so their bits agree by
//! construction. Nothing here looks up a table or branches. `f16` and `bf16` functions are the `f32`
//! function and one rounding. How far the results are from the true values is in [`ACCURACY`].

mod accuracy;
mod coefficients;
mod error_function;
mod evaluate;
mod exponential;
mod formula;
mod logarithm;

pub use accuracy::{ACCURACY, Accuracy};
pub use evaluate::{Definition, evaluate};

use crate::builder::Builder;
use crate::ir::{DType, UnaryOp, Value};
use formula::{Format, Formula};

/// What is known of the argument of a function. It never changes a bit of the result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Domain {
    /// Nothing.
    Anything,
    /// It is no positive number: zero of either sign, negative, or NaN.
    NotPositive,
}

/// Appends the definition of `op` at `x`, of any shape, and returns the result.
///
/// An approximate op is expanded into the exact function that it approximates. Primitive ops are
/// appended as they are.
pub fn define(builder: &mut Builder, op: UnaryOp, x: Value, domain: Domain) -> Value {
    let Some(dtype) = builder.ty(x).dtype() else {
        return builder.unary(op, x);
    };
    let format = match dtype {
        DType::F64 => Format::Double,
        DType::F32 => Format::Single,
        DType::F16 | DType::BF16 => {
            let wide = builder.cast(x, DType::F32);
            let result = define(builder, op, wide, domain);
            return builder.cast(result, dtype);
        }
        DType::Bool
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U8
        | DType::U16
        | DType::U32
        | DType::U64 => return builder.unary(op, x),
    };
    let formula = &mut Formula::new(builder, x, format);
    match op {
        UnaryOp::Exp => match domain {
            Domain::Anything => exponential::exp(formula, x),
            Domain::NotPositive => exponential::exp_not_positive(formula, x),
        },
        UnaryOp::Exp2 | UnaryOp::ApproxExp2 => match domain {
            Domain::Anything => exponential::exp2(formula, x),
            Domain::NotPositive => exponential::exp2_not_positive(formula, x),
        },
        UnaryOp::Log => logarithm::log(formula, x),
        UnaryOp::Log2 | UnaryOp::ApproxLog2 => logarithm::log2(formula, x),
        UnaryOp::Sigmoid => exponential::sigmoid(formula, x),
        UnaryOp::Tanh => exponential::tanh(formula, x),
        UnaryOp::Erf => error_function::erf(formula, x),
        UnaryOp::ApproxReciprocal => {
            let one = formula.number(1.0);
            formula.div(one, x)
        }
        UnaryOp::Rsqrt | UnaryOp::ApproxRsqrt => {
            let root = formula.sqrt(x);
            let one = formula.number(1.0);
            formula.div(one, root)
        }
        UnaryOp::Neg
        | UnaryOp::Abs
        | UnaryOp::Not
        | UnaryOp::Sqrt
        | UnaryOp::Floor
        | UnaryOp::Ceil => builder.unary(op, x),
    }
}
