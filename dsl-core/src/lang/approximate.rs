//! Functions by a device's approximate instructions, for those who ask for them by name.
//!
//! They are good to about 1e-6 of the value, repeat their bits on one device, and differ between devices; a CPU computes the
//! exact function. `Determinism::Exact`, the default, refuses them with their line; from
//! `Determinism::ScheduleInvariant` down they are allowed.
//!
//! ```
//! use exactile_core::lang::prelude::*;
//!
//! fn weights(scores: Tile<f32>) -> Tile<f32> {
//!     approx_exp(scores - scores.max(0))
//! }
//! ```

use super::element::SingleFloat;
use super::tile::{DeviceValue, map};
use crate::builder::Builder;
use crate::ir::{Approximate, DType, Function, Value};
use crate::semantics::derived::define_approximate;

macro_rules! approximations {
    ($($(#[doc = $doc:literal])* $name:ident = $Op:ident;)*) => { $(
        $(#[doc = $doc])*
        #[track_caller]
        pub fn $name<V: DeviceValue<Element: SingleFloat>>(x: V) -> V {
            map(x, |context, x| of_function(&mut context.builder, Function::$Op, x))
        }
    )* };
}

approximations! {
    /// e^x, by the device's power of two.
    approx_exp = Exp;
    /// 2^x, by the device's instruction.
    approx_exp2 = Exp2;
    /// Natural logarithm, by the device's logarithm to base 2; of zero -inf, of a negative number NaN.
    approx_log = Log;
    /// Logarithm to base 2, by the device's instruction; of zero -inf, of a negative number NaN.
    approx_log2 = Log2;
    /// 1 / sqrt(x), by the device's instruction.
    approx_rsqrt = Rsqrt;
    /// 1 / (1 + e^-x), by the device's power of two and reciprocal.
    approx_sigmoid = Sigmoid;
}

/// 1 / x, by the device's instruction.
#[track_caller]
pub fn approx_reciprocal<V: DeviceValue<Element: SingleFloat>>(x: V) -> V {
    map(x, |context, x| {
        let dtype = context.ty(x).dtype();
        let wide = context.builder.cast(x, DType::F32);
        let result = context.builder.approximate(Approximate::Reciprocal, wide);
        context.builder.cast(result, dtype.unwrap_or(DType::F32))
    })
}

/// The approximation of `op` at `x`, of a float of at most 32 bits. A value that poisons the trace stays one.
fn of_function(builder: &mut Builder, op: Function, x: Value) -> Value {
    match define_approximate(builder, op, x) {
        Some(result) => result,
        None => builder.function(op, x),
    }
}
