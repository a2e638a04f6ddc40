//! Tiles and scalars: the handles that a kernel computes with, and how they change shape.

use std::marker::PhantomData;
use std::panic::Location;

use super::context::{self, Context, Handle};
use super::element::{Element, HostNumber, LiteralOf};
use super::shapes::{NewAxes, expanded};
use crate::diagnostic::Diagnostic;
use crate::ir::{Axis, Op, Value, op};

/// An n-dimensional value of a program. Every extent is a power of two; the shape is known when the
/// kernel is traced.
#[must_use = "a tile that nothing uses is not computed"]
pub struct Tile<T: Element> {
    handle: Handle,
    element: PhantomData<T>,
}

/// A single number of a program.
#[must_use = "a scalar that nothing uses is not computed"]
pub struct Scalar<T: Element> {
    handle: Handle,
    element: PhantomData<T>,
}

/// What tiles and scalars have in common.
pub trait DeviceValue: Copy {
    /// The type of one number.
    type Element: Element;
    /// The same kind of value with another type of number.
    type With<U: Element>: DeviceValue<Element = U>;
    /// The value in the trace.
    fn handle(self) -> Handle;
    /// A value of the trace whose type is known to fit.
    #[doc(hidden)]
    fn from_handle(handle: Handle) -> Self;
    /// The value as a tile.
    #[doc(hidden)]
    fn as_tile(self) -> Tile<Self::Element> {
        Tile::from_handle(self.handle())
    }
    /// A tile as a value of this kind: for a scalar it is of rank 0, and an error else.
    #[doc(hidden)]
    fn of_tile(tile: Tile<Self::Element>) -> Self;
}

