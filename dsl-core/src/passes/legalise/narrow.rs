//! Narrow floats that a machine has not: their bits from and to those of `f32`, and their signs.

use crate::builder::Builder;
use crate::ir::{BinaryOp, CompareOp, DType, FloatFormat, RawOp, UnaryOp, Value};

const SINGLE_BIAS: i32 = 127;
const SINGLE_MANTISSA: u32 = 23;
const SINGLE_INFINITY: u64 = 0x7f80_0000;

/// Ops on the bits of `f32` with constants.
struct Bits<'a>(&'a mut Builder);

impl Bits<'_> {
    fn constant(&mut self, like: Value, bits: u64) -> Value {
        self.0.bits_like(like, DType::U32, bits)
    }

    fn binary(&mut self, op: BinaryOp, x: Value, bits: u64) -> Value {
        let bits = self.constant(x, bits & DType::U32.mask());
        self.0.binary(op, x, bits)
    }

    /// Shifts by less than the width.
    fn shift(&mut self, op: RawOp, x: Value, amount: u32) -> Value {
        let amount = self.constant(x, u64::from(amount));
        self.0.raw(op, x, amount)
    }

    fn is_above(&mut self, x: Value, limit: u64) -> Value {
        let limit = self.constant(x, limit);
        self.0.compare(CompareOp::Gt, x, limit)
    }
}

/// The bits of the power of two as an `f32`.
const fn power(exponent: i32) -> u64 {
    ((exponent + SINGLE_BIAS) as u64) << SINGLE_MANTISSA
}

/// The `f32` of the value of `x`.
pub(super) fn widen(builder: &mut Builder, x: Value, from: DType, format: &FloatFormat) -> Value {
    let sign_at = format.exponent + format.mantissa;
    let small = builder.bitcast(x, from.unsigned());
    let bits = builder.cast(small, DType::U32);
    let mut it = Bits(builder);
    if format.bias() == SINGLE_BIAS {
        let wide = it.shift(RawOp::Shl, bits, 31 - sign_at);
        return builder.bitcast(wide, DType::F32);
    }
    let sign = it.binary(BinaryOp::And, bits, 1 << sign_at);
    let sign = it.shift(RawOp::Shl, sign, 31 - sign_at);
    let magnitude = it.binary(BinaryOp::And, bits, (1 << sign_at) - 1);
    // The fraction lands in place; scaling mends the exponent's bias, exactly, and makes subnormal
    // numbers normal on the way.
    let placed = it.shift(RawOp::Shl, magnitude, SINGLE_MANTISSA - format.mantissa);
    let unscaled = it.0.bitcast(placed, DType::F32);
    let scale =
        it.0.bits_like(x, DType::F32, power(SINGLE_BIAS - format.bias()));
    let scaled = it.0.binary(BinaryOp::Mul, unscaled, scale);
    let scaled = it.0.bitcast(scaled, DType::U32);
    let special = it.is_above(magnitude, format.greatest());
    let with_exponent = it.binary(BinaryOp::Or, scaled, SINGLE_INFINITY);
    let unsigned = it.0.select(special, with_exponent, scaled);
    let wide = builder.or(unsigned, sign);
    builder.bitcast(wide, DType::F32)
}

/// The number of type `to` nearest to the `f32`, ties to even.
pub(super) fn narrow(builder: &mut Builder, x: Value, to: DType, format: &FloatFormat) -> Value {
    let sign_at = format.exponent + format.mantissa;
    let cut = SINGLE_MANTISSA - format.mantissa;
    let bits = builder.bitcast(x, DType::U32);
    let mut it = Bits(builder);
    let magnitude = it.binary(BinaryOp::And, bits, (1 << 31) - 1);
    let sign = it.shift(RawOp::Shr, bits, 31 - sign_at);
    let sign = it.binary(BinaryOp::And, sign, 1 << sign_at);
    let odd = it.shift(RawOp::Shr, magnitude, cut);
    let odd = it.binary(BinaryOp::And, odd, 1);
    // The exponent's other bias, and just under half of the last kept place.
    let rebias = i64::from(format.bias() - SINGLE_BIAS) << SINGLE_MANTISSA;
    let bias = (rebias + (1 << (cut - 1)) - 1).cast_unsigned();
    let biased = it.binary(BinaryOp::Add, magnitude, bias);
    let biased = it.0.binary(BinaryOp::Add, biased, odd);
    let mut rounded = it.shift(RawOp::Shr, biased, cut);
    if format.bias() != SINGLE_BIAS {
        // Adding a power of two whose last place is the least subnormal number rounds to those.
        let least = format.least_exponent();
        let anchor = power(least - format.mantissa as i32 + SINGLE_MANTISSA as i32);
        let float = it.0.bitcast(magnitude, DType::F32);
        let addend = it.0.bits_like(x, DType::F32, anchor);
        let sum = it.0.binary(BinaryOp::Add, float, addend);
        let sum = it.0.bitcast(sum, DType::U32);
        let subnormal = it.binary(BinaryOp::Sub, sum, anchor);
        let is_normal = it.is_above(magnitude, power(least) - 1);
        rounded = it.0.select(is_normal, rounded, subnormal);
    }
    let number = it.binary(BinaryOp::Minimum, rounded, format.overflow());
    let is_nan = it.is_above(magnitude, SINGLE_INFINITY);
    let nan = it.constant(bits, format.canonical_nan());
    let unsigned = it.0.select(is_nan, nan, number);
    let wide = builder.or(unsigned, sign);
    let small = builder.cast(wide, to.unsigned());
    builder.bitcast(small, to)
}

/// `neg`, or else `abs`, of a float by its bits.
pub(super) fn with_sign(builder: &mut Builder, op: UnaryOp, x: Value, dtype: DType) -> Value {
    let unsigned = dtype.unsigned();
    let bits = builder.bitcast(x, unsigned);
    let below = unsigned.mask() >> 1;
    let changed = match op == UnaryOp::Neg {
        true => {
            let sign = builder.bits_like(bits, unsigned, below + 1);
            builder.xor(bits, sign)
        }
        false => {
            let below = builder.bits_like(bits, unsigned, below);
            builder.and(bits, below)
        }
    };
    builder.bitcast(changed, dtype)
}
