//! Operators: which values combine, and the comparisons that macros rewrite to.

use std::ops;
use std::panic::Location;

use super::context::{self, Context};
use super::element::{Bits, Element, Float, HostNumber, Int, LiteralOf, Numeric};
use super::tile::{DeviceValue, Scalar, Tile, map};
use crate::ir::{BinaryOp, CompareOp, DType, UnaryOp, Value};
use crate::semantics::derived::remainders;

pub use super::logic::{Circuit, Logic};
pub use super::overflow::Checks;
pub use super::wide::{
    Beside, HostArgument, Number, OfOne, OfTwo, Wide, WideArgument, beside, beside_place,
};

/// Values that an elementwise operation combines.
///
/// Elements have one type; only `i32` mixes with `i64` and widens. Scalars and host numbers combine
/// with everything; tiles combine when their shapes broadcast. Two numbers of the host combine in functions
/// such as `select` and `maximum`: integers, `bool`, and floats as `f32`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` and `{R}` do not combine in a kernel",
    label = "`{Self}` and `{R}` here",
    note = "both sides need the same element type: convert with `.to::<T>()`",
    note = "next to floats write `2.0` instead of `2`, and `N as f64` for a `usize`",
    note = "`&` and `|` go before comparisons: write `(a < b) & c`",
    note = "two numbers of the host are `f32`, or integers of one type of 8 to 64 bits: of others one becomes a device \
            value, such as `scalar::<f64>(1.0)`"
)]
pub trait Elementwise<R> {
    /// The kind of the result of arithmetic.
    type Output: DeviceValue;
    /// Both values in their common element type, not yet in their common shape.
    #[doc(hidden)]
    fn operands(self, right: R, context: &mut Context) -> (Value, Value);
}

/// An integer literal on the left of an operator, made by the macros: its type follows from the
/// other operand.
#[derive(Clone, Copy, Debug)]
pub struct Literal<L>(pub L);

macro_rules! same_element {
    ($($Left:ident $Right:ident $Output:ident;)*) => { $(
        impl<T: Element> Elementwise<$Right<T>> for $Left<T> {
            type Output = $Output<T>;
            fn operands(self, right: $Right<T>, context: &mut Context) -> (Value, Value) {
                (context.value(self.handle()), context.value(right.handle()))
            }
        }
        impl Elementwise<$Right<i64>> for $Left<i32> {
            type Output = $Output<i64>;
            fn operands(self, right: $Right<i64>, context: &mut Context) -> (Value, Value) {
                let (left, right) = (context.value(self.handle()), context.value(right.handle()));
                context.widen(left, right)
            }
        }
        impl Elementwise<$Right<i32>> for $Left<i64> {
            type Output = $Output<i64>;
            fn operands(self, right: $Right<i32>, context: &mut Context) -> (Value, Value) {
                let (left, right) = (context.value(self.handle()), context.value(right.handle()));
                context.widen(left, right)
            }
        }
    )* };
}
same_element! {
    Tile Tile Tile;
    Tile Scalar Tile;
    Scalar Tile Tile;
    Scalar Scalar Scalar;
}

macro_rules! with_literal {
    ($($Kind:ident)*) => { $(
        #[diagnostic::do_not_recommend]
        impl<T: Element, L: HostNumber + LiteralOf<T>> Elementwise<L> for $Kind<T> {
            type Output = $Kind<T>;
            fn operands(self, right: L, context: &mut Context) -> (Value, Value) {
                (context.value(self.handle()), context.literal(right.literal()))
            }
        }
        impl<T: Element, L: HostNumber + LiteralOf<T>> Elementwise<$Kind<T>> for Literal<L> {
            type Output = $Kind<T>;
            fn operands(self, right: $Kind<T>, context: &mut Context) -> (Value, Value) {
                (context.literal(self.0.literal()), context.value(right.handle()))
            }
        }
    )* };
}
with_literal!(Tile Scalar);

