//! Arithmetic that rounds in a direction: floats of at most 32 bits.
//!
//! A result in `f64`, rounded to odd, keeps whether it is exact and on which side of each narrower number it lies, so that
//! rounding it once more is rounding the exact result once (S. Boldo and G. Melquiond, Emulation of a FMA and correctly
//! rounded sums: proved algorithms using rounding to odd, 2008). What that needs of the result is 2 bits more than the
//! type has, and 53 are 29 more than `f32` has.

use super::element::SingleFloat;
use super::elementwise::{Triple, pair, triple};
use super::operators::Elementwise;
use super::tile::{DeviceValue, map};
use crate::builder::Builder;
use crate::ir::{CompareOp, DType, Value};
use crate::semantics::derived::directed::{Rounding, rounded};

/// `x + y`, element by element, rounded once as `rounding` says. NaN and infinities are those of `+`; a zero sum of two
/// numbers that are not both +0 is -0 where sums round down, as IEEE 754 has it. What is too large becomes what
/// [`Tile::to_rounded`](super::Tile::to_rounded) makes of it.
#[track_caller]
pub fn add_rounded<A, B>(x: A, y: B, rounding: Rounding) -> A::Output
where
    A: Elementwise<B, Output: DeviceValue<Element: SingleFloat>>,
{
    let define = |builder: &mut Builder, x, y| in_double(builder, [x, y], rounding, sum);
    pair("add_rounded", define, x, y)
}

/// `x - y`, element by element, rounded once as `rounding` says: [`add_rounded`] of `x` and `-y`.
#[track_caller]
pub fn sub_rounded<A, B>(x: A, y: B, rounding: Rounding) -> A::Output
where
    A: Elementwise<B, Output: DeviceValue<Element: SingleFloat>>,
{
    let define = |builder: &mut Builder, x, y| {
        let y = builder.neg(y);
        in_double(builder, [x, y], rounding, sum)
    };
    pair("sub_rounded", define, x, y)
}

/// `x y`, element by element, rounded once as `rounding` says.
#[track_caller]
pub fn mul_rounded<A, B>(x: A, y: B, rounding: Rounding) -> A::Output
where
    A: Elementwise<B, Output: DeviceValue<Element: SingleFloat>>,
{
    let define = |builder: &mut Builder, x, y| {
        // Of 24 bits each the product has 48.
        in_double(builder, [x, y], rounding, |builder, [x, y], _| {
            builder.mul(x, y)
        })
    };
    pair("mul_rounded", define, x, y)
}

/// `x / y`, element by element, rounded once as `rounding` says; of a number other than zero by zero an infinity.
#[track_caller]
pub fn div_rounded<A, B>(x: A, y: B, rounding: Rounding) -> A::Output
where
    A: Elementwise<B, Output: DeviceValue<Element: SingleFloat>>,
{
    let define = |builder: &mut Builder, x, y| in_double(builder, [x, y], rounding, quotient);
    pair("div_rounded", define, x, y)
}

/// `x y + z`, element by element, rounded once as `rounding` says; zeros are those of [`add_rounded`].
#[track_caller]
pub fn fma_rounded<A, B, C>(x: A, y: B, z: C, rounding: Rounding) -> Triple<A, B, C>
where
    A: Elementwise<B, Output: Elementwise<C, Output: DeviceValue<Element: SingleFloat>>>,
{
    let define = |builder: &mut Builder, operands: [Value; 3]| {
        in_double(
            builder,
            operands,
            rounding,
            |builder, [x, y, z], rounding| {
                let product = builder.mul(x, y);
                sum(builder, [product, z], rounding)
            },
        )
    };
    triple("fma_rounded", define, (x, y, z))
}

/// The square root, rounded once as `rounding` says; of negative numbers NaN, keeps -0.
#[track_caller]
pub fn sqrt_rounded<V: DeviceValue<Element: SingleFloat>>(x: V, rounding: Rounding) -> V {
    map(x, |context, x| {
        in_double(&mut context.builder, [x], rounding, |builder, [x], _| {
            let root = builder.sqrt(x);
            let negated = builder.neg(root);
            let left = builder.fma(negated, root, x);
            let zero = builder.constant_like(left, 0.0);
            let above = builder.compare(CompareOp::Gt, left, zero);
            let below = builder.compare(CompareOp::Lt, left, zero);
            to_odd(builder, root, above, below)
        })
    })
}

