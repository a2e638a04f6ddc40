//! Lengths of vectors, their reciprocals, and angles in half turns: floats of at most 32 bits, computed in `f64`.

use super::element::SingleFloat;
use super::elementwise::pair;
use super::functions::copysign;
use super::math::{cbrt, cos, floor, round, select, sin};
use super::operators::{Compare, Comparison, Elementwise};
use super::tile::{DeviceValue, Tile, map};
use crate::builder::Builder;
use crate::ir::{CompareOp, DType, Value};

/// The root of the sum of the squares, or the reciprocal of it: infinite, or zero, where a component is.
fn length(builder: &mut Builder, components: &[Value], is_reciprocal: bool) -> Value {
    let mut parts = Vec::new();
    for &component in components {
        let x = builder.cast(component, DType::F64);
        let magnitude = builder.abs(x);
        let infinity = builder.constant_like(x, f64::INFINITY);
        let is_infinite = builder.compare(CompareOp::Eq, magnitude, infinity);
        parts.push((builder.mul(x, x), is_infinite));
    }
    let add = |builder: &mut Builder, a: (Value, Value), b: (Value, Value)| {
        (builder.add(a.0, b.0), builder.or(a.1, b.1))
    };
    let total = parts.into_iter().reduce(|a, b| add(builder, a, b));
    let (sum, is_infinite) = total.expect("broken invariant: a vector has a component");
    let root = builder.sqrt(sum);
    let (result, limit) = match is_reciprocal {
        true => {
            let one = builder.constant_like(root, 1.0);
            (builder.div(one, root), 0.0)
        }
        false => (root, f64::INFINITY),
    };
    let limit = builder.constant_like(result, limit);
    builder.select(is_infinite, limit, result)
}

/// The components in their common shape to a function of them.
#[track_caller]
fn of_components<V: DeviceValue<Element: SingleFloat>, const N: usize>(
    name: &str,
    components: [V; N],
    is_reciprocal: bool,
) -> V {
    const { assert!(N > 0) };
    V::of_tile(map(components[0], |context, first| {
        let Some(dtype) = context.ty(first).dtype() else {
            return first;
        };
        let mut values = components.map(|it| context.value(it.handle()));
        let mut widest = first;
        for &value in &values {
            (widest, _) = context.broadcast_pair(name, widest, value);
        }
        let shape = context.ty(widest).shape;
        for value in &mut values {
            *value = context.broadcast(name, *value, shape);
        }
        let is_poisoned = |&value: &Value| context.ty(value).is_poison();
        if context.ty(widest).is_poison() || values.iter().any(is_poisoned) {
            return context.builder.poison();
        }
        let found = length(&mut context.builder, &values, is_reciprocal);
        context.builder.cast(found, dtype)
    }))
}

/// The length of the vector of these components, `sqrt(a^2 + b^2 + ..)`, without overflow on the way; infinite where a
/// component is. At most 0.5001 ulp off. CUDA's `norm3d` and `norm4d`, of any number of components.
#[track_caller]
pub fn norm<V: DeviceValue<Element: SingleFloat>, const N: usize>(components: [V; N]) -> V {
    of_components("norm", components, false)
}

/// The reciprocal of [`norm`]: zero where a component is infinite, and infinite where all are zero. At most 0.5001 ulp
/// off. CUDA's `rnorm3d` and `rnorm4d`.
#[track_caller]
pub fn rnorm<V: DeviceValue<Element: SingleFloat>, const N: usize>(components: [V; N]) -> V {
    of_components("rnorm", components, true)
}

/// `1 / sqrt(x^2 + y^2)`, element by element; zero where either is infinite, and infinite where both are zero. At most
/// 0.5001 ulp off.
#[track_caller]
pub fn rhypot<A, B>(x: A, y: B) -> A::Output
where
    A: Elementwise<B, Output: DeviceValue<Element: SingleFloat>>,
{
    let define = |builder: &mut Builder, x, y| {
        let found = length(builder, &[x, y], true);
        match builder.ty(x).dtype() {
            Some(dtype) => builder.cast(found, dtype),
            None => found,
        }
    };
    pair("rhypot", define, x, y)
}

/// `1 / cbrt(x)`; of +-0 +-inf, of +-inf +-0. At most 0.5001 ulp off.
#[track_caller]
pub fn rcbrt<V: DeviceValue<Element: SingleFloat>>(x: V) -> V {
    V::of_tile((1.0 / cbrt(x.as_tile().to::<f64>())).to())
}

/// A number of half turns as the nearest number of quarters, of which those beyond a turn are taken off, and the sine
/// and cosine of what is left, at most an eighth of a turn. No step but the last rounds.
#[track_caller]
fn quarters(x: Tile<f64>) -> (Tile<f64>, Tile<f64>, Tile<f64>) {
    let nearest = round(x * 2.0);
    let angle = (x - nearest * 0.5) * std::f64::consts::PI;
    let quarter = nearest - floor(nearest * 0.25) * 4.0;
    (quarter, sin(angle), cos(angle))
}

/// Sine of `pi x`: of an integer a zero with the sign of `x`, of infinities NaN. At most 0.5001 ulp off for every
/// number.
#[track_caller]
pub fn sin_pi<V: DeviceValue<Element: SingleFloat>>(x: V) -> V {
    let x = x.as_tile().to::<f64>();
    let (quarter, sine, cosine) = quarters(x);
    let is_first = quarter.compare(1.0, Comparison::Equal);
    let is_third = quarter.compare(3.0, Comparison::Equal);
    let found = select(is_first | is_third, cosine, sine);
    let found = select(
        quarter.compare(2.0, Comparison::GreaterEqual),
        -found,
        found,
    );
    let is_zero = found.compare(0.0, Comparison::Equal);
    V::of_tile(select(is_zero, copysign(0.0, x), found).to())
}

/// Cosine of `pi x`: halfway between integers +0, of infinities NaN. At most 0.5001 ulp off for every number.
#[track_caller]
pub fn cos_pi<V: DeviceValue<Element: SingleFloat>>(x: V) -> V {
    let (quarter, sine, cosine) = quarters(x.as_tile().to::<f64>());
    let is_first = quarter.compare(1.0, Comparison::Equal);
    let is_third = quarter.compare(3.0, Comparison::Equal);
    let found = select(is_first | is_third, sine, cosine);
    let is_negative = is_first | quarter.compare(2.0, Comparison::Equal);
    // -0 and 0 are 0.
    V::of_tile((select(is_negative, -found, found) + 0.0).to())
}