macro_rules! host_on_the_left {
    ($($Host:ty: $Class:ident;)*) => { $(
        host_on_the_left!(@kind $Host, $Class, Tile);
        host_on_the_left!(@kind $Host, $Class, Scalar);
    )* };
    (@kind $Host:ty, $Class:ident, $Kind:ident) => {
        impl<T: $Class> Elementwise<$Kind<T>> for $Host {
            type Output = $Kind<T>;
            fn operands(self, right: $Kind<T>, context: &mut Context) -> (Value, Value) {
                (context.literal(LiteralOf::<T>::literal(self)), context.value(right.handle()))
            }
        }
    };
}
// Of the floats one alone, so that `maximum(0.0, x)` has a type at once.
host_on_the_left! { f64: Float; }
macro_rules! truth_on_the_left {
    ($($Kind:ident)*) => { $(
        impl Elementwise<$Kind<bool>> for bool {
            type Output = $Kind<bool>;
            fn operands(self, right: $Kind<bool>, context: &mut Context) -> (Value, Value) {
                (context.literal(LiteralOf::<bool>::literal(self)), context.value(right.handle()))
            }
        }
    )* };
}
truth_on_the_left!(Tile Scalar);
macro_rules! two_of_the_host {
    ($($Host:ty)*) => { $(
        impl Elementwise<$Host> for $Host {
            type Output = Scalar<$Host>;
            fn operands(self, right: $Host, context: &mut Context) -> (Value, Value) {
                let literal = LiteralOf::<$Host>::literal;
                (context.literal(literal(self)), context.literal(literal(right)))
            }
        }
    )* };
}
// Of the floats `f32` alone, so that `select(condition, 1.0, 0.0)` has a type at once.
two_of_the_host!(bool f32 i8 i16 i32 i64 u8 u16 u32 u64);
macro_rules! integers_on_the_left {
    ($($Host:ty)*) => { $(host_on_the_left! { $Host: Int; })* };
}
integers_on_the_left!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize);

/// Combines two values element by element.
#[track_caller]
pub(crate) fn binary<A: Elementwise<B>, B>(op: BinaryOp, left: A, right: B) -> A::Output {
    A::Output::from_handle(context::emit(Location::caller(), |context| {
        let (left, right) = left.operands(right, context);
        let (left, right) = context.broadcast_pair(op.mnemonic(), left, right);
        let dtype = context.ty(left).dtype();
        match op == BinaryOp::Rem && dtype.is_some_and(DType::is_float) {
            true => remainders::fmod(&mut context.builder, left, right),
            false => {
                let result = context.builder.binary(op, left, right);
                context.assert_exact(op, [left, right], result);
                result
            }
        }
    }))
}

macro_rules! arithmetic {
    ($($Trait:ident $method:ident $Assign:ident $assign:ident $Op:ident $Class:ident;)*) => { $(
        arithmetic!(@kind Tile, $Trait $method $Assign $assign $Op $Class);
        arithmetic!(@kind Scalar, $Trait $method $Assign $assign $Op $Class);
        impl<L, R> ops::$Trait<R> for Literal<L>
        where
            Literal<L>: LiteralArithmetic<R>,
        {
            type Output = <Literal<L> as LiteralArithmetic<R>>::Output;
            #[track_caller]
            fn $method(self, right: R) -> Self::Output {
                self.apply(BinaryOp::$Op, right)
            }
        }
    )* };
    (@kind $Kind:ident, $Trait:ident $method:ident $Assign:ident $assign:ident $Op:ident $Class:ident) => {
        impl<T: $Class, R> ops::$Trait<R> for $Kind<T>
        where
            $Kind<T>: Elementwise<R>,
        {
            type Output = <$Kind<T> as Elementwise<R>>::Output;
            #[track_caller]
            fn $method(self, right: R) -> Self::Output {
                binary(BinaryOp::$Op, self, right)
            }
        }
        impl<T: $Class, R> ops::$Assign<R> for $Kind<T>
        where
            $Kind<T>: Elementwise<R, Output: DeviceValue<Element = T>>,
        {
            /// Of a scalar and a tile, the tile is of rank 0.
            #[track_caller]
            fn $assign(&mut self, right: R) {
                *self = Self::of_tile(binary(BinaryOp::$Op, *self, right).as_tile());
            }
        }
    };
}
arithmetic! {
    Add add AddAssign add_assign Add Numeric;
    Sub sub SubAssign sub_assign Sub Numeric;
    Mul mul MulAssign mul_assign Mul Numeric;
    Div div DivAssign div_assign Div Numeric;
    Rem rem RemAssign rem_assign Rem Numeric;
    BitAnd bitand BitAndAssign bitand_assign And Bits;
    BitOr bitor BitOrAssign bitor_assign Or Bits;
    BitXor bitxor BitXorAssign bitxor_assign Xor Bits;
    Shl shl ShlAssign shl_assign Shl Int;
    Shr shr ShrAssign shr_assign Shr Int;
}