/// A function of numbers in `f64`, rounded to the type of the numbers.
fn in_double<const N: usize>(
    builder: &mut Builder,
    operands: [Value; N],
    rounding: Rounding,
    define: impl FnOnce(&mut Builder, [Value; N], Rounding) -> Value,
) -> Value {
    let Some(dtype) = builder.ty(operands[0]).dtype() else {
        return operands[0];
    };
    let wide = operands.map(|it| builder.cast(it, DType::F64));
    let found = define(builder, wide, rounding);
    rounded(builder, found, dtype, rounding)
}

/// The sum and what it has lost (D. E. Knuth, The Art of Computer Programming, volume 2, section 4.2.2), to odd.
fn sum(builder: &mut Builder, [x, y]: [Value; 2], rounding: Rounding) -> Value {
    let sum = builder.add(x, y);
    let of_y = builder.sub(sum, x);
    let of_x = builder.sub(sum, of_y);
    let (from_x, from_y) = (builder.sub(x, of_x), builder.sub(y, of_y));
    let lost = builder.add(from_x, from_y);
    let zero = builder.constant_like(lost, 0.0);
    let above = builder.compare(CompareOp::Gt, lost, zero);
    let below = builder.compare(CompareOp::Lt, lost, zero);
    let found = to_odd(builder, sum, above, below);
    match rounding {
        Rounding::NearestEven | Rounding::TowardZero | Rounding::Up => found,
        Rounding::Down => {
            let [x, y] = [x, y].map(|it| builder.bitcast(it, DType::U64));
            let bits = builder.or(x, y);
            let sign = builder.bits_like(bits, DType::U64, 1 << 63);
            let has_sign = builder.compare(CompareOp::Ge, bits, sign);
            let is_zero = builder.compare(CompareOp::Eq, sum, zero);
            let is_negative = builder.and(is_zero, has_sign);
            let negative = builder.bitcast(sign, DType::F64);
            builder.select(is_negative, negative, found)
        }
    }
}

/// The quotient, to odd: what is left of the dividend says on which side of it the exact one lies.
fn quotient(builder: &mut Builder, [x, y]: [Value; 2], _: Rounding) -> Value {
    let quotient = builder.div(x, y);
    let negated = builder.neg(quotient);
    let left = builder.fma(negated, y, x);
    let zero = builder.constant_like(left, 0.0);
    let above = builder.compare(CompareOp::Gt, left, zero);
    let below = builder.compare(CompareOp::Lt, left, zero);
    let is_negative = builder.compare(CompareOp::Lt, y, zero);
    let more = builder.select(is_negative, below, above);
    let less = builder.select(is_negative, above, below);
    to_odd(builder, quotient, more, less)
}

/// `nearest`, a number in `f64`, or the one beside it with an odd last bit where the exact one is `above` or `below`.
/// Both are false where it is exact, infinite or NaN; of a zero they are.
fn to_odd(builder: &mut Builder, nearest: Value, above: Value, below: Value) -> Value {
    let bits = builder.bitcast(nearest, DType::U64);
    let one = builder.bits_like(bits, DType::U64, 1);
    let zero = builder.bits_like(bits, DType::U64, 0);
    let last = builder.and(bits, one);
    let is_even = builder.compare(CompareOp::Eq, last, zero);
    let is_inexact = builder.or(above, below);
    let moves = builder.and(is_even, is_inexact);
    let sign = builder.bits_like(bits, DType::U64, 1 << 63);
    let is_negative = builder.compare(CompareOp::Ge, bits, sign);
    // Bits of magnitudes are ordered as the magnitudes.
    let is_outward = builder.xor(above, is_negative);
    let (outward, inward) = (builder.add(bits, one), builder.sub(bits, one));
    let moved = builder.select(is_outward, outward, inward);
    let found = builder.select(moves, moved, bits);
    builder.bitcast(found, DType::F64)
}
