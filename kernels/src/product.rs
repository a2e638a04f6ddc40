//! What the kernels of matrix products share: the place of a program's tile, its sums, and how they are launched.

use exactile::prelude::*;
use exactile::{HostTensor, Schedule};

use crate::setting::Setting;

/// The row and the column where the tile of a program begins. Programs that run together take tiles near each other, which
/// read the same rows and columns.
#[device]
pub(crate) fn corner([bm, bn]: [usize; 2]) -> [Scalar<i64>; 2] {
    let (rows, columns) = (num_programs(1), num_programs(0));
    let (row, column) = swizzle_2d(program_id(1), program_id(0), rows, columns, 8);
    [row * bm, column * bn]
}

/// Products that are added at a time.
pub(crate) const TERMS: usize = 64;

/// A matrix whose rows begin at one of those of an array.
type Rows<T> = (Tensor<T, 2>, Scalar<i64>);

/// The sums of a tile `[bm, bn]` of the product of `a` and `b`.
#[device]
pub(crate) fn sums<T: Numeric, A: Numeric>(
    a: Tensor<T, 2>,
    (b, first): Rows<T>,
    [row, column]: [Scalar<i64>; 2],
    [bm, bn]: [usize; 2],
) -> Tile<A> {
    let mut sum = zeros::<A>([bm, bn]);
    for k in range(0, a.extent(1)).step(TERMS).stages(4) {
        let left = a.tile([bm, TERMS]).at_offset([row, k]).load();
        let right = b.tile([TERMS, bn]).at_offset([first + k, column]).load();
        sum = dot(left, right, sum);
    }
    sum
}

/// The matrix of this index among those of `k` rows that lie behind each other. Steps that take it `whole` never come to the
/// next one, so it needs no end: bulk copies take boxes of an array alone.
#[device]
pub(crate) fn one_of<T: Numeric>(
    all: Tensor<T, 2>,
    [index, k]: [Scalar<i64>; 2],
    whole: bool,
) -> Rows<T> {
    if whole {
        return (all, index * k);
    }
    let part = all.part([index * k, scalar(0)], [k, all.extent(1)]);
    (part, scalar(0))
}

/// The grid of tiles `[bm, bn]` over a product, the columns first, as [`corner`] takes them.
pub(crate) fn grid(out: &HostTensor<2>, [bm, bn]: [usize; 2]) -> (usize, usize) {
    (out.extent(1).div_ceil(bn), out.extent(0).div_ceil(bm))
}

/// The settings worth trying for products by tensor cores. Their `block` and `width` are the rows and the columns of a tile.
pub(crate) fn space() -> Vec<Setting> {
    let setting = |(block, width, warps, stages): (usize, usize, u32, u32)| Setting {
        block,
        width,
        schedule: Schedule {
            stages: Some(stages),
            ..Schedule::AUTO.warps(warps)
        },
        ..Setting::default()
    };
    let tiles = [
        (128, 256, 8, 4),
        (128, 256, 8, 3),
        (128, 128, 4, 3),
        (128, 128, 4, 4),
        (128, 128, 8, 3),
        (256, 128, 8, 4),
        (64, 256, 4, 4),
        (64, 128, 4, 4),
        (64, 128, 4, 8),
    ];
    tiles.map(setting).to_vec()
}
