//! Shapes made of the ops that move elements: axes that go or stay, tiles one after the other, parts at a
//! position.

use std::ops::Range;
use std::panic::Location;

use super::context::{self, Context};
use super::element::{Element, Int, Numeric};
use super::reduce::{Reducible, reduce};
use super::tile::{DeviceValue, IntoTile, Tile, axis_of, map, reshaped};
use crate::ir::{BinaryOp, Class, CompareOp, DType, Op, Value, op};

impl<T: Element> Tile<T> {
    /// The elements in row-major order along one axis: `[m, n]` becomes `[m * n]`.
    #[track_caller]
    pub fn ravel(self) -> Self {
        map(self, |context, x| {
            let count = context.ty(x).shape.dims().iter().product();
            reshaped(context, "ravel", x, &[count])
        })
    }

    /// Removes an axis of extent 1: `[m, 1]` becomes `[m]` for axis 1.
    #[track_caller]
    pub fn squeeze(self, axis: usize) -> Self {
        map(self, |context, x| {
            let ty = context.ty(x);
            let mut dims = ty.shape.dims();
            if dims.get(axis) != Some(&1) {
                let message = format!("`squeeze` needs extent 1 along axis {axis}, found `{ty}`");
                context.builder.error(message);
                return context.builder.poison();
            }
            dims.remove(axis);
            reshaped(context, "squeeze", x, &dims)
        })
    }

    /// The elements at one position along `axis`, which the result no longer has. A position of the device goes to
    /// [`gather`](super::lookup::gather).
    #[track_caller]
    pub fn pick(self, axis: usize, position: usize) -> Self {
        match self.shape().get(axis) {
            Some(&extent) if position < extent => match extent > FEW {
                true => self.pick_of_many(axis, position),
                false => self.slice(axis, position, 1).squeeze(axis),
            },
            Some(_) | None => map(self, |context, x| {
                let ty = context.ty(x);
                if !ty.is_poison() {
                    context.builder.error(format!(
                        "`pick` cannot take position {position} along axis {axis} of `{ty}`"
                    ));
                }
                context.builder.poison()
            }),
        }
    }

    /// [`Tile::pick`] as the reduction of what has zeros at the other positions: the lanes of a GPU then need not hold
    /// all positions of the axis.
    #[track_caller]
    fn pick_of_many(self, axis: usize, position: usize) -> Self {
        map(self, |context, x| {
            let (shape, dtype) = (context.ty(x).shape, T::DTYPE);
            let words = match dtype.class() {
                Class::Float => dtype.unsigned(),
                Class::Bool | Class::Signed | Class::Unsigned => dtype,
            };
            let builder = &mut context.builder;
            let index = builder.index_along(axis, shape);
            let wanted = builder.bits_like(index, DType::I64, position as u64);
            let is_there = builder.compare(CompareOp::Eq, index, wanted);
            let bits = builder.bitcast(x, words);
            let zero = builder.bits_like(bits, words, 0);
            let bits = builder.select(is_there, bits, zero);
            let bits = context.reduce_by(BinaryOp::Or, bits, axis);
            context.builder.bitcast(bits, dtype)
        })
    }

    /// This tile with `part` in the place of the elements along `axis` from `start` on: what [`Tile::slice`] of it takes
    /// from there then is `part`. `start` is a multiple of the extent of `part`; a scalar or a host number replaces
    /// one position.
    ///
    /// # Errors
    /// A part that does not fit there.
    #[track_caller]
    pub fn with_slice(self, axis: usize, start: usize, part: impl IntoTile<T>) -> Self {
        map(self, |context, x| {
            let part = part.into_value(context);
            let [whole, ty] = [x, part].map(|value| context.ty(value));
            if ty.is_poison() {
                return part;
            }
            let (mut dims, shape) = (ty.shape.dims(), whole.shape.dims());
            if dims.is_empty() && axis < shape.len() {
                dims.clone_from(&shape);
                dims[axis] = 1;
            }
            let count = dims.get(axis).copied().unwrap_or(0);
            let fits = count > 0
                && start.is_multiple_of(count)
                && shape
                    .get(axis)
                    .is_some_and(|&extent| start + count <= extent)
                && [&dims[..axis], &shape[axis..=axis], &dims[axis + 1..]].concat() == shape;
            if !fits {
                context.builder.error(format!(
                    "`with_slice` cannot put `{ty}` into `{whole}` from {start} on along axis {axis}"
                ));
                return context.builder.poison();
            }
            placed(context, (x, part), axis, start..start + count)
        })
    }

