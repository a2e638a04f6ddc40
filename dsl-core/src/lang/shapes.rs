//! Shapes made of the ops that move elements: axes that go or stay, tiles one after the other, parts at a
//! position.

use std::panic::Location;

use super::context;
use super::element::{Element, Numeric};
use super::tile::{DeviceValue, IntoTile, Tile, map, reshaped};
use crate::ir::{Op, op};

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

    /// The elements at one position along `axis`, which the result no longer has. On a GPU that is an error
    /// for an axis with more than a thousand positions, as it is for [`Tile::slice`].
    #[track_caller]
    pub fn pick(self, axis: usize, position: usize) -> Self {
        self.slice(axis, position, 1).squeeze(axis)
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

impl<T: Numeric> Tile<T> {
    /// [`Tile::sum`] with the axis left at extent 1, so that it broadcasts: `x / x.sum_keep(1)`.
    #[cfg_attr(not(doctest), doc = include_str!("examples/sum_keep.md"))]
    #[track_caller]
    pub fn sum_keep(self, axis: usize) -> Self {
        self.sum(axis).expand(axis)
    }

    /// [`Tile::max`] with the axis left at extent 1, so that it broadcasts: `x - x.max_keep(1)`.
    #[track_caller]
    pub fn max_keep(self, axis: usize) -> Self {
        self.max(axis).expand(axis)
    }

    /// [`Tile::min`] with the axis left at extent 1, so that it broadcasts.
    #[track_caller]
    pub fn min_keep(self, axis: usize) -> Self {
        self.min(axis).expand(axis)
    }
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
