//! Sums, differences and products of integers that a kernel wants checked: `#[kernel(overflow = "checked")]`.
//!
//! What an operator of the kernel's text gives is as elsewhere, and beside it stands an assertion that it is the exact
//! number. Functions that the kernel calls are as they were written, and where functions of elements are traced, such as
//! combines, nothing is asserted, since they have no effects.

use std::panic::Location;

use super::bits::upper_of_product;
use super::context::{self, Context};
use crate::builder::Builder;
use crate::ir::{BinaryOp, CompareOp, DType, Op, Value, op};

/// What an operator is checked by, as long as it lives: made by the macros.
#[must_use]
pub struct Checks {
    before: bool,
}

impl Checks {
    /// The operators that follow are checked.
    #[track_caller]
    pub fn begin() -> Self {
        Self {
            before: set(true).unwrap_or(false),
        }
    }
}

impl Drop for Checks {
    fn drop(&mut self) {
        set(self.before);
    }
}

#[track_caller]
fn set(checks: bool) -> Option<bool> {
    context::with(Location::caller(), |context| {
        std::mem::replace(&mut context.checks_overflow, checks)
    })
}

impl Context {
    /// Asserts that `result` is the exact one of these integers, where a kernel asks for it.
    pub(super) fn assert_exact(&mut self, op: BinaryOp, operands: [Value; 2], result: Value) {
        let dtype = self.ty(result).dtype().filter(|dtype| dtype.is_integer());
        let word = match op {
            BinaryOp::Add => "sum",
            BinaryOp::Sub => "difference",
            BinaryOp::Mul => "product",
            BinaryOp::Div | BinaryOp::Rem | BinaryOp::Minimum | BinaryOp::Maximum => return,
            BinaryOp::Minnum | BinaryOp::Maxnum | BinaryOp::And | BinaryOp::Or => return,
            BinaryOp::Xor | BinaryOp::Shl | BinaryOp::Shr => return,
        };
        let Some(dtype) = dtype.filter(|_| self.checks_overflow && self.pure_depth == 0) else {
            return;
        };
        let condition = match dtype.bits() == 64 {
            true => is_exact(&mut self.builder, op, dtype, operands, result),
            false => {
                // Of 64 bits, products of unsigned numbers too: what does not fit differs.
                let [left, right] = operands.map(|it| self.builder.cast(it, DType::I64));
                let wide = self.builder.binary(op, left, right);
                let found = self.builder.cast(result, DType::I64);
                self.builder.compare(CompareOp::Eq, wide, found)
            }
        };
        let message = format!("a {word} of `{dtype}` overflows");
        let assert = Op::Assert(op::Assert { condition, message });
        self.builder.emit(assert, &[]);
    }
}

/// Whether a result of 64 bits is exact.
fn is_exact(
    builder: &mut Builder,
    op: BinaryOp,
    dtype: DType,
    [left, right]: [Value; 2],
    result: Value,
) -> Value {
    if op == BinaryOp::Mul {
        let upper = upper_of_product(builder, left, right);
        let expected = match dtype.is_signed() {
            true => {
                let last = builder.bits_like(result, dtype, 63);
                builder.shr(result, last)
            }
            false => builder.bits_like(result, dtype, 0),
        };
        return builder.compare(CompareOp::Eq, upper, expected);
    }
    if !dtype.is_signed() {
        return match op == BinaryOp::Add {
            true => builder.compare(CompareOp::Ge, result, left),
            false => builder.compare(CompareOp::Ge, left, right),
        };
    }
    // A sum has another sign than both numbers, a difference another one than its first, which differs from the second.
    let one = builder.xor(left, result);
    let other = match op == BinaryOp::Add {
        true => builder.xor(right, result),
        false => builder.xor(left, right),
    };
    let signs = builder.and(one, other);
    let zero = builder.bits_like(result, dtype, 0);
    builder.compare(CompareOp::Ge, signs, zero)
}