    /// What `function` gives for the parts of `extent` elements along `axis`, one after the other: a part in flight at a
    /// time takes fewer registers of a lane than a whole tile, where each element has many steps. An axis that is shorter
    /// is one part.
    ///
    /// The number of parts is a power of two, and what `function` gives for them has one shape. It is called for each part
    /// while the kernel is traced.
    #[track_caller]
    pub fn map_slices<U: Element>(
        self,
        axis: usize,
        extent: usize,
        function: impl FnMut(Self) -> Tile<U>,
    ) -> Tile<U> {
        let whole = self.shape().get(axis).copied().unwrap_or(1);
        let extent = extent.clamp(1, whole);
        let starts = (0..whole).step_by(extent);
        let parts = starts.map(|start| self.slice(axis, start, extent));
        cat(parts.map(function).collect::<Vec<_>>(), axis)
    }

    /// The elements at one position along the first axis: `[m, n]` becomes `[n]`.
    #[track_caller]
    pub fn row(self, position: usize) -> Self {
        self.pick(0, position)
    }

    /// Both tiles along `axis`, the elements of this one first: `[m, n]` and `[m, n]` become `[2 * m, n]` for
    /// axis 0. A scalar fills a tile of the same shape.
    ///
    /// # Errors
    /// Tiles of different shapes.
    #[track_caller]
    pub fn cat(self, other: impl IntoTile<T>, axis: usize) -> Self {
        map(self, |context, x| {
            let other = other.into_value(context);
            let [ours, theirs] = [x, other].map(|value| context.ty(value));
            let poisoned = ours.is_poison() || theirs.is_poison();
            if !poisoned && ours.shape != theirs.shape && !theirs.shape.is_scalar() {
                let message =
                    format!("`cat` of `{ours}` and `{theirs}`, expected tiles of one shape");
                context.builder.error(message);
                return context.builder.poison();
            }
            let other = context.broadcast("cat", other, ours.shape);
            let pairs = context.builder.value(Op::Join(op::Join { a: x, b: other }));
            let ty = context.ty(pairs);
            if ty.is_poison() {
                return pairs;
            }
            let mut dims = ty.shape.dims();
            let rank = dims.len() - 1;
            if axis >= rank {
                let message = format!("`cat` along axis {axis} of tiles of rank {rank}");
                context.builder.error(message);
                return context.builder.poison();
            }
            let last = u32::try_from(rank).unwrap_or(u32::MAX);
            let mut permutation: Vec<u32> = (0..last).collect();
            permutation.insert(axis, last);
            let transpose = op::Transpose {
                x: pairs,
                permutation,
            };
            let ordered = context.builder.value(Op::Transpose(transpose));
            dims.truncate(rank);
            dims[axis] *= 2;
            reshaped(context, "cat", ordered, &dims)
        })
    }
}

/// So many elements along an axis the lanes of a GPU hold at once.
const FEW: usize = 1024;

/// `x` with `part` at these positions of an axis.
fn placed(
    context: &mut Context,
    (x, part): (Value, Value),
    axis: usize,
    positions: Range<usize>,
) -> Value {
    let (shape, count) = (context.ty(x).shape, positions.len());
    let dims = shape.dims();
    // Repeated along the axis, the part stands at each multiple of its extent.
    let one =
        |times: usize, count: usize| [&dims[..axis], &[times, count], &dims[axis + 1..]].concat();
    let times = dims[axis] / count;
    let mut repeated = part;
    if times > 1 {
        if context.ty(part).is_scalar() {
            repeated = context.broadcast("with_slice", part, shape);
        } else {
            repeated = reshaped(context, "with_slice", repeated, &one(1, count));
            if let Some(all) = context.shape("with_slice", &one(times, count)) {
                repeated = context.broadcast("with_slice", repeated, all);
            }
            repeated = reshaped(context, "with_slice", repeated, &dims);
        }
    }
    let repeated = context.broadcast("with_slice", repeated, shape);
    let builder = &mut context.builder;
    let index = builder.index_along(axis, shape);
    let [first, after] = [positions.start, positions.end]
        .map(|position| builder.bits_like(index, DType::I64, position as u64));
    let from = builder.compare(CompareOp::Ge, index, first);
    let below = builder.compare(CompareOp::Lt, index, after);
    let inside = builder.and(from, below);
    builder.select(inside, repeated, x)
}

