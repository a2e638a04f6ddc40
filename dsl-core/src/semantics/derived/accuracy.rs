//! How far the derived functions are from the true values: measured, and checked by tests.

use crate::ir::{DType, UnaryOp};

/// The greatest error of a derived function.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Accuracy {
    /// The function.
    pub op: UnaryOp,
    /// The data type.
    pub dtype: DType,
    /// The greatest error found, in units in the last place of the true value.
    pub max_ulp: f64,
    /// The arguments that were tried.
    pub domain: &'static str,
}

const EVERY: &str = "every bit pattern";
const SAMPLED: &str = "2 million arguments";

const fn row(op: UnaryOp, dtype: DType, max_ulp: f64, domain: &'static str) -> Accuracy {
    Accuracy {
        op,
        dtype,
        max_ulp,
        domain,
    }
}

/// One row for each function and data type.
pub const ACCURACY: &[Accuracy] = &[
    row(UnaryOp::Exp, DType::F16, 0.5002, EVERY),
    row(UnaryOp::Exp, DType::BF16, 0.5002, EVERY),
    row(UnaryOp::Exp, DType::F32, 0.8914, EVERY),
    row(UnaryOp::Exp, DType::F64, 1.0, SAMPLED),
    row(UnaryOp::Exp2, DType::F16, 0.5002, EVERY),
    row(UnaryOp::Exp2, DType::BF16, 0.5002, EVERY),
    row(UnaryOp::Exp2, DType::F32, 0.8785, EVERY),
    row(UnaryOp::Exp2, DType::F64, 1.0, SAMPLED),
    row(UnaryOp::Log, DType::F16, 0.5002, EVERY),
    row(UnaryOp::Log, DType::BF16, 0.5002, EVERY),
    row(UnaryOp::Log, DType::F32, 0.8823, EVERY),
    row(UnaryOp::Log, DType::F64, 0.7915, SAMPLED),
    row(UnaryOp::Log2, DType::F16, 0.5002, EVERY),
    row(UnaryOp::Log2, DType::BF16, 0.5002, EVERY),
    row(UnaryOp::Log2, DType::F32, 0.9632, EVERY),
    row(UnaryOp::Log2, DType::F64, 1.1676, SAMPLED),
    row(UnaryOp::Rsqrt, DType::F16, 0.5002, EVERY),
    row(UnaryOp::Rsqrt, DType::BF16, 0.5002, EVERY),
    row(UnaryOp::Rsqrt, DType::F32, 1.4904, EVERY),
    row(UnaryOp::Rsqrt, DType::F64, 1.4807, SAMPLED),
    row(UnaryOp::Sigmoid, DType::F16, 0.5002, EVERY),
    row(UnaryOp::Sigmoid, DType::BF16, 0.5002, EVERY),
    row(UnaryOp::Sigmoid, DType::F32, 0.863, EVERY),
    row(UnaryOp::Sigmoid, DType::F64, 1.0, SAMPLED),
    row(UnaryOp::Tanh, DType::F16, 0.5002, EVERY),
    row(UnaryOp::Tanh, DType::BF16, 0.5002, EVERY),
    row(UnaryOp::Tanh, DType::F32, 0.8912, EVERY),
    row(UnaryOp::Tanh, DType::F64, 0.9775, SAMPLED),
    row(UnaryOp::Erf, DType::F16, 0.5002, EVERY),
    row(UnaryOp::Erf, DType::BF16, 0.5002, EVERY),
    row(UnaryOp::Erf, DType::F32, 1.0851, EVERY),
    row(UnaryOp::Erf, DType::F64, 0.9499, SAMPLED),
];
