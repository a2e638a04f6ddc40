//! Functions by a device's approximate instructions, for those who ask for them by name.
//!
//! They are good to about 1e-6 of the value unless their documentation says otherwise, repeat their bits on one device, and
//! differ between devices; a CPU computes the exact functions of which they are made. `Determinism::Exact`, the default,
//! refuses them with their line; from `Determinism::ScheduleInvariant` down they are allowed.
//!
//! ```
//! use exactile_core::lang::prelude::*;
//!
//! fn weights(scores: Tile<f32>) -> Tile<f32> {
//!     approx_exp(scores - scores.max(0))
//! }
//! ```

use super::element::SingleFloat;
use super::elementwise::pair;
use super::operators::Elementwise;
use super::tile::{DeviceValue, map};
use crate::builder::Builder;
use crate::ir::{Approximate, DType, Function, Value};
use crate::semantics::derived::define_approximate;

macro_rules! approximations {
    ($($(#[doc = $doc:literal])* $name:ident = $define:expr;)*) => { $(
        $(#[doc = $doc])*
        #[track_caller]
        pub fn $name<V: DeviceValue<Element: SingleFloat>>(x: V) -> V {
            map(x, |context, x| $define(&mut context.builder, x))
        }
    )* };
}

approximations! {
    /// e^x, by the device's power of two.
    approx_exp = function(Function::Exp);
    /// 2^x, by the device's instruction.
    approx_exp2 = function(Function::Exp2);
    /// 10^x, by the device's power of two.
    approx_exp10 = function(Function::Exp10);
    /// Natural logarithm, by the device's logarithm to base 2; of zero -inf, of a negative number NaN.
    approx_log = function(Function::Log);
    /// Logarithm to base 2, by the device's instruction; of zero -inf, of a negative number NaN.
    approx_log2 = function(Function::Log2);
    /// Logarithm to base 10, by the device's logarithm to base 2; of zero -inf, of a negative number NaN.
    approx_log10 = function(Function::Log10);
    /// 1 / sqrt(x), by the device's instruction.
    approx_rsqrt = function(Function::Rsqrt);
    /// 1 / (1 + e^-x), by the device's power of two and reciprocal.
    approx_sigmoid = function(Function::Sigmoid);
    /// 1 / x, by the device's instruction.
    approx_reciprocal = instruction(Approximate::Reciprocal);
    /// Sine of an angle in radians, by the device's instruction: within 2^-20 for angles from -pi to pi, beyond them it
    /// loses digits.
    approx_sin = instruction(Approximate::Sin);
    /// Cosine of an angle in radians, by the device's instruction: within 2^-20 for angles from -pi to pi, beyond them it
    /// loses digits.
    approx_cos = instruction(Approximate::Cos);
    /// Tangent of an angle in radians, as [`approx_sin`] by [`approx_cos`]: as far off as they are.
    approx_tan = tangent;
    /// Hyperbolic tangent, by the device's instruction: within 2^-11 of the value.
    approx_tanh = instruction(Approximate::Tanh);
}

/// `x^y` as `2^(y log2 x)`, by the device's instructions: about 1e-7 of the value for each unit of the exponent. NaN where
/// `x` is negative and where both are zero.
#[track_caller]
pub fn approx_pow<A, B>(x: A, y: B) -> A::Output
where
    A: Elementwise<B, Output: DeviceValue<Element: SingleFloat>>,
{
    pair("approx_pow", of_two(power), x, y)
}

/// `x / y` as `x` times the device's reciprocal: digits are lost where that is below 2^-126, and where it is infinite, of `y`
/// up to 2^-128, so is the result, or NaN where `x` is zero.
#[track_caller]
pub fn approx_divide<A, B>(x: A, y: B) -> A::Output
where
    A: Elementwise<B, Output: DeviceValue<Element: SingleFloat>>,
{
    pair("approx_divide", of_two(quotient), x, y)
}

/// The approximation of `op`, of a float of at most 32 bits. A value that poisons the trace stays one.
fn function(op: Function) -> impl Fn(&mut Builder, Value) -> Value {
    move |builder, x| match define_approximate(builder, op, x) {
        Some(result) => result,
        None => builder.function(op, x),
    }
}

/// What the device's instruction gives, of a float of at most 32 bits.
fn instruction(op: Approximate) -> impl Fn(&mut Builder, Value) -> Value {
    move |builder, x| of_singles(builder, [x], |builder, [x]| builder.approximate(op, x))
}

fn tangent(builder: &mut Builder, x: Value) -> Value {
    of_singles(builder, [x], |builder, [x]| {
        let sine = builder.approximate(Approximate::Sin, x);
        let cosine = builder.approximate(Approximate::Cos, x);
        quotient(builder, [sine, cosine])
    })
}

fn power(builder: &mut Builder, [x, y]: [Value; 2]) -> Value {
    let logarithm = builder.approximate(Approximate::Log2, x);
    let exponent = builder.mul(y, logarithm);
    builder.approximate(Approximate::Exp2, exponent)
}

fn quotient(builder: &mut Builder, [x, y]: [Value; 2]) -> Value {
    let reciprocal = builder.approximate(Approximate::Reciprocal, y);
    builder.mul(x, reciprocal)
}

/// A function of two `f32`, for two floats of at most 32 bits and one type.
fn of_two(
    define: fn(&mut Builder, [Value; 2]) -> Value,
) -> impl Fn(&mut Builder, Value, Value) -> Value {
    move |builder, x, y| of_singles(builder, [x, y], define)
}

/// `define` of operands as `f32`, rounded to their type.
fn of_singles<const N: usize>(
    builder: &mut Builder,
    operands: [Value; N],
    define: impl Fn(&mut Builder, [Value; N]) -> Value,
) -> Value {
    let dtype = builder.ty(operands[0]).dtype().unwrap_or(DType::F32);
    let wide = operands.map(|it| builder.cast(it, DType::F32));
    let result = define(builder, wide);
    builder.cast(result, dtype)
}