macro_rules! kept {
    ($($(#[$doc:meta])* $Kept:ident = $method:ident gives $Output:ty, of $($Class:ident)?;)*) => { $(
        impl$(<T: $Class>)? Tile<kept!(@element $($Class)?)> {
            $(#[$doc])*
            #[track_caller]
            pub fn $Kept(self, axis: usize) -> Tile<$Output> {
                self.$method(axis).expand(axis)
            }
        }
    )* };
    (@element $Class:ident) => { T };
    (@element) => { bool };
}

kept! {
    /// [`Tile::sum`] with the axis left at extent 1, so that it broadcasts: `x / x.sum_keep(1)`.
    #[cfg_attr(not(doctest), doc = include_str!("examples/sum_keep.md"))]
    sum_keep = sum gives T, of Numeric;
    /// [`Tile::product`] with the axis left at extent 1, so that it broadcasts.
    product_keep = product gives T, of Numeric;
    /// [`Tile::max`] with the axis left at extent 1, so that it broadcasts: `x - x.max_keep(1)`.
    max_keep = max gives T, of Numeric;
    /// [`Tile::min`] with the axis left at extent 1, so that it broadcasts.
    min_keep = min gives T, of Numeric;
    /// [`Tile::maximum`] with the axis left at extent 1, so that it broadcasts.
    maximum_keep = maximum gives T, of Numeric;
    /// [`Tile::minimum`] with the axis left at extent 1, so that it broadcasts.
    minimum_keep = minimum gives T, of Numeric;
    /// [`Tile::argmax`] with the axis left at extent 1, so that it broadcasts.
    argmax_keep = argmax gives i64, of Numeric;
    /// [`Tile::argmin`] with the axis left at extent 1, so that it broadcasts.
    argmin_keep = argmin gives i64, of Numeric;
    /// [`Tile::and`] with the axis left at extent 1, so that it broadcasts.
    and_keep = and gives T, of Int;
    /// [`Tile::or`] with the axis left at extent 1, so that it broadcasts.
    or_keep = or gives T, of Int;
    /// [`Tile::xor`] with the axis left at extent 1, so that it broadcasts.
    xor_keep = xor gives T, of Int;
    /// [`Tile::any`] with the axis left at extent 1, so that it broadcasts.
    any_keep = any gives bool, of;
    /// [`Tile::all`] with the axis left at extent 1, so that it broadcasts.
    all_keep = all gives bool, of;
}

/// [`reduce`] with the axis left at extent 1 in each result, so that they broadcast.
#[track_caller]
pub fn reduce_keep<S: Reducible>(
    source: S,
    axis: usize,
    combine: impl FnMut(S::Element, S::Element) -> S::Element,
) -> S {
    let reduced = reduce(source, axis, combine).handles();
    let kept = context::with(Location::caller(), |context| {
        let kept = reduced.iter().map(|&handle| {
            let x = context.value(handle);
            if context.ty(x).is_poison() {
                return handle;
            }
            let axis = axis_of(axis);
            let kept = context
                .builder
                .value(Op::ExpandDims(op::ExpandDims { x, axis }));
            context.handle(kept)
        });
        kept.collect::<Vec<_>>()
    });
    S::from_handles(&kept.unwrap_or(reduced))
}

/// The tiles one after the other along `axis`. Their number is a power of two, and they have one shape.
#[track_caller]
pub fn cat<T: Element>(tiles: impl AsRef<[Tile<T>]>, axis: usize) -> Tile<T> {
    let mut tiles = tiles.as_ref().to_vec();
    if !tiles.len().is_power_of_two() {
        let message = format!("`cat` of {} tiles, expected a power of two", tiles.len());
        let location = Location::caller();
        let poison = context::emit(location, |context| {
            context.builder.error(message);
            context.builder.poison()
        });
        return Tile::from_handle(poison);
    }
    while tiles.len() > 1 {
        let pairs = tiles.chunks(2);
        tiles = pairs.map(|pair| pair[0].cat(pair[1], axis)).collect();
    }
    tiles[0]
}

/// Where [`Tile::expand`] inserts axes: one, or several of the result.
#[diagnostic::on_unimplemented(
    message = "`{Self}` names no axes",
    note = "`x.expand(1)` inserts one axis, `x.expand([0, 2])` several"
)]
pub trait NewAxes {
    /// The axes of the result that are new.
    #[doc(hidden)]
    fn axes(self) -> Vec<usize>;
}

