//! Functions made of others: limits, activations, and functions of two numbers.

use std::panic::Location;

use super::context;
use super::element::{Float, Numeric, SingleFloat};
use super::math::{erf, exp, log1p, maximum, minimum, sigmoid, tanh};
use super::operators::Elementwise;
use super::tile::{DeviceValue, Tile};
use crate::builder::Builder;
use crate::ir::Value;
use crate::semantics::derived::{pairs, remainders};

/// `x`, but not below `least` and not above `greatest`; keeps NaN.
#[track_caller]
pub fn clamp<T: Numeric, L, G>(x: Tile<T>, least: L, greatest: G) -> Tile<T>
where
    Tile<T>: Elementwise<L, Output = Tile<T>> + Elementwise<G, Output = Tile<T>>,
{
    minimum(maximum(x, least), greatest)
}

/// `x` where that is positive, else 0; keeps NaN. -0 becomes 0.
#[track_caller]
pub fn relu<T: SingleFloat>(x: Tile<T>) -> Tile<T> {
    maximum(x, 0.0)
}

/// `x / (1 + e^-x)`: `x sigmoid(x)` in `f32`, rounded once more to `T`.
#[track_caller]
pub fn silu<T: SingleFloat>(x: Tile<T>) -> Tile<T> {
    let x = x.to::<f32>();
    (x * sigmoid(x)).to::<T>()
}

/// `log(1 + e^x)`: `max(x, 0) + log1p(e^-|x|)` in `f32`, rounded once more to `T`.
#[track_caller]
pub fn softplus<T: SingleFloat>(x: Tile<T>) -> Tile<T> {
    let x = x.to::<f32>();
    (maximum(x, 0.0) + log1p(exp(-x.abs()))).to::<T>()
}

/// `x (1 + erf(x / sqrt(2))) / 2` in `f32`, rounded once more to `T`.
#[track_caller]
pub fn gelu<T: SingleFloat>(x: Tile<T>) -> Tile<T> {
    let x = x.to::<f32>();
    let part = erf(x * std::f64::consts::FRAC_1_SQRT_2) + 1.0;
    (x * 0.5 * part).to::<T>()
}

/// `x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2` in `f32`, rounded once more to `T`.
#[track_caller]
pub fn gelu_tanh<T: SingleFloat>(x: Tile<T>) -> Tile<T> {
    let x = x.to::<f32>();
    let inner = x + x * x * x * 0.044_715;
    let part = tanh(inner * 0.797_884_560_802_865_4) + 1.0;
    (x * 0.5 * part).to::<T>()
}

/// A function of two numbers, element by element.
#[track_caller]
fn pair<A: Elementwise<B>, B>(
    name: &str,
    define: fn(&mut Builder, Value, Value) -> Value,
    a: A,
    b: B,
) -> A::Output {
    A::Output::from_handle(context::emit(Location::caller(), |context| {
        let (a, b) = a.operands(b, context);
        let (a, b) = context.broadcast_pair(name, a, b);
        if context.ty(a).is_poison() || context.ty(b).is_poison() {
            return context.builder.poison();
        }
        define(&mut context.builder, a, b)
    }))
}

/// `x^y`, element by element, with the special values of C's `pow`. At most 0.5001 ulp off, and 1 ulp in `f64`.
#[track_caller]
pub fn pow<A, B>(x: A, y: B) -> A::Output
where
    A: Elementwise<B, Output: DeviceValue<Element: Float>>,
{
    pair("pow", pairs::pow, x, y)
}

/// The angle from the positive axis of `x` to the point, from -pi to pi, in radians, with the special values of C's
/// `atan2`. At most 0.5003 ulp off, and 1 ulp in `f64`.
#[track_caller]
pub fn atan2<A, B>(y: A, x: B) -> A::Output
where
    A: Elementwise<B, Output: DeviceValue<Element: Float>>,
{
    pair("atan2", pairs::atan2, y, x)
}

/// `sqrt(x^2 + y^2)`, element by element; infinite where either is. At most 0.5001 ulp off, and
/// 1 ulp in `f64`.
#[track_caller]
pub fn hypot<A, B>(x: A, y: B) -> A::Output
where
    A: Elementwise<B, Output: DeviceValue<Element: Float>>,
{
    pair("hypot", pairs::hypot, x, y)
}

/// The magnitude of `x` with the sign of `y`, element by element; the sign of NaN is positive.
#[track_caller]
pub fn copysign<A, B>(x: A, y: B) -> A::Output
where
    A: Elementwise<B, Output: DeviceValue<Element: Float>>,
{
    pair("copysign", pairs::copysign, x, y)
}

/// The number next to `x` toward `y`, element by element; `y` where they are equal, NaN where either is.
#[track_caller]
pub fn nextafter<A, B>(x: A, y: B) -> A::Output
where
    A: Elementwise<B, Output: DeviceValue<Element: Float>>,
{
    pair("nextafter", pairs::nextafter, x, y)
}

/// `x - n y` with `x / y` rounded toward zero for `n`, element by element, exactly: the result has the sign of `x`. NaN
/// where `x` is infinite or `y` is zero. `x % y` is the same.
#[track_caller]
pub fn fmod<A, B>(x: A, y: B) -> A::Output
where
    A: Elementwise<B, Output: DeviceValue<Element: SingleFloat>>,
{
    pair("fmod", remainders::fmod, x, y)
}

/// `x - n y` with the integer nearest to `x / y` for `n`, of two the even one, element by element, exactly: C's
/// `remainder`. A zero has the sign of `x`; NaN where `x` is infinite or `y` is zero.
#[track_caller]
pub fn remainder<A, B>(x: A, y: B) -> A::Output
where
    A: Elementwise<B, Output: DeviceValue<Element: SingleFloat>>,
{
    pair("remainder", remainders::remainder, x, y)
}
