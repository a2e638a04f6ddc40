//! Conversions in steps that machines have: each rounds once in all, and saturates where it should.

use super::integer::clamp;
use super::narrow;
use crate::builder::Builder;
use crate::ir::{BinaryOp, Class, CompareOp, DType, Literal, Op, UnaryOp, Value, op};
use crate::target::Native;

/// An integer that an `f32` holds; beyond it all round alike to formats of few exponents.
const FAR: i64 = 1 << 20;

/// Whether the machine has the conversion.
pub(super) fn is_legal(from: DType, to: DType, native: &Native) -> bool {
    match (from.class(), to.class()) {
        (Class::Bool | Class::Signed | Class::Unsigned, Class::Signed | Class::Unsigned) => true,
        (_, Class::Bool) => false,
        (Class::Bool, Class::Float) => !to.is_narrow_float(),
        (Class::Signed | Class::Unsigned, Class::Float) => native.from_integers.contains(&to),
        (Class::Float, Class::Signed | Class::Unsigned) => native.to_integers.contains(&(from, to)),
        (Class::Float, Class::Float) => match (from, to) {
            (from, DType::F32) => native.holds(from),
            (DType::F32, to) => native.holds(to),
            (DType::F64, to) => native.from_f64.contains(&to),
            (_, _) => false,
        },
    }
}

/// `x` as a `to`, in steps that the machine has.
pub(super) fn convert(builder: &mut Builder, x: Value, to: DType, native: &Native) -> Value {
    let Some(from) = builder.ty(x).dtype().filter(|&from| from != to) else {
        return x;
    };
    if is_legal(from, to, native) {
        return builder.cast(x, to);
    }
    let through = |builder: &mut Builder, between: DType| {
        let wide = convert(builder, x, between, native);
        convert(builder, wide, to, native)
    };
    match (from.format(), to.format()) {
        (Some(format), _) if to == DType::F32 => return narrow::widen(builder, x, from, format),
        (_, Some(format)) if from == DType::F32 => return narrow::narrow(builder, x, to, format),
        _ => {}
    }
    match (from.class(), to.class()) {
        (_, Class::Bool) => is_nonzero(builder, x, from),
        (Class::Float, Class::Float | Class::Signed | Class::Unsigned)
            if from.is_narrow_float() =>
        {
            through(builder, from.compute())
        }
        (Class::Bool, _) => {
            let shape = builder.ty(x).shape;
            let one = builder.filled(Literal::from_f64(to, 1.0), shape);
            let zero = builder.filled(Literal::from_f64(to, 0.0), shape);
            builder.select(x, one, zero)
        }
        (Class::Float, Class::Float) => {
            let odd = round_to_odd(builder, x);
            convert(builder, odd, to, native)
        }
        (Class::Float, Class::Signed | Class::Unsigned) if to.bits() >= 32 => {
            let is_nan = builder.compare(CompareOp::Ne, x, x);
            let zero = builder.bits_like(x, from, 0);
            let x = builder.select(is_nan, zero, x);
            let ty = builder.ty(x).with_dtype(to);
            builder.declared(Op::RawCast(op::RawCast { x }), ty)
        }
        (Class::Float, Class::Signed | Class::Unsigned) => {
            let wide = convert(builder, x, DType::I32, native);
            let clamped = clamp(builder, wide, range(to));
            builder.cast(clamped, to)
        }
        (Class::Signed | Class::Unsigned, _) => from_integer(builder, (x, from), to, native),
    }
}

