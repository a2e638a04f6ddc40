//! Functions of numbers: roots, exponentials, choices, extrema, and the matrix product.

use std::panic::Location;

use super::context;
use super::element::{Element, Float, Numeric};
use super::operators::{Elementwise, binary};
use super::tile::{DeviceValue, IntoTile, Scalar, Tile, map};
use crate::ir::{BinaryOp, Class, Op, Precision, TernaryOp, UnaryOp};

macro_rules! unary_functions {
    ($($(#[doc = $doc:literal])* $name:ident $Op:ident $Class:ident;)*) => {
        $(
            $(#[doc = $doc])*
            #[track_caller]
            pub fn $name<V: DeviceValue<Element: $Class>>(x: V) -> V {
                map(x, |context, x| context.builder.unary(UnaryOp::$Op, x))
            }
        )*
        unary_functions!(@methods Tile $($(#[doc = $doc])* $name $Op $Class;)*);
        unary_functions!(@methods Scalar $($(#[doc = $doc])* $name $Op $Class;)*);
    };
    (@methods $Kind:ident $($(#[doc = $doc:literal])* $name:ident $Op:ident $Class:ident;)*) => { $(
        impl<T: $Class> $Kind<T> {
            $(#[doc = $doc])*
            #[track_caller]
            pub fn $name(self) -> Self {
                $name(self)
            }
        }
    )* };
}

unary_functions! {
    /// Absolute value. Clears the sign bit of a float; the least integer maps to itself.
    abs Abs Numeric;
    /// Square root, correctly rounded; of a negative number NaN, of -0 -0.
    sqrt Sqrt Float;
    /// Largest integer not above; keeps -0 and infinities.
    floor Floor Float;
    /// Smallest integer not below; keeps the sign of a zero result.
    ceil Ceil Float;
    /// e^x, at most 1 ulp off in `f32`.
    exp Exp Float;
    /// 2^x, at most 1 ulp off in `f32`.
    exp2 Exp2 Float;
    /// Natural logarithm, at most 1 ulp off in `f32`; of zero -inf, of a negative number NaN.
    log Log Float;
    /// Logarithm to base 2, at most 1 ulp off in `f32`; of zero -inf, of a negative number NaN.
    log2 Log2 Float;
    /// 1 / sqrt(x) by two correctly rounded operations; of +-0 +-inf.
    rsqrt Rsqrt Float;
    /// 1 / (1 + e^-x), without loss for very negative x.
    sigmoid Sigmoid Float;
    /// Hyperbolic tangent.
    tanh Tanh Float;
    /// Error function: 2 / sqrt(pi) times the integral of e^(-t^2) from 0 to x.
    erf Erf Float;
}

/// The smaller of two values; NaN if either is NaN; -0 < +0.
#[track_caller]
pub fn minimum<A: Elementwise<B>, B>(a: A, b: B) -> A::Output {
    binary(BinaryOp::Minimum, a, b)
}

/// The larger of two values; NaN if either is NaN; -0 < +0.
#[track_caller]
pub fn maximum<A: Elementwise<B>, B>(a: A, b: B) -> A::Output {
    binary(BinaryOp::Maximum, a, b)
}

/// The smaller of two floats; a NaN operand is ignored; -0 < +0.
#[track_caller]
pub fn minnum<A: Elementwise<B, Output: DeviceValue<Element: Float>>, B>(a: A, b: B) -> A::Output {
    binary(BinaryOp::Minnum, a, b)
}

/// The larger of two floats; a NaN operand is ignored; -0 < +0.
#[track_caller]
pub fn maxnum<A: Elementwise<B, Output: DeviceValue<Element: Float>>, B>(a: A, b: B) -> A::Output {
    binary(BinaryOp::Maxnum, a, b)
}

/// Quotient rounded up, of positive integers on the host: how many tiles of `divisor` cover
/// `dividend`.
pub const fn cdiv(dividend: usize, divisor: usize) -> usize {
    dividend.div_ceil(divisor)
}

/// A condition that chooses: an element at a time for a tile, the whole value for a scalar.
#[diagnostic::on_unimplemented(
    message = "`select` does not choose by `{Self}`",
    note = "it takes a `Tile<bool>` or a `Scalar<bool>`; on host values use `if`"
)]
pub trait Choice<V: DeviceValue> {
    /// The kind of the result.
    type Output: DeviceValue;
    /// The condition in the trace.
    #[doc(hidden)]
    fn condition(self) -> context::Handle;
}

impl<V: DeviceValue> Choice<V> for Tile<bool> {
    type Output = Tile<V::Element>;
    fn condition(self) -> context::Handle {
        self.handle()
    }
}

impl<V: DeviceValue> Choice<V> for Scalar<bool> {
    type Output = V;
    fn condition(self) -> context::Handle {
        self.handle()
    }
}

/// `on_true` where the condition holds, else `on_false`. Both are computed.
#[track_caller]
pub fn select<C, A, B>(condition: C, on_true: A, on_false: B) -> C::Output
where
    A: Elementwise<B>,
    C: Choice<A::Output>,
{
    C::Output::from_handle(context::emit(Location::caller(), |context| {
        let condition = context.value(condition.condition());
        let (on_true, on_false) = on_true.operands(on_false, context);
        let (on_true, on_false) = context.broadcast_pair("select", on_true, on_false);
        let (condition, on_true) = context.broadcast_pair("select", condition, on_true);
        let (condition, on_false) = context.broadcast_pair("select", condition, on_false);
        context.builder.select(condition, on_true, on_false)
    }))
}

/// `a * b + c` with one rounding. Nothing else makes a fused multiply-add.
#[track_caller]
pub fn fma<T: Float>(a: Tile<T>, b: impl IntoTile<T>, c: impl IntoTile<T>) -> Tile<T> {
    map(a, |context, a| {
        let (b, c) = (b.into_value(context), c.into_value(context));
        let (a, b) = context.broadcast_pair("fma", a, b);
        let (a, c) = context.broadcast_pair("fma", a, c);
        let (b, c) = context.broadcast_pair("fma", b, c);
        context.builder.ternary(TernaryOp::Fma, a, b, c)
    })
}

/// `accumulator + a x b` for tiles `[m, k]`, `[k, n]` and `[m, n]`.
///
/// The chain `acc = fma(a[m, k], b[k, n], acc)` over ascending k in the accumulator's type, to
/// which the operands are widened first; a zero result is +0. Tile shapes never change bits.
#[track_caller]
pub fn dot<T: Float, A: Float>(a: Tile<T>, b: Tile<T>, accumulator: Tile<A>) -> Tile<A> {
    map(accumulator, |context, accumulator| {
        let (a, b) = (context.value(a.handle()), context.value(b.handle()));
        if T::DTYPE.bits() > A::DTYPE.bits() {
            let message = format!(
                "`dot` of `{}` needs an accumulator at least as wide, found `{}`",
                T::DTYPE,
                A::DTYPE
            );
            context.builder.error(message);
            return context.builder.poison();
        }
        let (a, b) = (context.cast(a, A::DTYPE), context.cast(b, A::DTYPE));
        context.builder.value(Op::Dot {
            a,
            b,
            accumulator,
            precision: Precision::Ieee,
        })
    })
}

/// How the type orders: floats by the operations that ignore NaN, integers by the plain ones.
pub(crate) fn ordered<T: Element>(greater: bool) -> BinaryOp {
    match (T::DTYPE.class(), greater) {
        (Class::Float, true) => BinaryOp::Maxnum,
        (Class::Float, false) => BinaryOp::Minnum,
        (Class::Bool | Class::Signed | Class::Unsigned, true) => BinaryOp::Maximum,
        (Class::Bool | Class::Signed | Class::Unsigned, false) => BinaryOp::Minimum,
    }
}
