//! Conversions of floats that round in a direction: the nearest number, or the one beside it.

use crate::builder::Builder;
use crate::ir::{CompareOp, DType, Value};

/// How a conversion between floats rounds what lies between two numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rounding {
    /// To the nearest, of two to the one whose last bit is 0.
    NearestEven,
    /// To the one of lesser magnitude.
    TowardZero,
    /// To the greater one.
    Up,
    /// To the lesser one.
    Down,
}

/// `x`, a float of any shape, as a float `dtype`. A type without infinities has its greatest number where there
/// is none beyond; NaN stays NaN.
pub fn rounded(builder: &mut Builder, x: Value, dtype: DType, rounding: Rounding) -> Value {
    let nearest = builder.cast(x, dtype);
    let (Some(from), Some(format)) = (builder.ty(x).dtype(), dtype.format()) else {
        return nearest;
    };
    if from == dtype || rounding == Rounding::NearestEven {
        return nearest;
    }
    // Both fit it.
    let wide = match [from, dtype].contains(&DType::F64) {
        true => DType::F64,
        false => DType::F32,
    };
    let [exact, found] = [x, nearest].map(|it| builder.cast(it, wide));
    let integer = dtype.unsigned();
    let bits = builder.bitcast(nearest, integer);
    let sign = builder.bits_like(bits, integer, 1 << (dtype.bits() - 1));
    let one = builder.bits_like(bits, integer, 1);
    // Bits of magnitudes are ordered as the magnitudes.
    let (mut outward, inward) = (builder.add(bits, one), builder.sub(bits, one));
    if !format.has_infinity {
        // Beyond the greatest number is NaN.
        let magnitudes = builder.not(sign);
        let magnitude = builder.and(bits, magnitudes);
        let greatest = builder.bits_like(bits, integer, format.greatest());
        let is_greatest = builder.compare(CompareOp::Eq, magnitude, greatest);
        outward = builder.select(is_greatest, bits, outward);
    }
    let is_negative = builder.compare(CompareOp::Ge, bits, sign);
    let (is_wrong, moved) = match rounding {
        Rounding::NearestEven | Rounding::TowardZero => {
            let [exact, found] = [exact, found].map(|it| builder.abs(it));
            (builder.compare(CompareOp::Gt, found, exact), inward)
        }
        Rounding::Up => {
            let moved = builder.select(is_negative, inward, outward);
            (builder.compare(CompareOp::Lt, found, exact), moved)
        }
        Rounding::Down => {
            let moved = builder.select(is_negative, outward, inward);
            (builder.compare(CompareOp::Gt, found, exact), moved)
        }
    };
    let result = builder.select(is_wrong, moved, bits);
    builder.bitcast(result, dtype)
}