macro_rules! device_value {
    ($($Kind:ident $of:ident;)*) => { $(
        impl<T: Element> Clone for $Kind<T> {
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<T: Element> Copy for $Kind<T> {}
        impl<T: Element> DeviceValue for $Kind<T> {
            type Element = T;
            type With<U: Element> = $Kind<U>;
            fn handle(self) -> Handle {
                self.handle
            }
            fn from_handle(handle: Handle) -> Self {
                Self { handle, element: PhantomData }
            }
            #[track_caller]
            fn of_tile(tile: Tile<T>) -> Self {
                tile.$of()
            }
        }
        impl<T: Element> $Kind<T> {
            /// Each number converted to `U`. Floats round once to nearest even; float to integer
            /// saturates and NaN gives 0; to `bool` means nonzero.
            #[cfg_attr(not(doctest), doc = include_str!("examples/to.md"))]
            #[track_caller]
            pub fn to<U: Element>(self) -> $Kind<U> {
                map(self, |context, x| context.cast(x, U::DTYPE))
            }

            /// The bits of each number as a `U` of the same width. A float NaN reads as the
            /// positive canonical NaN.
            #[track_caller]
            pub fn bitcast<U: Element>(self) -> $Kind<U> {
                map(self, |context, x| context.builder.bitcast(x, U::DTYPE))
            }
        }
        impl<T: Element> $Kind<T> {
            pub(crate) fn handle_mut(&mut self) -> &mut Handle {
                &mut self.handle
            }
        }
    )* };
}
device_value! {
    Tile itself;
    Scalar scalar;
}

/// A value made from one other; a poisoned operand passes through.
#[track_caller]
pub(crate) fn map<A: DeviceValue, B: DeviceValue>(
    x: A,
    action: impl FnOnce(&mut Context, Value) -> Value,
) -> B {
    B::from_handle(context::emit(Location::caller(), |context| {
        let x = context.value(x.handle());
        if context.ty(x).is_poison() {
            return x;
        }
        action(context, x)
    }))
}

const PARTS: &str = "a slice is a power of two of elements, begins at a multiple of their number and ends within the axis";

impl<T: Element> Tile<T> {
    /// Inserts an axis of extent 1: `[n]` becomes `[1, n]` for axis 0 and `[n, 1]` for axis 1. An array inserts several, each
    /// at its place in the result: `[n]` becomes `[1, n, 1]` for axes `[0, 2]`.
    ///
    /// # Errors
    /// An axis beyond the result, or one that is named twice.
    #[cfg_attr(not(doctest), doc = include_str!("examples/expand.md"))]
    #[track_caller]
    pub fn expand(self, axes: impl NewAxes) -> Self {
        map(self, |context, x| expanded(context, x, axes.axes()))
    }

    /// The same elements in row-major order in another shape.
    #[cfg_attr(not(doctest), doc = include_str!("examples/reshape.md"))]
    #[track_caller]
    pub fn reshape(self, shape: impl AsRef<[usize]>) -> Self {
        map(self, |context, x| {
            reshaped(context, "reshape", x, shape.as_ref())
        })
    }

    /// Repeats the axes of extent 1 until the tile has this shape. Where the shape has more axes, the first ones are
    /// new: `[n]` becomes `[m, n]`, each row of which is the tile.
    ///
    /// # Errors
    /// Another extent than 1 that differs from that of the shape, and a shape of fewer axes.
    #[track_caller]
    pub fn broadcast_to(self, shape: impl AsRef<[usize]>) -> Self {
        map(self, |context, x| {
            let Some(shape) = context.shape("broadcast_to", shape.as_ref()) else {
                return context.builder.poison();
            };
            let dims = context.ty(x).shape.dims();
            let more = shape.rank().saturating_sub(dims.len());
            let x = match more > 0 && !dims.is_empty() {
                true => reshaped(context, "broadcast_to", x, &[vec![1; more], dims].concat()),
                false => x,
            };
            context.broadcast("broadcast_to", x, shape)
        })
    }

    /// Swaps the last two axes.
    #[track_caller]
    pub fn transpose(self) -> Self {
        map(self, |context, x| {
            let rank = context.ty(x).shape.rank() as u32;
            if rank < 2 {
                let ty = context.ty(x);
                context
                    .builder
                    .error(format!("`transpose` needs two axes, found `{ty}`"));
                return context.builder.poison();
            }
            let mut permutation: Vec<u32> = (0..rank).collect();
            permutation.swap(rank as usize - 2, rank as usize - 1);
            context
                .builder
                .value(Op::Transpose(op::Transpose { x, permutation }))
        })
    }

    /// Axis `i` of the result is axis `permutation[i]` of this tile.
    #[track_caller]
    pub fn permute(self, permutation: impl AsRef<[usize]>) -> Self {
        map(self, |context, x| {
            let permutation = permutation
                .as_ref()
                .iter()
                .map(|&axis| u32::try_from(axis).unwrap_or(u32::MAX))
                .collect();
            context
                .builder
                .value(Op::Transpose(op::Transpose { x, permutation }))
        })
    }

    /// The elements along `axis` in reverse.
    #[track_caller]
    pub fn flip(self, axis: usize) -> Self {
        map(self, |context, x| {
            let axis = axis_of(axis);
            context.builder.value(Op::Flip(op::Flip { x, axis }))
        })
    }

    /// The `count` elements along `axis` from `start` on. `count` is a power of two, and `start` a multiple
    /// of it. On a GPU a lane holds all elements that it takes one of: less than a thousandth of a tile is an
    /// error there, and `gather` takes it.
    #[track_caller]
    pub fn slice(self, axis: usize, start: usize, count: usize) -> Self {
        map(self, |context, x| {
            let axis = axis_of(axis);
            let [start, count] = [start, count].map(|it| i64::try_from(it).unwrap_or(i64::MAX));
            let op = op::Slice {
                x,
                axis,
                start,
                count,
            };
            context.advised(Op::Slice(op), || Some(PARTS.to_string()))
        })
    }

    /// The elements along `axis` in two halves, the first one first.
    #[track_caller]
    pub fn halves(self, axis: usize) -> (Self, Self) {
        let half = self.shape().get(axis).map_or(0, |extent| extent / 2);
        (self.slice(axis, 0, half), self.slice(axis, half, half))
    }

    /// Both tiles as one with a new last axis of extent 2, this one at 0 of it: `[n]` and `[n]` become
    /// `[n, 2]`. Shapes broadcast as those of arithmetic do; two of rank 0 become `[2]`.
    #[cfg_attr(not(doctest), doc = include_str!("examples/join.md"))]
    #[track_caller]
    pub fn join(self, other: impl IntoTile<T>) -> Self {
        Self::from_handle(context::emit(Location::caller(), |context| {
            let (a, b) = (context.value(self.handle), other.into_value(context));
            let (a, b) = context.broadcast_pair("join", a, b);
            context.builder.value(Op::Join(op::Join { a, b }))
        }))
    }

    /// The two tiles of which [`Tile::join`] makes this one: `[n, 2]` becomes `[n]` and `[n]`.
    #[track_caller]
    pub fn split(self) -> (Self, Self) {
        let part = |part| {
            map(self, |context, x| {
                context.builder.value(Op::Split(op::Split { x, part }))
            })
        };
        (part(0), part(1))
    }

    /// The elements of both tiles in turns along the last axis, those of this one first: `[m, n]` and
    /// `[m, n]` become `[m, 2 * n]`, as [`Tile::join`] and a reshape make of them. Two of rank 0 become `[2]`.
    #[track_caller]
    pub fn interleave(self, other: impl IntoTile<T>) -> Self {
        map(self.join(other), |context, x| {
            let ty = context.ty(x);
            let mut dims = ty.shape.dims();
            if dims.len() == 1 {
                return x;
            }
            let pair = dims.pop().unwrap_or(1);
            let folded = dims.last_mut().map(|last| *last *= pair);
            folded.map_or(x, |()| reshaped(context, "interleave", x, &dims))
        })
    }

    /// A tile of rank 0 as a scalar, whose type it then has. Conditions, the bounds of loops and what else takes a
    /// scalar take the tile too.
    #[track_caller]
    pub fn scalar(self) -> Scalar<T> {
        self.single("`scalar`", ONE_OF)
    }

    /// A tile of rank 0 as a scalar, or an error of what needs one, with what to do.
    #[track_caller]
    pub(super) fn single(self, what: &str, remedy: &str) -> Scalar<T> {
        map(self, |context, x| {
            let ty = context.ty(x);
            if ty.is_scalar() {
                return x;
            }
            let message = format!("{what} needs a scalar or a tile of rank 0, found `{ty}`");
            let error = Diagnostic::new(context.builder.loc().clone(), message);
            context.builder.report(error.note(remedy));
            context.builder.poison()
        })
    }

    fn itself(self) -> Self {
        self
    }

    /// The extents; empty for rank 0 and for a tile that is already in error.
    pub fn shape(self) -> Vec<usize> {
        context::with(Location::caller(), |context| {
            let x = context.value(self.handle);
            context.ty(x).shape.dims()
        })
        .unwrap_or_default()
    }
}

impl<T: Element> Scalar<T> {
    /// The scalar as a tile of rank 0.
    pub fn tile(self) -> Tile<T> {
        Tile::from_handle(self.handle)
    }
}

/// As [`Tile::scalar`]: what a `mut` binding of a scalar takes of a reduction, as in `m = maximum(m, row.max(0)).into()`.
impl<T: Element> From<Tile<T>> for Scalar<T> {
    #[track_caller]
    fn from(tile: Tile<T>) -> Self {
        tile.scalar()
    }
}

/// As [`Scalar::tile`].
impl<T: Element> From<Scalar<T>> for Tile<T> {
    fn from(scalar: Scalar<T>) -> Self {
        scalar.tile()
    }
}

/// `x` in another shape, or an error that says where.
pub(super) fn reshaped(context: &mut Context, what: &str, x: Value, shape: &[usize]) -> Value {
    let Some(shape) = context.shape(what, shape) else {
        return context.builder.poison();
    };
    let ty = context.ty(x).with_shape(shape);
    context.builder.declared(Op::Reshape(op::Reshape { x }), ty)
}

/// How a tile becomes one number.
pub(super) const ONE_OF: &str = "a reduction such as `.sum(axis)` gives one number of a row, and `.pick(axis, position)` \
                                 one element";

/// An axis as the IR has it; one that is too large is out of range for every tile.
pub(crate) fn axis_of(axis: usize) -> Axis {
    Axis(u8::try_from(axis).unwrap_or(u8::MAX))
}

/// Something that can fill a tile: a tile, a scalar or a host number.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no tile, scalar or number of type `{T}`",
    note = "convert tiles and scalars with `.to::<T>()`",
    note = "next to floats write `2.0` instead of `2`, and `N as f64` for a `usize`"
)]
pub trait IntoTile<T: Element> {
    /// The value, of whatever shape it has.
    #[doc(hidden)]
    fn into_value(self, context: &mut Context) -> Value;
}

