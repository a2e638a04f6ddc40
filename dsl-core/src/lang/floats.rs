//! The parts of floats: signs, exponents, and which numbers they are.

use super::element::Float;
use super::elementwise::pair;
use super::functions::clamp;
use super::math::{minimum, select};
use super::operators::{Compare, Comparison, Elementwise};
use super::tile::{DeviceValue, IntoTile, Tile, full, map};
use crate::builder::Builder;
use crate::ir::{CompareOp, DType, Number, Value};

/// The exponent of the least normal `f64`.
const LEAST: i64 = -1022;
/// The exponent of the greatest `f64`.
const GREATEST: i64 = 1023;

/// Whether each number is NaN.
#[track_caller]
pub fn is_nan<V: DeviceValue<Element: Float>>(x: V) -> V::With<bool> {
    map(x, |context, x| context.builder.compare(CompareOp::Ne, x, x))
}

/// Whether each number is +inf or -inf; of `F8E4M3`, which has no infinities, none is.
#[track_caller]
pub fn is_infinite<V: DeviceValue<Element: Float>>(x: V) -> V::With<bool> {
    map(x, |context, x| {
        against_infinity(&mut context.builder, x, CompareOp::Eq, CompareOp::Ne)
    })
}

/// Whether each number is neither an infinity nor NaN.
#[track_caller]
pub fn is_finite<V: DeviceValue<Element: Float>>(x: V) -> V::With<bool> {
    map(x, |context, x| {
        against_infinity(&mut context.builder, x, CompareOp::Lt, CompareOp::Eq)
    })
}

/// The magnitude compared with infinity. Of a type without infinities, the other comparison of each number with itself
/// tells NaN from numbers; where NaN is not asked for, no number answers.
fn against_infinity(builder: &mut Builder, x: Value, op: CompareOp, without: CompareOp) -> Value {
    let format = builder.ty(x).dtype().and_then(DType::format);
    if format.is_some_and(|format| format.has_infinity) {
        let magnitude = builder.abs(x);
        let infinity = builder.constant_like(x, f64::INFINITY);
        return builder.compare(op, magnitude, infinity);
    }
    match without {
        CompareOp::Eq => builder.compare(CompareOp::Eq, x, x),
        CompareOp::Ne | CompareOp::Lt | CompareOp::Le | CompareOp::Gt | CompareOp::Ge => {
            builder.bits_like(x, DType::Bool, 0)
        }
    }
}

/// Whether the sign of each number is negative, that of -0 too; the sign of NaN is positive.
#[track_caller]
pub fn sign_bit<V: DeviceValue<Element: Float>>(x: V) -> V::With<bool> {
    map(x, |context, x| {
        let dtype = <V::Element as Number>::DTYPE;
        let builder = &mut context.builder;
        let bits = builder.bitcast(x, dtype.unsigned());
        let sign = builder.bits_like(bits, dtype.unsigned(), 1 << (dtype.bits() - 1));
        builder.compare(CompareOp::Ge, bits, sign)
    })
}

/// `x - y` where `x` is above `y`, else +0, element by element; NaN where either is. C's `fdim`.
#[track_caller]
pub fn fdim<A, B>(x: A, y: B) -> A::Output
where
    A: Elementwise<B, Output: DeviceValue<Element: Float>>,
{
    let define = |builder: &mut Builder, x, y| {
        let difference = builder.sub(x, y);
        let zero = builder.constant_like(x, 0.0);
        let is_not_above = builder.compare(CompareOp::Le, x, y);
        builder.select(is_not_above, zero, difference)
    };
    pair("fdim", define, x, y)
}

/// Each number, but not below 0 and not above 1; NaN and -0 become +0, as CUDA's `saturate` has it.
#[track_caller]
pub fn saturate<V: DeviceValue<Element: Float>>(x: V) -> V {
    let x = x.as_tile();
    let is_positive = x.compare(0.0, Comparison::Greater);
    V::of_tile(select(is_positive, minimum(x, 1.0), 0.0))
}

