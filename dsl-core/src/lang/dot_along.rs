//! The product of a row of tiles with a column of tiles, in one loop of the device.

use super::carry::Slot;
use super::control::{IntoIndex, IntoLoop, Loop, range};
use super::element::Numeric;
use super::math::dot;
use super::tensor::TensorTile;
use super::tile::Tile;

/// `accumulator + a b` for the tile `[m, k]` of a matrix at which a row of tiles begins and the tile `[k, n]` at which a
/// column begins: both go on by `k` until `extent` products have been added. It is the loop
///
/// ```text
/// for k in range(0, extent).step(K).stages(stages) {
///     let left = a.tile([M, K]).at_offset((row, first + k)).load();
///     let right = b.tile([K, N]).at_offset((other + k, column)).load();
///     sum = dot(left, right, sum);
/// }
/// ```
///
/// with its bits: a chain of [`dot`]. Elements outside of a tensor are zero, so a matrix needs no whole tiles. No tile shape
/// changes bits where `extent` is where one of the tensors ends, or a multiple of the tile's: a step takes whole tiles.
///
/// ```
/// use exactile_core::lang::prelude::*;
///
/// /// A tile of `x weight`, in a kernel of your own with what follows it.
/// fn product(x: Tensor<f32, 2>, weight: Tensor<f32, 2>, out: TensorMut<f32, 2>) {
///     let [row, column] = tile_origin([64, 64], 8);
///     let left = x.tile([64, 32]).at_offset((row, 0));
///     let right = weight.tile([32, 64]).at_offset((0, column));
///     let sum = dot_along(left, right, x.extent(1), 3, zeros::<f32>([64, 64]));
///     store(out.tile([64, 64]).at_offset((row, column)), relu(sum));
/// }
/// ```
///
/// # Errors
/// Those of [`dot`].
#[track_caller]
pub fn dot_along<T: Numeric, A: Numeric>(
    a: TensorTile<T, 2>,
    b: TensorTile<T, 2>,
    extent: impl IntoIndex,
    stages: usize,
    accumulator: Tile<A>,
) -> Tile<A> {
    let terms = a.place.shape()[1];
    let mut sum = accumulator;
    let mut steps = range(0, extent).step(terms).stages(stages).into_loop();
    while let Some(at) = steps.next(&mut [Slot::Carried {
        name: "accumulator",
        value: &mut sum,
    }]) {
        let [left, right] = [(a, 1), (b, 0)].map(|(tile, axis)| tile.moved(axis, at).load());
        sum = dot(left, right, sum);
    }
    sum
}