impl<T: Element> IntoTile<T> for Tile<T> {
    fn into_value(self, context: &mut Context) -> Value {
        context.value(self.handle)
    }
}

impl<T: Element> IntoTile<T> for Scalar<T> {
    fn into_value(self, context: &mut Context) -> Value {
        context.value(self.handle)
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element, L: HostNumber + LiteralOf<T>> IntoTile<T> for L {
    fn into_value(self, context: &mut Context) -> Value {
        context.literal(self.literal())
    }
}

/// The position of this program along a grid axis: 0, 1 or 2.
#[cfg_attr(not(doctest), doc = include_str!("examples/program_id.md"))]
#[track_caller]
pub fn program_id(axis: usize) -> Scalar<i64> {
    Scalar::from_handle(context::emit(Location::caller(), |context| {
        let axis = axis_of(axis);
        context.builder.value(Op::ProgramId(op::ProgramId { axis }))
    }))
}

/// The extent of the grid along an axis: 0, 1 or 2.
#[cfg_attr(not(doctest), doc = include_str!("examples/num_programs.md"))]
#[track_caller]
pub fn num_programs(axis: usize) -> Scalar<i64> {
    Scalar::from_handle(context::emit(Location::caller(), |context| {
        let axis = axis_of(axis);
        context
            .builder
            .value(Op::NumPrograms(op::NumPrograms { axis }))
    }))
}

/// The integers `start..end`; their number is a power of two.
#[cfg_attr(not(doctest), doc = include_str!("examples/arange.md"))]
#[track_caller]
pub fn arange(start: usize, end: usize) -> Tile<i64> {
    Tile::from_handle(context::emit(Location::caller(), |context| {
        let bound = |bound: usize| i64::try_from(bound).unwrap_or(i64::MAX);
        let (start, end) = (bound(start), bound(end));
        let extent = usize::try_from(end.saturating_sub(start)).unwrap_or(0);
        let op = Op::Arange(op::Arange { start, end });
        context.advised(op, || context::whole(extent))
    }))
}

/// A tile of `shape` filled with a scalar or a host number.
#[cfg_attr(not(doctest), doc = include_str!("examples/full.md"))]
#[track_caller]
pub fn full<T: Element>(shape: impl AsRef<[usize]>, value: impl IntoTile<T>) -> Tile<T> {
    Tile::from_handle(context::emit(Location::caller(), |context| {
        let value = value.into_value(context);
        match context.shape("full", shape.as_ref()) {
            Some(shape) => context.broadcast("full", value, shape),
            None => context.builder.poison(),
        }
    }))
}

/// A number of the host, a scalar or a tile of rank 0 as a scalar: `scalar::<f32>(0.0)`.
#[cfg_attr(not(doctest), doc = include_str!("examples/scalar.md"))]
#[track_caller]
pub fn scalar<T: Element>(value: impl IntoTile<T>) -> Scalar<T> {
    let value = context::emit(Location::caller(), |context| value.into_value(context));
    Tile::from_handle(value).scalar()
}

/// A tile of `shape` filled with zeros.
#[cfg_attr(not(doctest), doc = include_str!("examples/zeros.md"))]
#[track_caller]
pub fn zeros<T: Element>(shape: impl AsRef<[usize]>) -> Tile<T> {
    Tile::from_handle(context::emit(Location::caller(), |context| {
        let zero = crate::ir::Literal::from_bits(T::DTYPE, 0);
        match context.shape("zeros", shape.as_ref()) {
            Some(shape) => context.builder.filled(zero, shape),
            None => context.builder.poison(),
        }
    }))
}

/// Reports `message` as an error of the kernel unless the host condition holds: checks of
/// meta-parameters.
#[cfg_attr(not(doctest), doc = include_str!("examples/require.md"))]
#[track_caller]
pub fn require(condition: bool, message: &str) {
    if !condition {
        context::report(Location::caller(), message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lang::bodies::Bodies;

    #[test]
    fn tiles_are_joined_and_split_in_turns() {
        let mut shapes = Vec::new();
        let func = context::trace("f", Bodies::record(), || {
            let row = arange(0, 8);
            let pairs = row.join(row + 8);
            let (even, odd) = pairs.split();
            let all = even.expand(0).interleave(odd.expand(0));
            let two = program_id(0).tile().interleave(1);
            let (_, right) = all.flip(1).halves(1);
            let part = right.slice(1, 4, 2);
            shapes = vec![
                pairs.shape(),
                odd.shape(),
                all.shape(),
                two.shape(),
                part.shape(),
            ];
        });
        func.expect("is traced");
        assert_eq!(
            shapes,
            [vec![8, 2], vec![8], vec![1, 16], vec![2], vec![1, 2]]
        );
        let wrongs: [fn() -> Tile<i64>; 5] = [
            || arange(0, 8).join(arange(0, 4)),
            || arange(0, 4).split().0,
            || arange(0, 4).flip(1),
            || arange(0, 8).slice(0, 2, 4),
            || arange(0, 1).halves(0).0,
        ];
        for wrong in wrongs {
            let traced = context::trace("f", Bodies::record(), || {
                let _ = wrong();
            });
            assert!(traced.is_err());
        }
    }
}