/// An integer as a float that the machine does not make of it.
fn from_integer(
    builder: &mut Builder,
    (x, from): (Value, DType),
    to: DType,
    native: &Native,
) -> Value {
    let through = |builder: &mut Builder, x: Value, between: DType| {
        let wide = convert(builder, x, between, native);
        convert(builder, wide, to, native)
    };
    match from.bits() {
        ..=16 => through(builder, x, DType::F32),
        17.. if Literal::from_f64(to, FAR as f64) == Literal::from_f64(to, f64::MAX) => {
            let near = clamp(builder, x, (-FAR, FAR));
            let near = builder.cast(near, DType::I32);
            through(builder, near, DType::F32)
        }
        17..=32 => through(builder, x, DType::F64),
        33.. => {
            let x = sticky(builder, x, from);
            through(builder, x, DType::F64)
        }
    }
}

/// The least and the greatest integer of a type of at most 32 bits.
const fn range(dtype: DType) -> (i64, i64) {
    let greatest = dtype.mask().cast_signed();
    match dtype.is_signed() {
        true => (-(greatest >> 1) - 1, greatest >> 1),
        false => (0, greatest),
    }
}

/// Whether a number is not zero; NaN is not.
fn is_nonzero(builder: &mut Builder, x: Value, dtype: DType) -> Value {
    let (x, dtype) = match dtype.is_narrow_float() {
        false => (x, dtype),
        // Machines compare narrow floats as wider ones, which takes a conversion.
        true => {
            let unsigned = dtype.unsigned();
            let bits = builder.bitcast(x, unsigned);
            let all_but_sign = builder.bits_like(bits, unsigned, unsigned.mask() >> 1);
            (builder.and(bits, all_but_sign), unsigned)
        }
    };
    let zero = builder.bits_like(x, dtype, 0);
    builder.compare(CompareOp::Ne, x, zero)
}

/// An `f64` as the `f32` next to it toward zero, or the one beyond it, whichever has its last bit set;
/// itself where that is one. It rounds as the `f64` does to any format with two bits less.
fn round_to_odd(builder: &mut Builder, x: Value) -> Value {
    let near = builder.cast(x, DType::F32);
    let back = builder.cast(near, DType::F64);
    let is_exact = builder.compare(CompareOp::Eq, back, x);
    let [magnitude, true_magnitude] = [back, x].map(|number| builder.unary(UnaryOp::Abs, number));
    let is_beyond = builder.compare(CompareOp::Gt, magnitude, true_magnitude);
    let beyond = builder.cast(is_beyond, DType::U32);
    let bits = builder.bitcast(near, DType::U32);
    let toward_zero = builder.binary(BinaryOp::Sub, bits, beyond);
    let one = builder.bits_like(x, DType::U32, 1);
    let odd = builder.or(toward_zero, one);
    let bits = builder.select(is_exact, bits, odd);
    builder.bitcast(bits, DType::F32)
}

/// A 64-bit integer that an `f64` holds, and that rounds as `x` does to any format of at most 40
/// significant bits: of those with more than 53 the last 11 become one bit that says whether any is
/// set.
fn sticky(builder: &mut Builder, x: Value, dtype: DType) -> Value {
    const CUT: u32 = 11;
    const EXACT: u64 = 1 << 53;
    let bits = |builder: &mut Builder, bits: u64| builder.bits_like(x, dtype, bits);
    let (zero, low, one) = (
        bits(builder, 0),
        bits(builder, (1 << CUT) - 1),
        bits(builder, 1 << CUT),
    );
    let cut = builder.and(x, low);
    let is_lost = builder.compare(CompareOp::Ne, cut, zero);
    let lost = builder.select(is_lost, one, zero);
    let high = bits(builder, !((1 << CUT) - 1));
    let kept = builder.and(x, high);
    let marked = builder.or(kept, lost);
    let (shifted, limit) = match dtype.is_signed() {
        true => {
            let offset = bits(builder, EXACT);
            let shifted = builder.binary(BinaryOp::Add, x, offset);
            (builder.bitcast(shifted, DType::U64), 2 * EXACT)
        }
        false => (x, EXACT),
    };
    let limit = builder.bits_like(x, DType::U64, limit);
    let is_small = builder.compare(CompareOp::Lt, shifted, limit);
    builder.select(is_small, x, marked)
}