macro_rules! host_arithmetic {
    ($($Host:ty: $($Trait:ident $method:ident $Op:ident $Class:ident),*;)*) => { $(
        $(
            host_arithmetic!(@kind $Host, $Trait $method $Op $Class, Tile);
            host_arithmetic!(@kind $Host, $Trait $method $Op $Class, Scalar);
        )*
    )* };
    (@kind $Host:ty, $Trait:ident $method:ident $Op:ident $Class:ident, $Kind:ident) => {
        impl<T: $Class> ops::$Trait<$Kind<T>> for $Host {
            type Output = $Kind<T>;
            #[track_caller]
            fn $method(self, right: $Kind<T>) -> $Kind<T> {
                binary(BinaryOp::$Op, self, right)
            }
        }
    };
}
host_arithmetic! {
    f64: Add add Add Float, Sub sub Sub Float, Mul mul Mul Float, Div div Div Float, Rem rem Rem Float;
}
macro_rules! integer_arithmetic {
    ($($Host:ty)*) => { $(
        host_arithmetic! {
            $Host: Add add Add Int, Sub sub Sub Int, Mul mul Mul Int, Div div Div Int, Rem rem Rem Int,
                BitAnd bitand And Int, BitOr bitor Or Int, BitXor bitxor Xor Int,
                Shl shl Shl Int, Shr shr Shr Int;
        }
    )* };
}
integer_arithmetic!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize);
macro_rules! truth_arithmetic {
    ($($Trait:ident $method:ident $Op:ident $Kind:ident;)*) => { $(
        impl ops::$Trait<$Kind<bool>> for bool {
            type Output = $Kind<bool>;
            #[track_caller]
            fn $method(self, right: $Kind<bool>) -> $Kind<bool> {
                binary(BinaryOp::$Op, self, right)
            }
        }
    )* };
}
truth_arithmetic! {
    BitAnd bitand And Tile;
    BitOr bitor Or Tile;
    BitXor bitxor Xor Tile;
    BitAnd bitand And Scalar;
    BitOr bitor Or Scalar;
    BitXor bitxor Xor Scalar;
}

/// Arithmetic with an integer literal on the left, on the device or on the host.
#[diagnostic::on_unimplemented(
    message = "an integer literal and `{R}` do not combine in a kernel",
    label = "an integer on the left of `{R}`",
    note = "next to floats write `1.0` instead of `1`, and `N as f64` for a `usize`"
)]
pub trait LiteralArithmetic<R> {
    /// The type of the result.
    type Output;
    /// Applies one of the operators that Rust has.
    #[doc(hidden)]
    #[track_caller]
    fn apply(self, op: BinaryOp, right: R) -> Self::Output;
}

macro_rules! literal_arithmetic {
    ($($Kind:ident)*) => { $(
        #[diagnostic::do_not_recommend]
        impl<T: Element, L: HostNumber + LiteralOf<T>> LiteralArithmetic<$Kind<T>> for Literal<L> {
            type Output = $Kind<T>;
            #[track_caller]
            fn apply(self, op: BinaryOp, right: $Kind<T>) -> $Kind<T> {
                binary(op, self, right)
            }
        }
    )* };
}
literal_arithmetic!(Tile Scalar);

macro_rules! host_literal_arithmetic {
    ($($Host:ty)*) => { $(
        impl LiteralArithmetic<$Host> for Literal<$Host> {
            type Output = $Host;
            #[track_caller]
            fn apply(self, op: BinaryOp, right: $Host) -> $Host {
                let left = self.0;
                match op {
                    BinaryOp::Add => left + right,
                    BinaryOp::Sub => left - right,
                    BinaryOp::Mul => left * right,
                    BinaryOp::Div => left / right,
                    BinaryOp::Rem => left % right,
                    BinaryOp::And => left & right,
                    BinaryOp::Or => left | right,
                    BinaryOp::Xor => left ^ right,
                    BinaryOp::Shl => left << right,
                    BinaryOp::Shr => left >> right,
                    BinaryOp::Minimum | BinaryOp::Minnum => left.min(right),
                    BinaryOp::Maximum | BinaryOp::Maxnum => left.max(right),
                }
            }
        }
    )* };
}
host_literal_arithmetic!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize);

macro_rules! signs {
    ($($Kind:ident)*) => { $(
        impl<T: Numeric> ops::Neg for $Kind<T> {
            type Output = Self;
            #[track_caller]
            fn neg(self) -> Self {
                map(self, |context, x| context.builder.unary(UnaryOp::Neg, x))
            }
        }
        impl<T: Bits> ops::Not for $Kind<T> {
            type Output = Self;
            #[track_caller]
            fn not(self) -> Self {
                map(self, |context, x| context.builder.unary(UnaryOp::Not, x))
            }
        }
    )* };
}
signs!(Tile Scalar);

