//! Functions that compiled code calls: rare scalar ops, by their one definition.

use exactile_core::ir::{BinaryOp, DType, TernaryOp, UnaryOp};
use exactile_core::semantics;

/// A scalar op as one number, so that compiled code needs a single entry for all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ScalarCall {
    Unary(UnaryOp, DType),
    Binary(BinaryOp, DType),
    Ternary(TernaryOp, DType),
}

fn position<T: PartialEq>(all: &[T], item: &T) -> i64 {
    let found = all.iter().position(|other| other == item);
    found.expect("broken invariant: tables of all ops are complete") as i64
}

impl ScalarCall {
    /// The number of this call.
    pub(crate) fn code(self) -> i64 {
        let (family, op, dtype) = match self {
            Self::Unary(op, dtype) => (0, position(UnaryOp::ALL, &op), dtype),
            Self::Binary(op, dtype) => (1, position(BinaryOp::ALL, &op), dtype),
            Self::Ternary(op, dtype) => (2, position(TernaryOp::ALL, &op), dtype),
        };
        family | op << 8 | position(DType::ALL, &dtype) << 16
    }

    fn decode(code: i64) -> Option<Self> {
        let op = (code >> 8 & 0xff) as usize;
        let dtype = *DType::ALL.get((code >> 16) as usize)?;
        match code & 0xff {
            0 => UnaryOp::ALL.get(op).map(|&op| Self::Unary(op, dtype)),
            1 => BinaryOp::ALL.get(op).map(|&op| Self::Binary(op, dtype)),
            2 => TernaryOp::ALL.get(op).map(|&op| Self::Ternary(op, dtype)),
            _ => None,
        }
    }
}

/// Evaluates the scalar op `code` on bits.
pub(crate) extern "C" fn scalar_call(code: i64, a: u64, b: u64, c: u64) -> u64 {
    match ScalarCall::decode(code) {
        Some(ScalarCall::Unary(op, dtype)) => semantics::unary(op, dtype, a),
        Some(ScalarCall::Binary(op, dtype)) => semantics::binary(op, dtype, a, b),
        Some(ScalarCall::Ternary(op, dtype)) => semantics::ternary(op, dtype, a, b, c),
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_survive_their_numbers() {
        for &dtype in DType::ALL {
            for &op in UnaryOp::ALL {
                let call = ScalarCall::Unary(op, dtype);
                assert_eq!(ScalarCall::decode(call.code()), Some(call));
            }
            for &op in BinaryOp::ALL {
                let call = ScalarCall::Binary(op, dtype);
                assert_eq!(ScalarCall::decode(call.code()), Some(call));
            }
        }
    }
}
