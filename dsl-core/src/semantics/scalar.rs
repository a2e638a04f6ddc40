//! The meaning of the elementwise families on bits.
//!
//! Arithmetic of narrow floats is the `f32` operation, then one rounding.

use super::cast::cast;
use crate::ir::{BinaryOp, CompareOp, DType, Literal, RawOp, TernaryOp, UnaryOp};

/// `op` applied to one number of `dtype`.
pub fn unary(op: UnaryOp, dtype: DType, x: u64) -> u64 {
    let sign = (dtype.mask() >> 1) + 1;
    match (op, dtype.is_float()) {
        (UnaryOp::Neg, true) => x ^ sign,
        (UnaryOp::Abs, true) => x & !sign,
        (UnaryOp::Neg, false) => x.wrapping_neg() & dtype.mask(),
        (UnaryOp::Abs, false) if dtype.is_signed() && x & sign != 0 => {
            x.wrapping_neg() & dtype.mask()
        }
        (UnaryOp::Abs, false) => x,
        (UnaryOp::Not, _) => !x & dtype.mask(),
        (UnaryOp::Sqrt | UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Trunc | UnaryOp::Round, _) => {
            in_float(
                dtype,
                [x],
                |[x]| single::unary(op, x),
                |[x]| double::unary(op, x),
            )
        }
    }
}

/// `op` applied to two numbers of `dtype`.
pub fn binary(op: BinaryOp, dtype: DType, lhs: u64, rhs: u64) -> u64 {
    if dtype.is_float() {
        return in_float(
            dtype,
            [lhs, rhs],
            |[lhs, rhs]| single::binary(op, lhs, rhs),
            |[lhs, rhs]| double::binary(op, lhs, rhs),
        );
    }
    integer_binary(op, dtype, lhs, rhs)
}

/// `op` applied to two integers of `dtype`; `None` where it is undefined.
pub fn raw(op: RawOp, dtype: DType, lhs: u64, rhs: u64) -> Option<u64> {
    let least = (dtype.mask() >> 1) + 1;
    let overflows = dtype.is_signed() && lhs == least && rhs == dtype.mask();
    let is_defined = match op {
        RawOp::Div | RawOp::Rem => rhs != 0 && !overflows,
        RawOp::Shl | RawOp::Shr => rhs < u64::from(dtype.bits()),
    };
    is_defined.then(|| binary(op.defined(), dtype, lhs, rhs))
}

/// `op` applied to three numbers of `dtype`.
pub fn ternary(op: TernaryOp, dtype: DType, a: u64, b: u64, c: u64) -> u64 {
    let TernaryOp::Fma = op;
    in_float(
        dtype,
        [a, b, c],
        |[a, b, c]| a.mul_add(b, c),
        |[a, b, c]| a.mul_add(b, c),
    )
}

/// `op` applied to two numbers of `dtype`.
pub fn compare(op: CompareOp, dtype: DType, lhs: u64, rhs: u64) -> bool {
    let (lhs, rhs) = (
        Literal::from_bits(dtype, lhs),
        Literal::from_bits(dtype, rhs),
    );
    match (lhs.float(), rhs.float()) {
        // Every float type widens to f64 exactly.
        (Some(lhs), Some(rhs)) => holds(op, &lhs, &rhs),
        (Some(_), None) | (None, Some(_)) | (None, None) => {
            holds(op, &lhs.integer(), &rhs.integer())
        }
    }
}

/// Whether two numbers compare so.
pub(crate) fn holds<T: PartialOrd>(op: CompareOp, lhs: &T, rhs: &T) -> bool {
    match op {
        CompareOp::Eq => lhs == rhs,
        CompareOp::Ne => lhs != rhs,
        CompareOp::Lt => lhs < rhs,
        CompareOp::Le => lhs <= rhs,
        CompareOp::Gt => lhs > rhs,
        CompareOp::Ge => lhs >= rhs,
    }
}