/// Which comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
}

impl Comparison {
    const fn op(self) -> CompareOp {
        match self {
            Self::Less => CompareOp::Lt,
            Self::LessEqual => CompareOp::Le,
            Self::Greater => CompareOp::Gt,
            Self::GreaterEqual => CompareOp::Ge,
            Self::Equal => CompareOp::Eq,
            Self::NotEqual => CompareOp::Ne,
        }
    }

    fn holds<H: PartialOrd>(self, left: &H, right: &H) -> bool {
        match self {
            Self::Less => left < right,
            Self::LessEqual => left <= right,
            Self::Greater => left > right,
            Self::GreaterEqual => left >= right,
            Self::Equal => left == right,
            Self::NotEqual => left != right,
        }
    }
}

/// A comparison in a kernel: of host values a `bool`, else a device value.
#[diagnostic::on_unimplemented(
    message = "`{Self}` and `{R}` do not compare in a kernel",
    label = "no comparison between `{Self}` and `{R}`",
    note = "device values need the same element type: convert with `.to::<T>()`",
    note = "of host values, numbers, `bool`, `char` and `&str` compare; `match` on others"
)]
pub trait Compare<R> {
    /// `bool`, `Scalar<bool>` or `Tile<bool>`.
    type Output;
    /// Compares; comparisons with NaN are false except `!=`.
    fn compare(self, right: R, comparison: Comparison) -> Self::Output;
}

#[track_caller]
fn compare<A: Elementwise<B>, B, O: DeviceValue>(left: A, right: B, comparison: Comparison) -> O {
    let op = comparison.op();
    O::from_handle(context::emit(Location::caller(), |context| {
        let (left, right) = left.operands(right, context);
        let (left, right) = context.broadcast_pair(op.mnemonic(), left, right);
        context.builder.compare(op, left, right)
    }))
}

macro_rules! device_comparison {
    ($($Kind:ident)*) => { $(
        #[diagnostic::do_not_recommend]
        impl<T: Element, R> Compare<R> for $Kind<T>
        where
            $Kind<T>: Elementwise<R>,
        {
            type Output = <<$Kind<T> as Elementwise<R>>::Output as DeviceValue>::With<bool>;
            #[track_caller]
            fn compare(self, right: R, comparison: Comparison) -> Self::Output {
                compare(self, right, comparison)
            }
        }
    )* };
}
device_comparison!(Tile Scalar);

macro_rules! host_comparison {
    ($($Host:ty),*) => { $(
        impl Compare<$Host> for $Host {
            type Output = bool;
            fn compare(self, right: Self, comparison: Comparison) -> bool {
                comparison.holds(&self, &right)
            }
        }
    )* };
}
host_comparison!(
    bool, char, i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize, f32, f64, DType
);

impl<'a> Compare<&'a str> for &'a str {
    type Output = bool;
    fn compare(self, right: &'a str, comparison: Comparison) -> bool {
        comparison.holds(&self, &right)
    }
}

impl<'a, H: PartialOrd> Compare<&'a H> for &'a H {
    type Output = bool;
    fn compare(self, right: &'a H, comparison: Comparison) -> bool {
        comparison.holds(self, right)
    }
}

impl<H: PartialOrd> Compare<Self> for Option<H> {
    type Output = bool;
    fn compare(self, right: Self, comparison: Comparison) -> bool {
        comparison.holds(&self, &right)
    }
}

macro_rules! host_device_comparison {
    ($($Host:ty: $Class:ident;)*) => { $(
        host_device_comparison!(@kind $Host, $Class, Tile);
        host_device_comparison!(@kind $Host, $Class, Scalar);
    )* };
    (@kind $Host:ty, $Class:ident, $Kind:ident) => {
        impl<T: $Class> Compare<$Kind<T>> for $Host {
            type Output = $Kind<bool>;
            #[track_caller]
            fn compare(self, right: $Kind<T>, comparison: Comparison) -> $Kind<bool> {
                compare(Literal(self), right, comparison)
            }
        }
    };
}
host_device_comparison! {
    f32: Float;
    f64: Float;
}
macro_rules! integer_comparison {
    ($($Host:ty)*) => { $(host_device_comparison! { $Host: Int; })* };
}
integer_comparison!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize);
