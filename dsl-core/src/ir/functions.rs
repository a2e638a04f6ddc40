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
                /// 2^(x - 1536) rounded to 8 significant bits, as `bf16` has; below 2^-126 zero. Correctly rounded
                /// for every x from 1024 to 2048; beyond them it is 0 and inf.
                Exp2Weight "exp2_weight" exp2_weight SingleFloat function = weight::EXP2_WEIGHT;
                /// 2^n with n the integer nearest to x, of two the even one; below 2^-126 zero, above 2^127 inf. Exact.
                PowerOfTwo "power_of_two" power_of_two SingleFloat function = weight::POWER_OF_TWO;
                /// 10^x. At most 1 ulp off.
                Exp10 "exp10" exp10 SingleFloat function = power_of_ten::EXP10;
                /// e^x - 1, without loss near 0; keeps -0. At most 1 ulp off.
                Expm1 "expm1" expm1 Float function = exponential::EXPM1;
                /// Natural logarithm; of zero -inf, of a negative number NaN. At most 1 ulp off in
                /// `f32`.
                Log "log" log Float function = logarithm::LOG;
                /// log(1 + x), without loss near 0; of -1 -inf, below NaN; keeps -0.
                Log1p "log1p" log1p Float function = logarithm::LOG1P;
                /// Logarithm to base 2; of zero -inf, of a negative number NaN. At most 1 ulp off in
                /// `f32`.
                Log2 "log2" log2 Float function = logarithm::LOG2;
                /// Logarithm to base 10; of zero -inf, of a negative number NaN. At most 0.83 ulp off.
                Log10 "log10" log10 Float function = logarithm::LOG10;
                /// 1 / sqrt(x) by correctly rounded operations and a step of Newton's iteration; of +-0 +-inf.
                Rsqrt "rsqrt" rsqrt Float function = root::RSQRT;
                /// 1 / (1 + e^-x), without loss for very negative x. At most 1 ulp off in `f32`.
                Sigmoid "sigmoid" sigmoid Float function = exponential::SIGMOID;
                /// Hyperbolic tangent. At most 1 ulp off in `f32`.
                Tanh "tanh" tanh Float function = exponential::TANH;
                /// Error function: 2 / sqrt(pi) times the integral of e^(-t^2) from 0 to x.
                Erf "erf" erf Float function = error_function::ERF;
                /// Hyperbolic sine; keeps -0. At most 1 ulp off.
                Sinh "sinh" sinh SingleFloat function = hyperbolic::SINH;
                /// Hyperbolic cosine. At most 1 ulp off.
                Cosh "cosh" cosh SingleFloat function = hyperbolic::COSH;
                /// Inverse of the hyperbolic sine; keeps -0. At most 0.5001 ulp off, computed in `f64`.
                Asinh "asinh" asinh SingleFloat function = hyperbolic::ASINH;
                /// Inverse of the hyperbolic cosine; below 1 NaN. At most 0.5001 ulp off, computed in `f64`.
                Acosh "acosh" acosh SingleFloat function = hyperbolic::ACOSH;
                /// Inverse of the hyperbolic tangent; keeps -0; of +-1 +-inf, beyond NaN. At most 0.5001 ulp off,
                /// computed in `f64`.
                Atanh "atanh" atanh SingleFloat function = hyperbolic::ATANH;
                /// Inverse of the sine, from -pi/2 to pi/2; beyond +-1 NaN; keeps -0. At most 0.51 ulp off, computed
                /// in `f64`.
                Asin "asin" asin SingleFloat function = inverse::ASIN;
                /// Inverse of the cosine, from 0 to pi; beyond +-1 NaN. At most 0.51 ulp off, computed in `f64`.
                Acos "acos" acos SingleFloat function = inverse::ACOS;
                /// Inverse of the tangent, from -pi/2 to pi/2; keeps -0. At most 0.51 ulp off, computed in `f64`.
                Atan "atan" atan SingleFloat function = inverse::ATAN;
                /// Cube root; keeps -0. At most 0.5001 ulp off, computed in `f64`; of `f64` 0.51.
                Cbrt "cbrt" cbrt Float function = root::CBRT;
                /// The nearest integer, of two the one farther from zero; keeps the sign of a zero result and
                /// infinities. Exact.
                RoundHalfAway "round_half_away" round_half_away Float function = rounding::ROUND_HALF_AWAY;
                /// 1 - erf(x), without loss for great x. At most 0.51 ulp off, computed in `f64`.
                Erfc "erfc" erfc SingleFloat function = error_function::ERFC;
                /// The number whose error function is x; of +-1 +-inf, beyond NaN; keeps -0. At most 0.5003 ulp off,
                /// computed in `f64`.
                Erfinv "erfinv" erfinv SingleFloat function = error_function::ERFINV;
                /// Logarithm of the magnitude of the gamma function; of zero and negative integers inf. At most 1 ulp
                /// off, computed in `f64`.
                Lgamma "lgamma" lgamma SingleFloat function = gamma::LGAMMA;
                /// The gamma function; of +-0 +-inf, of negative integers NaN. At most 0.5001 ulp off, computed in
                /// `f64`.
                Tgamma "tgamma" tgamma SingleFloat function = gamma::TGAMMA;
                /// Bessel function of the first kind, of order 0; of infinities 0. At most 0.51 ulp off, computed in `f64`.
                BesselJ0 "bessel_j0" bessel_j0 SingleFloat function = bessel::J0;
                /// Bessel function of the first kind, of order 1; keeps -0; of infinities 0. At most 0.51 ulp off, computed in
                /// `f64`.
                BesselJ1 "bessel_j1" bessel_j1 SingleFloat function = bessel::J1;
                /// Bessel function of the second kind, of order 0; of zero -inf, of negative numbers NaN. At most 1 ulp off,
                /// computed in `f64`.
                BesselY0 "bessel_y0" bessel_y0 SingleFloat function = bessel::Y0;
                /// Bessel function of the second kind, of order 1; of zero -inf, of negative numbers NaN. At most 1 ulp off,
                /// computed in `f64`.
                BesselY1 "bessel_y1" bessel_y1 SingleFloat function = bessel::Y1;
                /// Modified Bessel function of the first kind, of order 0. At most 0.51 ulp off, computed in `f64`.
                BesselI0 "bessel_i0" bessel_i0 SingleFloat function = bessel::I0;
                /// Modified Bessel function of the first kind, of order 1; keeps -0. At most 0.51 ulp off, computed in `f64`.
                BesselI1 "bessel_i1" bessel_i1 SingleFloat function = bessel::I1;
                /// Sine of an angle in radians; of infinities NaN. At most 1 ulp off for every number.
                Sin "sin" sin Float function = trigonometric::SIN;
                /// Cosine of an angle in radians; of infinities NaN. At most 1 ulp off for every number.
                Cos "cos" cos Float function = trigonometric::COS;
                /// Tangent of an angle in radians; of infinities NaN. At most 1 ulp off for every number.
                Tan "tan" tan Float function = trigonometric::TAN;
                /// e^x.
                /// Correctly rounded in `f32` for every x, computed in `f64`. Narrower floats round that once more.
                CrExp "cr_exp" cr_exp SingleFloat function = correct::EXP;
                /// 2^x.
                /// Correctly rounded in `f32` for every x, computed in `f64`. Narrower floats round that once more.
                CrExp2 "cr_exp2" cr_exp2 SingleFloat function = correct::EXP2;
                /// Natural logarithm; of zero -inf, of a negative number NaN.
                /// Correctly rounded in `f32` for every x, computed in `f64`. Narrower floats round that once more.
                CrLog "cr_log" cr_log SingleFloat function = correct::LOG;
                /// Logarithm to base 2; of zero -inf, of a negative number NaN.
                /// Correctly rounded in `f32` for every x, computed in `f64`. Narrower floats round that once more.
                CrLog2 "cr_log2" cr_log2 SingleFloat function = correct::LOG2;
                /// Sine of an angle in radians; of infinities NaN.
                /// Correctly rounded in `f32` for every x, computed in `f64`. Narrower floats round that once more.
                CrSin "cr_sin" cr_sin SingleFloat function = correct::SIN;
                /// Cosine of an angle in radians; of infinities NaN.
                /// Correctly rounded in `f32` for every x, computed in `f64`. Narrower floats round that once more.
                CrCos "cr_cos" cr_cos SingleFloat function = correct::COS;
                /// Hyperbolic tangent.
                /// Correctly rounded in `f32` for every x, computed in `f64`. Narrower floats round that once more.
                CrTanh "cr_tanh" cr_tanh SingleFloat function = correct::TANH;
                /// Error function.
                /// Correctly rounded in `f32` for every x, computed in `f64`. Narrower floats round that once more.
                CrErf "cr_erf" cr_erf SingleFloat function = correct::ERF;
            }
            /// A device's own function: deterministic on one device, not promised to equal another.
            Approximate Approximate { x } {
                /// The device's own 2^x.
                Exp2 "approx_exp2" approx_exp2 F32 hidden = exponential::EXP2;
                /// The device's own 2^x; zero in place of subnormal numbers.
                NormalExp2 "approx_normal_exp2" approx_normal_exp2 F32 hidden = weight::NORMAL_EXP2;
                /// The device's own logarithm to base 2.
                Log2 "approx_log2" approx_log2 F32 hidden = logarithm::LOG2;
                /// The device's own 1 / x.
                Reciprocal "approx_reciprocal" approx_reciprocal F32 hidden = root::RECIPROCAL;
                /// The device's own 1 / x within 1 ulp, where x and that are normal numbers; elsewhere it may
                /// take subnormal ones for zero.
                NormalReciprocal "approx_normal_reciprocal" approx_normal_reciprocal F32 hidden = root::RECIPROCAL;
                /// The device's own 1 / sqrt(x).
                Rsqrt "approx_rsqrt" approx_rsqrt F32 hidden = root::RSQRT;
                /// The device's own sine, within 2^-20 for angles from -pi to pi; beyond them it loses digits.
                Sin "approx_sin" approx_sin F32 hidden = trigonometric::SIN;
                /// The device's own cosine, within 2^-20 for angles from -pi to pi; beyond them it loses digits.
                Cos "approx_cos" approx_cos F32 hidden = trigonometric::COS;
                /// The device's own hyperbolic tangent, within 2^-11 of the value.
                Tanh "approx_tanh" approx_tanh F32 hidden = exponential::TANH;
            }
        }
    };
}
pub(crate) use for_each_function_family;

for_each_function_family!(define_family);
