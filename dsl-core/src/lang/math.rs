//! Functions of numbers: roots, exponentials, choices, extrema, and the matrix product.
#![cfg_attr(not(doctest), doc = include_str!("examples/math.md"))]

use std::panic::Location;

use super::context::{self, Context};
use super::element::{Element, Float, Int, Numeric, SingleFloat};
use super::elementwise::{pair, triple};
use super::operators::{Elementwise, binary};
use super::tile::{DeviceValue, Scalar, Tile, map};
use crate::builder::Builder;
use crate::diagnostic::Diagnostic;
use crate::ir::floats::{F8E4M3, F8E5M2};
use crate::ir::functions::for_each_function_family;
use crate::ir::scalar_ops::for_each_scalar_family;
use crate::ir::{BinaryOp, Class, CompareOp, DType, Op, Precision, Shape, Value, op};

/// The functions and methods of the rows that say so, with the rows' names and documentation.
macro_rules! surface {
    ($($(#[doc = $family_doc:literal])* $Family:ident $Variant:ident $fields:tt {
        $($(#[doc = $doc:literal])* $Op:ident $mnemonic:literal $method:ident $accepts:ident $surface:ident
            $(= $($meaning:ident)::+)?;)*
    })*) => {
        $($(surface! { @$surface $Variant $fields [$(#[doc = $doc])*] $Op $method $accepts })*)*
    };
    (@operator $($row:tt)*) => {};
    (@hidden $($row:tt)*) => {};
    (@function $Variant:ident { x } [$(#[doc = $doc:literal])*] $Op:ident $method:ident $accepts:ident) => {
        $(#[doc = $doc])*
        #[track_caller]
        pub fn $method<V: DeviceValue<Element: $accepts>>(x: V) -> V {
            map(x, |context, x| context.builder.$method(x))
        }
        surface! { @method Tile [$(#[doc = $doc])*] $method $accepts }
        surface! { @method Scalar [$(#[doc = $doc])*] $method $accepts }
    };
    (@method $Kind:ident [$(#[doc = $doc:literal])*] $method:ident $accepts:ident) => {
        impl<T: $accepts> $Kind<T> {
            $(#[doc = $doc])*
            #[track_caller]
            pub fn $method(self) -> Self {
                $method(self)
            }
        }
    };
    (@function Binary { lhs, rhs } [$(#[doc = $doc:literal])*] $Op:ident $method:ident $accepts:ident) => {
        $(#[doc = $doc])*
        #[track_caller]
        pub fn $method<A, B>(a: A, b: B) -> A::Output
        where
            A: Elementwise<B, Output: DeviceValue<Element: $accepts>>,
        {
            binary(BinaryOp::$Op, a, b)
        }
    };
    (@function Ternary { a, b, c } [$(#[doc = $doc:literal])*] $Op:ident $method:ident $accepts:ident) => {
        $(#[doc = $doc])*
        #[track_caller]
        pub fn $method<A, B, C>(a: A, b: B, c: C) -> <A::Output as Elementwise<C>>::Output
        where
            A: Elementwise<B, Output: Elementwise<C, Output: DeviceValue<Element: $accepts>>>,
        {
            let define = |builder: &mut Builder, [a, b, c]: [Value; 3]| builder.$method(a, b, c);
            triple(stringify!($method), define, (a, b, c))
        }
    };
}
for_each_scalar_family!(surface);
for_each_function_family!(surface);

/// What [`cdiv`] divides: `usize` on the host, and integers of which one is on the device.
#[diagnostic::on_unimplemented(
    message = "`cdiv` does not divide `{Self}` by `{R}`",
    note = "it takes integers: of the host both are `usize`, of the device both have one type"
)]
pub trait CeilDiv<R> {
    /// The kind of the quotient.
    type Output;
    /// The quotient.
    #[doc(hidden)]
    fn ceil_div(self, divisor: R) -> Self::Output;
}

impl CeilDiv<usize> for usize {
    type Output = usize;
    fn ceil_div(self, divisor: usize) -> usize {
        self.div_ceil(divisor)
    }
}

macro_rules! device_quotients {
    ($($Kind:ident)*) => { $(
        impl<T: Int, R> CeilDiv<R> for $Kind<T>
        where
            $Kind<T>: Elementwise<R, Output: DeviceValue<Element: Int>>,
        {
            type Output = <$Kind<T> as Elementwise<R>>::Output;
            #[track_caller]
            fn ceil_div(self, divisor: R) -> Self::Output {
                pair("cdiv", rounded_up, self, divisor)
            }
        }
        impl<T: Int> CeilDiv<$Kind<T>> for usize {
            type Output = $Kind<T>;
            #[track_caller]
            fn ceil_div(self, divisor: $Kind<T>) -> $Kind<T> {
                pair("cdiv", rounded_up, self, divisor)
            }
        }
    )* };
}
device_quotients!(Tile Scalar);

/// The quotient, and one more where something is left that has its sign.
fn rounded_up(builder: &mut Builder, dividend: Value, divisor: Value) -> Value {
    let quotient = builder.div(dividend, divisor);
    let rest = builder.rem(dividend, divisor);
    let zero = builder.constant_like(rest, 0.0);
    let one = builder.constant_like(rest, 1.0);
    let is_left = builder.compare(CompareOp::Ne, rest, zero);
    let [below, under] = [rest, divisor].map(|it| builder.compare(CompareOp::Lt, it, zero));
    let differ = builder.xor(below, under);
    let alike = builder.not(differ);
    let is_more = builder.and(is_left, alike);
    let more = builder.select(is_more, one, zero);
    builder.add(quotient, more)
}

/// Quotient of integers rounded up: how many tiles of `divisor` cover `dividend`. Of the host, of the device, or one of
/// each; no sum on the way overflows. On the device a zero divisor gives what `/` gives, or one more.
#[cfg_attr(not(doctest), doc = include_str!("examples/cdiv.md"))]
#[track_caller]
pub fn cdiv<A: CeilDiv<B>, B>(dividend: A, divisor: B) -> A::Output {
    dividend.ceil_div(divisor)
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
#[cfg_attr(not(doctest), doc = include_str!("examples/select.md"))]
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

/// `accumulator + a x b` for tiles `[m, k]`, `[k, n]` and `[m, n]`, or for a batch of them: `[b, m, k]`, `[b, k, n]` and
/// `[b, m, n]`, or as many axes before the matrix.
///
/// Of `f16` and `bf16` added in `f32` it is the function of Hopper's tensor cores, [`Precision::Hopper`], which takes 16
/// products or more and which other GPUs refuse; [`dot_with`] takes another. Of other numbers it is [`Precision::Ieee`].
/// Tile shapes never change bits, and a zero result is +0.
///
/// # Errors
/// An accumulator of another kind, or narrower than the operands.
#[cfg_attr(not(doctest), doc = include_str!("examples/dot.md"))]
#[track_caller]
pub fn dot<T: Numeric, A: Numeric>(a: Tile<T>, b: impl Factor<T>, accumulator: Tile<A>) -> Tile<A> {
    dot_with(Precision::usual(T::DTYPE, A::DTYPE), a, b, accumulator)
}

/// [`dot`] by the function that `precision` names.
///
/// [`Precision::Ieee`]: the chain `acc = fma(a[m, k], b[k, n], acc)` over ascending k in the accumulator's type, to
/// which the operands are widened first; a zero result is +0. Integers too: of 8 to 64 bits, added in `i32` or `i64` if
/// they are signed, in `u32` or `u64` else, no wider than that. Sums wrap. One of `F8E4M3` and one of `F8E5M2` multiply
/// too: both are widened to `f16` first.
///
/// [`Precision::Hopper`]: what the tensor cores of an H100 or H200 compute, of floats of 8 to 32 bits accumulated in
/// `f32`, which the CPU and the interpreter reproduce bit by bit. It is a chain of steps in ascending k, each of the
/// products of 32 bytes (8 of `f32`, 16 of `f16` and `bf16`, 32 of `f8e4m3` and `f8e5m2`). All terms of a step are cut
/// toward zero 25 bits below the greatest exponent among them, their sum is exact and then cut to an `f32` (arXiv
/// 2512.07004). Of `f8` terms 13 bits are kept, and 13 bits of the fraction of a sum. Of `f32` operands the lowest 13 bits
/// do not count: they are TF32. k fills a step at least. GPUs that do not compute this function refuse it by name, and Hopper's
/// refuse it of `f8` in tiles of fewer than 64 rows, 8 columns or 128 products, in batches and on fewer than 4 warps.
/// Integers of 8 bits, of which k fills a step of 32, are added in 32 bits and wrap, as by `Ieee`, on every device. Of `f64` it
/// is the chain of `Ieee` without the final addition of +0, for any k. An H100 or H200 computes either by its tensor cores where
/// a tile has 4 to 64 products, and `Hopper` beyond that as well.
///
/// # Errors
/// Types or a number of products that the precision does not take.
#[cfg_attr(not(doctest), doc = include_str!("examples/dot_with.md"))]
#[track_caller]
pub fn dot_with<T: Numeric, A: Numeric>(
    precision: Precision,
    a: Tile<T>,
    b: impl Factor<T>,
    accumulator: Tile<A>,
) -> Tile<A> {
    product((precision, None), (a, b), accumulator)
}

/// [`dot_with`] by parts of `count` products, in ascending order: each part is made from sums of +0 and then added to the
/// accumulator, rounded to nearest even. So the sums of `f8`, of which tensor cores keep 13 bits of the fraction, lose no more
/// than those of `count` products do; 128 is usual. Tile shapes never change bits: their products are a multiple of `count`.
///
/// # Errors
/// Those of [`dot_with`], sums that are no floats, and a `count` that is no power of two, fills no step of the precision, goes
/// beyond the products of the tiles, or is less than a 64th of them.
#[cfg_attr(not(doctest), doc = include_str!("examples/dot_promoted.md"))]
#[track_caller]
pub fn dot_promoted<T: Numeric, A: Numeric>(
    precision: Precision,
    count: usize,
    a: Tile<T>,
    b: impl Factor<T>,
    accumulator: Tile<A>,
) -> Tile<A> {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    product((precision, Some(count)), (a, b), accumulator)
}

/// `accumulator + a x b`, where a number of products is given by parts of so many.
#[track_caller]
fn product<T: Numeric, A: Numeric>(
    (precision, count): (Precision, Option<i64>),
    (a, b): (Tile<T>, impl Factor<T>),
    accumulator: Tile<A>,
) -> Tile<A> {
    map(accumulator, |context, accumulator| {
        let (a, b) = (context.value(a.handle()), context.value(b.factor()));
        if precision == Precision::Cut {
            let message = "`Precision::Cut` is for the compiler, which looks for NaN: take `Precision::Hopper`";
            context.builder.error(message);
            return context.builder.poison();
        }
        let [a, b] = of_one_type(context, precision, [a, b]);
        let whole = context.ty(accumulator);
        let [a, b, accumulator] = one_batch(context, [a, b, accumulator]);
        let product = context.builder.value(match count {
            None => Op::Dot(op::Dot {
                a,
                b,
                accumulator,
                precision,
            }),
            Some(count) => Op::DotPromoted(op::DotPromoted {
                a,
                b,
                accumulator,
                precision,
                count,
            }),
        });
        match whole.shape.rank() > 3 {
            true => context
                .builder
                .declared(Op::Reshape(op::Reshape { x: product }), whole),
            false => product,
        }
    })
}

/// The second operand of a matrix product: a tile of the type of the first, or of the other float of 8 bits.
#[diagnostic::on_unimplemented(
    message = "`dot` does not multiply `{T}` by `{Self}`",
    note = "both operands have one type, or one is of `F8E4M3` and one of `F8E5M2`: convert with `.to::<T>()`"
)]
pub trait Factor<T: Numeric> {
    /// The tile.
    #[doc(hidden)]
    fn factor(self) -> context::Handle;
}

impl<T: Numeric> Factor<T> for Tile<T> {
    fn factor(self) -> context::Handle {
        self.handle()
    }
}

impl Factor<F8E5M2> for Tile<F8E4M3> {
    fn factor(self) -> context::Handle {
        self.handle()
    }
}

impl Factor<F8E4M3> for Tile<F8E5M2> {
    fn factor(self) -> context::Handle {
        self.handle()
    }
}

/// Operands of two types in one that holds both.
fn of_one_type(context: &mut Context, precision: Precision, operands: [Value; 2]) -> [Value; 2] {
    let [a, b] = operands.map(|it| context.ty(it));
    if a.dtype() == b.dtype() || a.is_poison() || b.is_poison() {
        return operands;
    }
    match precision {
        Precision::Ieee => operands.map(|it| context.cast(it, DType::F16)),
        Precision::Hopper | Precision::Cut => {
            let word = precision.word();
            let message = format!("`dot` with precision `{word}` of `{a}` and `{b}`");
            let error = Diagnostic::new(context.builder.loc().clone(), message);
            let remedy = "it takes operands of one type: convert both with `.to::<f16>()`, or take `Precision::Ieee`";
            context.builder.report(error.note(remedy));
            [context.builder.poison(); 2]
        }
    }
}

/// Matrices of a batch of several axes as those of one axis. Tiles that do not agree on them stay, and are refused.
fn one_batch(context: &mut Context, tiles: [Value; 3]) -> [Value; 3] {
    let shapes = tiles.map(|tile| context.ty(tile).shape.dims());
    let batch = |dims: &Vec<usize>| dims.len().checked_sub(2).map(|at| dims[..at].to_vec());
    let batches = shapes.each_ref().map(batch);
    let alike = batches.iter().all(|it| it == &batches[0]);
    let several = batches[0].as_ref().filter(|it| alike && it.len() > 1);
    let Some(several) = several else {
        return tiles;
    };
    let count = several.iter().product();
    tiles.map(|x| {
        let ty = context.ty(x);
        let matrix = ty.shape.dims().split_off(several.len());
        match Shape::new(&[&[count], &matrix[..]].concat()) {
            Ok(shape) => context
                .builder
                .declared(Op::Reshape(op::Reshape { x }), ty.with_shape(shape)),
            Err(_) => x,
        }
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
