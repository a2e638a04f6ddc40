//! What an elementwise op gives, whichever it is.

use super::{approximate, binary, bitcast, cast, compare, ternary, unary};
use crate::ir::op::Elementwise;
use crate::ir::{DType, Literal, Value, op};

/// The bits of the result, of type `to`, where `at` gives the operands.
pub fn elementwise(op: Elementwise<'_>, to: DType, at: &dyn Fn(Value) -> Literal) -> u64 {
    let bits = |value: Value| at(value).bits;
    match op {
        Elementwise::Unary(op::Unary { op, x }) => unary(*op, at(*x).dtype, bits(*x)),
        Elementwise::Approximate(op::Approximate { op, x }) => {
            approximate(*op, at(*x).dtype, bits(*x))
        }
        Elementwise::Binary(op::Binary { op, lhs, rhs }) => {
            binary(*op, at(*lhs).dtype, bits(*lhs), bits(*rhs))
        }
        Elementwise::Ternary(op::Ternary { op, a, b, c }) => {
            ternary(*op, at(*a).dtype, bits(*a), bits(*b), bits(*c))
        }
        Elementwise::Compare(op::Compare { op, lhs, rhs }) => {
            u64::from(compare(*op, at(*lhs).dtype, bits(*lhs), bits(*rhs)))
        }
        Elementwise::Cast(op::Cast { x }) => cast(at(*x).dtype, to, bits(*x)),
        Elementwise::Bitcast(op::Bitcast { x }) => bitcast(at(*x).dtype, to, bits(*x)),
        Elementwise::Select(op) => bits(if bits(op.condition) != 0 {
            op.on_true
        } else {
            op.on_false
        }),
        Elementwise::InlinePtx(op) => bits(op.meant()),
    }
}