impl NewAxes for usize {
    fn axes(self) -> Vec<usize> {
        vec![self]
    }
}

impl<const N: usize> NewAxes for [usize; N] {
    fn axes(self) -> Vec<usize> {
        self.to_vec()
    }
}

/// `x` with these axes inserted, each at its place in the result.
pub(super) fn expanded(context: &mut Context, mut x: Value, mut axes: Vec<usize>) -> Value {
    // From the first on, each stands where the result has it.
    axes.sort_unstable();
    if let Some(pair) = axes.windows(2).find(|pair| pair[0] == pair[1]) {
        let axis = pair[0];
        context
            .builder
            .error(format!("`expand`: axis {axis} is inserted twice"));
        return context.builder.poison();
    }
    for axis in axes {
        if context.ty(x).is_poison() {
            return x;
        }
        let axis = axis_of(axis);
        x = context
            .builder
            .value(Op::ExpandDims(op::ExpandDims { x, axis }));
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lang::bodies::Bodies;
    use crate::lang::tile::arange;

    #[test]
    fn shapes_are_those_of_their_parts() {
        let mut shapes = Vec::new();
        let func = context::trace("f", Bodies::record(), || {
            let tile = arange(0, 32).reshape([4, 8]);
            shapes = vec![
                tile.ravel().shape(),
                tile.sum_keep(0).shape(),
                tile.max_keep(1).squeeze(1).shape(),
                tile.row(3).shape(),
                tile.pick(1, 7).pick(0, 2).shape(),
                tile.cat(tile, 0).shape(),
                cat([tile; 4], 1).shape(),
            ];
        });
        func.expect("is traced");
        let want: [&[usize]; 7] = [&[32], &[1, 8], &[4], &[8], &[], &[8, 8], &[4, 32]];
        assert_eq!(shapes, want);
        let wrongs: [fn() -> Tile<i64>; 6] = [
            || arange(0, 8).squeeze(0),
            || arange(0, 1).squeeze(1),
            || arange(0, 8).row(8),
            || arange(0, 8).cat(arange(0, 4), 0),
            || arange(0, 8).cat(1, 1),
            || cat([arange(0, 8); 3], 0),
        ];
        for wrong in wrongs {
            let traced = context::trace("f", Bodies::record(), || {
                let _ = wrong();
            });
            assert!(traced.is_err());
        }
    }

    #[test]
    fn tiles_that_follow_each_other_have_one_shape() {
        let traced = context::trace("f", Bodies::record(), || {
            let tile = arange(0, 32).reshape([4, 8]);
            assert_eq!(tile.cat(7, 0).shape(), [8, 8]);
            let _ = tile.cat(arange(0, 8).expand(0), 0);
        });
        let errors = traced.expect_err("the tiles differ");
        let messages: Vec<&str> = errors.iter().map(|error| error.message.as_str()).collect();
        let want = "`cat` of `tile<4x8xi64>` and `tile<1x8xi64>`, expected tiles of one shape";
        assert_eq!(messages, [want]);
    }
}
