//! The derived functions: each defined once, as instructions over primitives.
//!
//! Both backends and the interpreter compute these instructions, so their bits agree by
//! construction. Nothing here looks up a table or branches. Functions of narrower floats are the `f32`
//! function and one rounding. What a function is - definition, true values, accuracy - is one
//! [`Meaning`], which the function's row names.

mod angle;
pub mod bessel;
mod bessel_coefficients;
mod coefficients;
mod correct;
pub mod directed;
mod error_function;
pub mod evaluate;
mod exponential;
mod formula;
mod gamma;
mod hyperbolic;
mod inverse;
mod logarithm;
mod long_pairs;
mod meaning;
pub mod pairs;
mod power_of_ten;
pub mod remainders;
mod root;
mod rounded;
mod rounding;
mod trigonometric;
mod weight;

pub use evaluate::Definition;
pub use meaning::{Accuracy, accuracy, domains, special_values, values};
use meaning::{Define, approximated};
pub(super) use meaning::{Meaning, meaning};

use crate::builder::Builder;
use crate::ir::{Approximate, DType, Function, Value};
use formula::{Format, Formula};

/// What is known of the argument of a function: it is from `least` to `greatest`, or NaN. It never changes
/// a bit of the result.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Domain {
    /// No number is below.
    pub least: f64,
    /// No number is above.
    pub greatest: f64,
}

impl Domain {
    /// Nothing is known.
    pub const ANYTHING: Self = Self {
        least: f64::NEG_INFINITY,
        greatest: f64::INFINITY,
    };
    /// No positive number: zero of either sign, negative, or NaN.
    pub const NOT_POSITIVE: Self = Self {
        greatest: 0.0,
        ..Self::ANYTHING
    };
    /// From -1/2 to 1/2: what rounding to an integer leaves.
    pub const HALF: Self = Self {
        least: -0.5,
        greatest: 0.5,
    };
    /// From 0 to 1.
    pub const FRACTION: Self = Self {
        least: 0.0,
        greatest: 1.0,
    };

    /// Whether all that is in `other` is in this one.
    pub fn holds(self, other: Self) -> bool {
        self.least <= other.least && other.greatest <= self.greatest
    }
}

/// Appends the definition of `op` at `x`, of any shape, and returns the result.
pub fn define(builder: &mut Builder, op: Function, x: Value, domain: Domain) -> Value {
    match computed(builder, x, meaning(op).within(domain)) {
        Some(result) => result,
        None => builder.function(op, x),
    }
}

/// Appends the exact function that `op` approximates, at `x`, and returns the result.
pub fn define_exact(builder: &mut Builder, op: Approximate, x: Value, domain: Domain) -> Value {
    match computed(builder, x, approximated(op).within(domain)) {
        Some(result) => result,
        None => builder.approximate(op, x),
    }
}

/// Appends `op` at `x` by the device's approximate functions, and returns the result; `None` where
/// they are not good to about 1e-6 of the value, and for `f64`.
pub fn define_approximate(builder: &mut Builder, op: Function, x: Value) -> Option<Value> {
    let compute = builder.ty(x).dtype().map(DType::compute);
    let define = meaning(op).approximate?;
    if compute != Some(DType::F32) {
        return None;
    }
    computed(builder, x, define)
}

/// Appends `op` at `x` in its own bits by the device's approximate functions, and returns the result; `None` where
/// they do not give them.
pub fn define_native(builder: &mut Builder, op: Function, x: Value) -> Option<Value> {
    computed(builder, x, meaning(op).native?)
}

/// Appends a short form of `op` at `x`, an `f32`, for results that are rounded to 8 significant bits, and returns the
/// result; `None` where there is none for the domain. That the bits are those of the definition is for the caller to prove.
pub fn define_rounded(
    builder: &mut Builder,
    op: Function,
    x: Value,
    domain: Domain,
) -> Option<Value> {
    let (wider, define) = meaning(op).rounded?;
    let is_single = builder.ty(x).dtype() == Some(DType::F32);
    match is_single && wider.holds(domain) {
        true => computed(builder, x, define),
        false => None,
    }
}

/// Whether `op` has a form for [`define_rounded`].
pub fn is_rounded(op: Function, domain: Domain) -> bool {
    let form = meaning(op).rounded;
    form.is_some_and(|(wider, _)| wider.holds(domain))
}

/// A formula at `x`, computed in the type for that; `None` if `x` is no float.
fn computed(builder: &mut Builder, x: Value, define: Define) -> Option<Value> {
    let dtype = builder.ty(x).dtype()?;
    let format = Format::of(dtype.compute())?;
    let wide = builder.cast(x, dtype.compute());
    let result = define(&mut Formula::new(builder, wide, format), wide);
    Some(builder.cast(result, dtype))
}
