//! Rows in groups, each times the matrix of its group: the experts of a mixture.

use exactile::prelude::*;
use exactile::{HostTensor, Number, Result};

use crate::product::{TERMS, one_of, stages};
use crate::setting::{Settable, Setting, check_shape, ensure};

/// A tile `[BM, BN]` of one group a program; `GROUPS` is a power of two that holds all groups. `WHOLE`: no step of
/// products goes beyond a matrix.
#[kernel(BM = ..=128, BN = ..=256, grid = grid(&out, starts.extent(0) - 1, [BM, BN]))]
pub fn grouped_matmul<
    T: Float,
    const GROUPS: usize,
    const WHOLE: bool,
    #[meta(64..=256)] const BM: usize,
    #[meta(128..=256)] const BN: usize,
>(
    x: Tensor<T, 2>,
    weights: Tensor<T, 2>,
    starts: Tensor<i32, 1>,
    out: TensorMut<T, 2>,
) {
    let place = |next: usize| starts.tile([GROUPS]).at_offset([next]).load().to::<i64>();
    let [start, end] = [place(0), place(1)];
    let tiles = (end - start + (BM - 1)) / BM;
    let tile = program_id(1) - (tiles.cumsum(0) - tiles);
    let own = (tile >= 0) & (tile < tiles);
    let of_own = |number: Tile<i64>| select(own, number, 0).sum(0);
    let numbers = [start + tile * BM, end, arange(0, GROUPS)];
    let [row, end, group] = numbers.map(|number| of_own(number).scalar());
    let column = program_id(0) * BN;
    let (weight, first) = one_of(weights, [group, x.extent(1)], WHOLE);
    let left = x.tile([BM, TERMS]).at_offset((row, 0));
    let right = weight.tile([TERMS, BN]).at_offset((first, column));
    // A grid has programs for as many tiles as the groups may have at most.
    let terms = select(row < end, x.extent(1), 0);
    let none = zeros::<f32>([BM, BN]);
    let sum = dot_along(left, right, terms, stages([BM, BN]), none);
    let inside = (row + arange(0, BM) < end).expand(1);
    let out = out.tile([BM, BN]).at_offset([row, column]);
    out.store(sum.to::<T>()).mask(inside);
}

/// Group `i` is the rows `starts[i]..starts[i + 1]` of `x` `[rows, k]`; they are multiplied by `weights[i]` of
/// `[groups, k, n]` and rounded to `T`. Rows of no group stay as they are. A setting's `block` and `width` are the rows and the
/// columns of a tile.
///
/// # Errors
/// What a launch refuses; of `f16` and `bf16` GPUs without Hopper's tensor cores.
pub fn launch<T: Float + Number>(
    [x, weights]: [&Buffer<T>; 2],
    starts: &Buffer<i32>,
    out: &mut Buffer<T>,
    [rows, n, k]: [usize; 3],
    setting: &Setting,
) -> Result<()> {
    ensure(!starts.is_empty(), || {
        "the groups have no starts".to_string()
    })?;
    let groups = starts.len() - 1;
    check_shape(x.len(), &[rows, k])?;
    check_shape(weights.len(), &[groups, k, n])?;
    check_shape(out.len(), &[rows, n])?;
    let kernel = grouped_matmul::<T>()
        .groups(groups.next_power_of_two())
        .whole(k.is_multiple_of(TERMS));
    let kernel = setting
        .tiles(kernel, |it, bm| it.bm(bm), |it, bn| it.bn(bn))
        .by(setting);
    let device = out.device().clone();
    let arguments = (
        x.view([rows, k])?,
        weights.view([groups * k, n])?,
        starts.view([groups + 1])?,
        out.view_mut([rows, n])?,
    );
    kernel.launch(&device, (), arguments)
}

/// The columns first. The last tile of each group may be short.
fn grid(out: &HostTensor<2>, groups: usize, [bm, bn]: [usize; 2]) -> (usize, usize) {
    let (rows, columns) = (out.extent(0), out.extent(1));
    (columns.div_ceil(bn), rows / bm + groups.min(rows))
}

/// What it computes, rounded once.
pub fn reference([x, weights]: [&[f32]; 2], starts: &[i32], [n, k]: [usize; 2]) -> Vec<f32> {
    let groups = starts.windows(2).zip(weights.chunks(k * n));
    let products = groups.map(|(ends, weight)| {
        let [start, end] = [ends[0], ends[1]].map(|place| place as usize);
        crate::matmul::reference(&x[start * k..end * k], weight, [end - start, n, k])
    });
    products.flatten().collect()
}

/// The settings worth trying.
pub fn space() -> Vec<Setting> {
    crate::product::space()
}
