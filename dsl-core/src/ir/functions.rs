//! The tables of functions that are no primitives: one row is one function.
//!
//! The last column of a row names what the function, or the exact function that an approximate one
//! stands for, is, in [`crate::semantics::derived`]. Everything
//! else about functions reads these rows: the text form, the surface, filetests, random programs,
//! the runs over all inputs, the page of ops.

use super::scalar_ops::define_family;

/// Calls `$m!` with one block per family, as
/// [`for_each_scalar_family`](super::scalar_ops::for_each_scalar_family) does.
macro_rules! for_each_function_family {
    ($m:ident) => {
        $m! {
            /// A function of one number, replaced by its definition over primitives before lowering.
            Function Function { x } {
                /// e^x. At most 1 ulp off in `f32`.
                Exp "exp" exp Float function = exponential::EXP;
                /// 2^x. At most 1 ulp off in `f32`.
                Exp2 "exp2" exp2 Float function = exponential::EXP2;
                /// Natural logarithm; of zero -inf, of a negative number NaN. At most 1 ulp off in
                /// `f32`.
                Log "log" log Float function = logarithm::LOG;
                /// log(1 + x), without loss near 0; of -1 -inf, below NaN; keeps -0.
                Log1p "log1p" log1p Float function = logarithm::LOG1P;
                /// Logarithm to base 2; of zero -inf, of a negative number NaN. At most 1 ulp off in
                /// `f32`.
                Log2 "log2" log2 Float function = logarithm::LOG2;
                /// 1 / sqrt(x) by two correctly rounded operations; of +-0 +-inf.
                Rsqrt "rsqrt" rsqrt Float function = root::RSQRT;
                /// 1 / (1 + e^-x), without loss for very negative x. At most 1 ulp off in `f32`.
                Sigmoid "sigmoid" sigmoid Float function = exponential::SIGMOID;
                /// Hyperbolic tangent. At most 1 ulp off in `f32`.
                Tanh "tanh" tanh Float function = exponential::TANH;
                /// Error function: 2 / sqrt(pi) times the integral of e^(-t^2) from 0 to x.
                Erf "erf" erf Float function = error_function::ERF;
            }
            /// A device's own function: deterministic on one device, not promised to equal another.
            Approximate Approximate { x } {
                /// The device's own 2^x.
                Exp2 "approx_exp2" approx_exp2 F32 hidden = exponential::EXP2;
                /// The device's own logarithm to base 2.
                Log2 "approx_log2" approx_log2 F32 hidden = logarithm::LOG2;
                /// The device's own 1 / x.
                Reciprocal "approx_reciprocal" approx_reciprocal F32 hidden = root::RECIPROCAL;
                /// The device's own 1 / x within 1 ulp, where x and that are normal numbers; elsewhere it may
                /// take subnormal ones for zero.
                NormalReciprocal "approx_normal_reciprocal" approx_normal_reciprocal F32 hidden = root::RECIPROCAL;
                /// The device's own 1 / sqrt(x).
                Rsqrt "approx_rsqrt" approx_rsqrt F32 hidden = root::RSQRT;
            }
        }
    };
}
pub(crate) use for_each_function_family;

for_each_function_family!(define_family);
