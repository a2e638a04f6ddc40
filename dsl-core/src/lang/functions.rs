//! Functions made of others: limits, activations, and functions of two numbers.

use super::element::{Float, Numeric, SingleFloat};
use super::elementwise::{Triple, pair};
use super::math::{erf, exp, log1p, maximum, minimum, sigmoid, tanh};
use super::operators::Elementwise;
use super::tile::{DeviceValue, Tile};
use crate::semantics::derived::{pairs, remainders};

/// `x`, but not below `least` and not above `greatest`; keeps NaN. `greatest` wins where it is below `least`.
#[track_caller]
pub fn clamp<X, L, G>(x: X, least: L, greatest: G) -> Triple<X, L, G>
where
    X: Elementwise<L>,
    X::Output: Elementwise<G> + DeviceValue<Element: Numeric>,
    Triple<X, L, G>: DeviceValue<Element: Numeric>,
{
    minimum(maximum(x, least), greatest)
}

/// `x` where that is positive, else 0, exactly; keeps NaN. -0 becomes 0.
#[track_caller]
pub fn relu<V: DeviceValue<Element: SingleFloat>>(x: V) -> V {
    V::of_tile(maximum(x.as_tile(), 0.0))
}

/// `x / (1 + e^-x)`: `x sigmoid(x)` in `f32`, rounded once more to the type of `x`.
///
/// At most 1.6 ulp off from -87 on. Below, the sigmoid is subnormal, and the result up to 53 units of the least number; of
/// -inf NaN.
#[track_caller]
pub fn silu<V: DeviceValue<Element: SingleFloat>>(x: V) -> V {
    let x = x.as_tile().to::<f32>();
    V::of_tile((x * sigmoid(x)).to())
}

/// `log(1 + e^x)`: `max(x, 0) + log1p(e^-|x|)` in `f32`, rounded once more to the type of `x`.
///
/// At most 1.9 ulp off.
#[track_caller]
pub fn softplus<V: DeviceValue<Element: SingleFloat>>(x: V) -> V {
    let x = x.as_tile().to::<f32>();
    V::of_tile((maximum(x, 0.0) + log1p(exp(-x.abs()))).to())
}

/// `x (1 + erf(x / sqrt(2))) / 2` in `f32`, below 0 at most 1e-7 off there, rounded once more to the type of `x`.
///
/// At most 1.8 ulp off from 0 on, and 2.8 from -1 on. Below, the sum with 1 loses what the function has of itself: from -5.55
/// down it is -0. `x * normal_cdf(x)`, which is computed in `f64`, keeps that. Of -inf NaN.
#[track_caller]
pub fn gelu<V: DeviceValue<Element: SingleFloat>>(x: V) -> V {
    let x = x.as_tile().to::<f32>();
    let part = erf(x * std::f64::consts::FRAC_1_SQRT_2) + 1.0;
    V::of_tile((x * 0.5 * part).to())
}

/// `x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2` in `f32`, below 0 at most 1e-7 off there, rounded once more to the type of `x`.
///
/// At most 2 ulp off from 0 on, and 3.4 from -1 on. Below, the sum with 1 loses what the function has of itself: from -5.2
/// down it is -0. `x * sigmoid(2 * sqrt(2 / pi) * (x + 0.044715 * x * x * x))` keeps that. Of -inf NaN.
#[track_caller]
pub fn gelu_tanh<V: DeviceValue<Element: SingleFloat>>(x: V) -> V {
    let x = x.as_tile().to::<f32>();
    let inner = x + x * x * x * 0.044_715;
    let part = tanh(inner * 0.797_884_560_802_865_4) + 1.0;
    V::of_tile((x * 0.5 * part).to())
}

/// `e^x / sum(e^x)` along `axis`, after the greatest element has been taken from each, in `f32` and rounded once more to
/// `T`. A NaN or an infinity above makes all along the axis NaN; elements that are -inf become 0.
///
/// The sum is that of [`Tile::sum`]: no tile size changes it. Elements that do not count are -inf, as
/// `load(..).mask(mask).other(f64::NEG_INFINITY)` gives them.
#[track_caller]
pub fn softmax<T: SingleFloat>(x: Tile<T>, axis: usize) -> Tile<T> {
    let x = x.to::<f32>();
    let e = exp(x - x.max_keep(axis));
    (e / e.sum_keep(axis)).to::<T>()
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
    A: Elementwise<B, Output: DeviceValue<Element: Float>>,
{
    pair("fmod", remainders::fmod, x, y)
}

/// `x - n y` with the integer nearest to `x / y` for `n`, of two the even one, element by element, exactly: C's
/// `remainder`. A zero has the sign of `x`; NaN where `x` is infinite or `y` is zero.
#[track_caller]
pub fn remainder<A, B>(x: A, y: B) -> A::Output
where
    A: Elementwise<B, Output: DeviceValue<Element: Float>>,
{
    pair("remainder", remainders::remainder, x, y)
}