/// Each number rounded to the 10 bits of fraction of TF32, to the nearest and of two to the one farther from zero, as
/// `cvt.rna.tf32` does and Triton's `round_f32_to_tf32` of a descriptor; beyond the greatest one it is infinite. Products by
/// [`Precision::Hopper`](crate::ir::Precision::Hopper) cut off what an operand has more, which biases them.
#[track_caller]
pub fn round_to_tf32<V: DeviceValue<Element = f32>>(x: V) -> V {
    let x = x.as_tile();
    let bits = (x.bitcast::<u32>() + 0x1000) & 0xffff_e000_u32;
    V::of_tile(select(is_nan(x), x, bits.bitcast::<f32>()))
}

/// 2^n of exponents of normal numbers.
#[track_caller]
fn power_of_two(n: Tile<i64>) -> Tile<f64> {
    ((n + GREATEST) << 52).bitcast::<f64>()
}

/// `x 2^exponent`, rounded once, also to subnormal numbers; keeps zeros, infinities and NaN. The exponents are repeated
/// to the shape of `x`. C's `ldexp` and `scalbn`.
#[track_caller]
pub fn ldexp<V: DeviceValue<Element: Float>>(x: V, exponent: impl IntoTile<i32>) -> V {
    let exponent: Tile<i32> = map(x, |context, x| {
        let exponent = exponent.into_value(context);
        let shape = context.ty(x).shape;
        context.broadcast("ldexp", exponent, shape)
    });
    let mut x = x.as_tile().to::<f64>();
    let mut n = exponent.to::<i64>();
    if <V::Element as Number>::DTYPE == DType::F64 {
        // Steps that leave room for the bits of a number, so that none but the last one rounds to subnormal numbers.
        let none: Tile<i64> = full([0; 0], 0);
        for _ in 0..2 {
            let is_over = n.compare(GREATEST, Comparison::Greater);
            let is_under = n.compare(LEAST, Comparison::Less);
            let step = select(is_over, GREATEST, select(is_under, LEAST + 53, none));
            x *= power_of_two(step);
            n -= step;
        }
    }
    let n = clamp(n, LEAST, GREATEST);
    V::of_tile((x * power_of_two(n)).to())
}

/// The magnitude of each number, and its exponent where it is neither zero nor infinite.
#[track_caller]
fn exponent<V: DeviceValue<Element: Float>>(x: V) -> (Tile<f64>, Tile<i64>) {
    let magnitude = x.as_tile().to::<f64>().abs();
    let mut exponent = (magnitude.bitcast::<i64>() >> 52) - GREATEST;
    if <V::Element as Number>::DTYPE == DType::F64 {
        // Of a subnormal number, the exponent of 2^54 times it.
        let scaled = (magnitude * 18_014_398_509_481_984.0).bitcast::<i64>() >> 52;
        let is_small = exponent.compare(LEAST, Comparison::Less);
        exponent = select(is_small, scaled - (GREATEST + 54), exponent);
    }
    (magnitude, exponent)
}

/// The exponent of each number: `n` where the magnitude is from 2^n to below 2^(n + 1), also of subnormal numbers. Of
/// zero and NaN the least `i32`, of infinities the greatest. Exact. C's `ilogb`.
#[track_caller]
pub fn ilogb<V: DeviceValue<Element: Float>>(x: V) -> V::With<i32> {
    let (magnitude, exponent) = exponent(x);
    let is_infinite = magnitude.compare(f64::INFINITY, Comparison::Equal);
    let of_infinity = select(is_infinite, i32::MAX, exponent.to::<i32>());
    let is_zero = magnitude.compare(0.0, Comparison::Equal);
    let is_undefined = is_zero | magnitude.compare(magnitude, Comparison::NotEqual);
    V::With::<i32>::of_tile(select(is_undefined, i32::MIN, of_infinity))
}

/// [`ilogb`] as a float; of zero -inf, of infinities +inf, of NaN NaN. Exact. C's `logb`.
#[track_caller]
pub fn logb<V: DeviceValue<Element: Float>>(x: V) -> V {
    let (magnitude, exponent) = exponent(x);
    let is_finite = magnitude.compare(f64::INFINITY, Comparison::Less);
    let number = select(is_finite, exponent.to::<f64>(), magnitude);
    let is_zero = magnitude.compare(0.0, Comparison::Equal);
    V::of_tile(select(is_zero, f64::NEG_INFINITY, number).to())
}