/// Computes in `f64` for `f64` numbers and in `f32` for all others, which round once at the end.
fn in_float<const N: usize>(
    dtype: DType,
    operands: [u64; N],
    single: impl FnOnce([f32; N]) -> f32,
    double: impl FnOnce([f64; N]) -> f64,
) -> u64 {
    if dtype == DType::F64 {
        return double(operands.map(f64::from_bits)).to_bits();
    }
    if dtype == DType::F32 {
        let result = single(operands.map(|bits| f32::from_bits(bits as u32)));
        return u64::from(result.to_bits());
    }
    let widen = |bits| f32::from_bits(cast(dtype, DType::F32, bits) as u32);
    let result = single(operands.map(widen));
    cast(DType::F32, dtype, u64::from(result.to_bits()))
}

/// The float ops in one width.
macro_rules! float_ops {
    ($module:ident, $float:ident) => {
        mod $module {
            use crate::ir::{BinaryOp, UnaryOp};

            pub(super) fn unary(op: UnaryOp, x: $float) -> $float {
                match op {
                    UnaryOp::Sqrt => x.sqrt(),
                    UnaryOp::Floor => x.floor(),
                    UnaryOp::Ceil => x.ceil(),
                    UnaryOp::Trunc => x.trunc(),
                    UnaryOp::Round => x.round_ties_even(),
                    UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Not => {
                        unreachable!("broken invariant: `{}` is not a float op", op.mnemonic())
                    }
                }
            }

            pub(super) fn binary(op: BinaryOp, lhs: $float, rhs: $float) -> $float {
                match op {
                    BinaryOp::Add => lhs + rhs,
                    BinaryOp::Sub => lhs - rhs,
                    BinaryOp::Mul => lhs * rhs,
                    BinaryOp::Div => lhs / rhs,
                    BinaryOp::Minimum | BinaryOp::Maximum if lhs.is_nan() || rhs.is_nan() => {
                        $float::NAN
                    }
                    BinaryOp::Minnum | BinaryOp::Maxnum if lhs.is_nan() => rhs,
                    BinaryOp::Minnum | BinaryOp::Maxnum if rhs.is_nan() => lhs,
                    // Without NaN the total order is the usual one with -0 below +0.
                    BinaryOp::Minimum | BinaryOp::Minnum if lhs.total_cmp(&rhs).is_le() => lhs,
                    BinaryOp::Maximum | BinaryOp::Maxnum if lhs.total_cmp(&rhs).is_ge() => lhs,
                    BinaryOp::Minimum | BinaryOp::Maximum | BinaryOp::Minnum | BinaryOp::Maxnum => {
                        rhs
                    }
                    BinaryOp::Rem
                    | BinaryOp::And
                    | BinaryOp::Or
                    | BinaryOp::Xor
                    | BinaryOp::Shl
                    | BinaryOp::Shr => {
                        unreachable!("broken invariant: `{}` is not a float op", op.mnemonic())
                    }
                }
            }
        }
    };
}

float_ops!(single, f32);
float_ops!(double, f64);

fn integer_binary(op: BinaryOp, dtype: DType, lhs: u64, rhs: u64) -> u64 {
    let mask = dtype.mask();
    let value = |bits| {
        Literal::from_bits(dtype, bits)
            .integer()
            .expect("broken invariant: an integer type")
    };
    let (left, right) = (value(lhs), value(rhs));
    let result = match op {
        BinaryOp::Add => lhs.wrapping_add(rhs),
        BinaryOp::Sub => lhs.wrapping_sub(rhs),
        BinaryOp::Mul => lhs.wrapping_mul(rhs),
        BinaryOp::Div => left
            .checked_div(right)
            .map_or(mask, |quotient| quotient as u64),
        BinaryOp::Rem => left.checked_rem(right).map_or(lhs, |rest| rest as u64),
        BinaryOp::Minimum | BinaryOp::Minnum => left.min(right) as u64,
        BinaryOp::Maximum | BinaryOp::Maxnum => left.max(right) as u64,
        BinaryOp::And => lhs & rhs,
        BinaryOp::Or => lhs | rhs,
        BinaryOp::Xor => lhs ^ rhs,
        BinaryOp::Shl if rhs >= u64::from(dtype.bits()) => 0,
        BinaryOp::Shl => lhs << rhs,
        // The value is sign-extended, so 64 places shift in nothing but sign bits.
        BinaryOp::Shr => (left >> rhs.min(64)) as u64,
    };
    result & mask
}
