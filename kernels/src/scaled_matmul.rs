//! Products of matrices of 8-bit numbers with scales.

use exactile::prelude::*;
use exactile::{Number, Result, TensorView};

use crate::product::{self, GROUP, each_tile, grid, stages, turns};
use crate::setting::{Settable, Setting, check_shape};

/// The terms that share a scale in [`block_scaled_matmul()`], and bytes of a row that one box brings.
pub const BLOCK: usize = 128;

/// Of bytes, with a scale for each row of `a` and each column of `b`: a tile `[BM, BN]` a program.
#[kernel(BM = ..=128, BN = ..=256, grid = grid(&out, [BM, BN]))]
pub fn scaled_matmul<
    T: Float,
    #[meta(64..=256)] const BM: usize,
    #[meta(128..=256)] const BN: usize,
>(
    a: Tensor<i8, 2>,
    b: Tensor<i8, 2>,
    row_scales: Tensor<f32, 1>,
    column_scales: Tensor<f32, 1>,
    out: TensorMut<T, 2>,
) {
    let [row, column] = tile_origin([BM, BN], GROUP);
    let left = a.tile([BM, BLOCK]).at_offset((row, 0));
    let right = b.tile([BLOCK, BN]).at_offset((0, column));
    let sum = dot_along(
        left,
        right,
        a.extent(1),
        stages([BM, BN]),
        zeros::<i32>([BM, BN]),
    );
    let rows = row_scales.tile([BM]).at_offset([row]).load().expand(1);
    let columns = column_scales.tile([BN]).at_offset([column]).load();
    let product = sum.to::<f32>() * rows * columns.expand(0);
    let out = out.tile([BM, BN]).at_offset([row, column]);
    out.store(product.to::<T>());
}

/// Of 8-bit floats, with a scale for each 128 numbers of a row of `a` and for each 128 by 128 numbers of `b`: a tile
/// `[BM, BN]` a program.
///
/// An iteration takes two blocks, of which the first is added while the second is multiplied. Blocks are added in ascending order,
/// whatever the tile, which `order` tells since the check of tile orders cannot know it.
#[kernel(IN_TURNS = false, BM = 128, BN = 128, order = "tile", grid = grid(&out, [BM, BN]))]
pub fn block_scaled_matmul<
    Q: Float,
    T: Float,
    const IN_TURNS: bool,
    #[meta(64..=128)] const BM: usize,
    #[meta(128)] const BN: usize,
>(
    a: Tensor<Q, 2>,
    b: Tensor<Q, 2>,
    row_scales: Tensor<f32, 2>,
    scales: Tensor<f32, 2>,
    out: TensorMut<T, 2>,
) {
    require(Q::DTYPE.bits() == 8, "floats of 8 bits");
    require(
        BN <= BLOCK,
        "tiles of at most 128 columns, which share a scale",
    );
    let extents = [out.extent(0), out.extent(1)];
    each_tile(extents, [BM, BN], IN_TURNS, |[row, column]| {
        let mut sum = zeros::<f32>([BM, BN]);
        for k in range(0, a.extent(1)).step(2 * BLOCK).stages(3) {
            let parts = [k, k + BLOCK].map(|k| {
                let left = a.tile([BM, BLOCK]).at_offset([row, k]).load();
                let right = b.tile([BLOCK, BN]).at_offset([k, column]).load();
                let place = [column / BLOCK, k / BLOCK];
                let rows = row_scales.tile([BM, 1]).at_offset([row, place[1]]).load();
                let scale = scales.tile([1, 1]).at_offset(place).load();
                let part = dot_with(Precision::Hopper, left, right, zeros::<f32>([BM, BN]));
                (part, rows, scale)
            });
            for (part, rows, scale) in parts {
                sum += part * (rows * scale);
            }
        }
        let out = out.tile([BM, BN]).at_offset([row, column]);
        out.store(sum.to::<T>());
    });
}

/// Of 8-bit floats by Hopper's tensor cores, with one scale: a tile `[BM, BN]` a program, or `IN_TURNS` as many as there are for
/// it. `PROMOTED`: each 128 products are added in `f32`.
///
/// An iteration of promoted products takes two blocks, of which the first is added while the second is multiplied: in ascending order,
/// whatever the tile, which `order` tells since the check of tile orders cannot know it.
#[kernel(IN_TURNS = false, BM = ..=128, BN = ..=256, order = "tile", grid = grid(&out, [BM, BN]))]
pub fn float8_matmul<
    Q: Float,
    T: Float,
    const PROMOTED: bool,
    const IN_TURNS: bool,
    #[meta(64..=256)] const BM: usize,
    #[meta(128..=256)] const BN: usize,
>(
    a: Tensor<Q, 2>,
    b: Tensor<Q, 2>,
    out: TensorMut<T, 2>,
    scale: f32,
) {
    require(Q::DTYPE.bits() == 8, "floats of 8 bits");
    let precision = match PROMOTED {
        true => None,
        false => Some(Precision::Hopper),
    };
    let extents = [out.extent(0), out.extent(1)];
    each_tile(extents, [BM, BN], IN_TURNS, |place| {
        let sum = rows_by_rows::<Q, f32>([a, b], place, [BM, BN], precision);
        let out = out.tile([BM, BN]).at_offset(place);
        out.store((sum * scale).to::<T>());
    });
}

/// Of numbers by tensor cores, bytes in integers of 32 bits and `f32` as TF32 by Hopper's: a tile `[BM, BN]` a program, or
/// `IN_TURNS` as many as there are for it.
#[kernel(IN_TURNS = false, BM = ..=128, BN = ..=256, grid = grid(&out, [BM, BN]))]
pub fn rows_matmul<
    T: Numeric,
    A: Numeric,
    const IN_TURNS: bool,
    #[meta(64..=256)] const BM: usize,
    #[meta(128..=256)] const BN: usize,
>(
    a: Tensor<T, 2>,
    b: Tensor<T, 2>,
    out: TensorMut<A, 2>,
) {
    let precision = match A::DTYPE.is_float() {
        true => Some(Precision::Hopper),
        false => Some(Precision::Ieee),
    };
    let extents = [out.extent(0), out.extent(1)];
    each_tile(extents, [BM, BN], IN_TURNS, |place| {
        let sum = rows_by_rows::<T, A>([a, b], place, [BM, BN], precision);
        out.tile([BM, BN]).at_offset(place).store(sum);
    });
}

/// A tile of the product of `a` and `b`, [`BLOCK`] bytes of their rows at a time; without a precision each of these is added in `f32`
/// to those before.
#[device]
fn rows_by_rows<T: Numeric, A: Numeric>(
    [a, b]: [Tensor<T, 2>; 2],
    [row, column]: [Scalar<i64>; 2],
    [bm, bn]: [usize; 2],
    precision: Option<Precision>,
) -> Tile<A> {
    let terms = BLOCK / T::DTYPE.bytes() as usize;
    let (blocks, stages) = match precision {
        Some(_) => (1, stages([bm, bn])),
        None => (2, 3),
    };
    let mut sum = zeros::<A>([bm, bn]);
    for k in range(0, a.extent(1)).step(blocks * terms).stages(stages) {
        let factors = (0..blocks).map(|block| {
            let left = a.tile([bm, terms]).at_offset([row, k + block * terms]);
            let right = b.tile([terms, bn]).at_offset([k + block * terms, column]);
            (left.load(), right.load())
        });
        for (left, right) in factors.collect::<Vec<_>>() {
            sum = match precision {
                Some(precision) => dot_with(precision, left, right, sum),
                None => dot_promoted(Precision::Hopper, BLOCK, left, right, sum),
            };
        }
    }
    sum
}

/// `a` `[m, k]` and the transpose of `b` `[n, k]`.
fn factors<'a, Q: Number>(
    [a, b]: [&'a Buffer<Q>; 2],
    [m, n, k]: [usize; 3],
) -> Result<(TensorView<'a, Q, 2>, TensorView<'a, Q, 2>)> {
    check_shape(a.len(), &[m, k])?;
    check_shape(b.len(), &[n, k])?;
    Ok((a.view([m, k])?, b.view_strided([k, n], [1, k])?))
}

/// `a b^T` of bytes `a` `[m, k]` and `b` `[n, k]`, added in `i32`; a sum becomes an `f32`, is multiplied by the scale of its row
/// of `a`, then by that of its row of `b`, and is rounded to `T`. A setting's `block` and `width` are the rows and the columns
/// of a tile.
///
/// # Errors
/// What a launch refuses.
pub fn launch<T: Float + Number>(
    [a, b]: [&Buffer<i8>; 2],
    [row_scales, column_scales]: [&Buffer<f32>; 2],
    out: &mut Buffer<T>,
    [m, n, k]: [usize; 3],
    setting: &Setting,
) -> Result<()> {
    check_shape(row_scales.len(), &[m])?;
    check_shape(column_scales.len(), &[n])?;
    check_shape(out.len(), &[m, n])?;
    let kernel = scaled_matmul::<T>();
    let kernel = setting
        .tiles(kernel, |it, bm| it.bm(bm), |it, bn| it.bn(bn))
        .by(setting);
    let (a, b) = factors([a, b], [m, n, k])?;
    let device = out.device().clone();
    let arguments = (
        a,
        b,
        row_scales.view([m])?,
        column_scales.view([n])?,
        out.view_mut([m, n])?,
    );
    kernel.launch(&device, (), arguments)
}

/// `a b^T` of 8-bit floats `a` `[m, k]` and `b` `[n, k]` with scales of `a` `[m, blocks]` and of `b` `[n / 128, blocks]`, where
/// `blocks` is `k / 128`, both rounded up. docs/numerics.md defines it. A setting's `block` and `width` are the rows and the
/// columns of a tile.
///
/// # Errors
/// What a launch refuses, among it GPUs without Hopper's tensor cores.
pub fn launch_blocks<Q: Float + Number, T: Float + Number>(
    [a, b]: [&Buffer<Q>; 2],
    [row_scales, scales]: [&Buffer<f32>; 2],
    out: &mut Buffer<T>,
    [m, n, k]: [usize; 3],
    setting: &Setting,
) -> Result<()> {
    let blocks = k.div_ceil(BLOCK);
    check_shape(row_scales.len(), &[m, blocks])?;
    check_shape(scales.len(), &[n.div_ceil(BLOCK), blocks])?;
    check_shape(out.len(), &[m, n])?;
    // A lane holds the sums of a block beside those of all. Four warps multiply together.
    let tile = setting.block_or(128) * setting.width_or(BLOCK);
    let setting = setting
        .with_lanes_of(64, tile.max(64 * BLOCK))
        .or_width(BLOCK);
    let device = out.device().clone();
    let turns = turns(&device, [m, n], &setting);
    let setting = &product::of_turns(turns.as_ref(), &setting, BLOCK);
    let kernel = block_scaled_matmul::<Q, T>();
    let kernel = setting
        .tiles(kernel, |it, bm| it.bm(bm), |it, bn| it.bn(bn))
        .in_turns(turns.is_some())
        .by(setting);
    let (a, b) = factors([a, b], [m, n, k])?;
    let arguments = (
        a,
        b,
        row_scales.view([m, blocks])?,
        scales.view([n.div_ceil(BLOCK), blocks])?,
        out.view_mut([m, n])?,
    );
    match turns {
        Some((programs, _)) => kernel.launch(&device, programs, arguments),
        None => kernel.launch(&device, (), arguments),
    }
}

/// `scale a b^T` of 8-bit floats `a` `[m, k]` and `b` `[n, k]`, whose sums have 13 bits of fraction: Hopper's tensor cores
/// multiply them as they are. Where sums are promoted, that is said of each 128 products, which are added in `f32`. docs/numerics.md
/// defines it. A setting's `block` and `width` are the rows and the columns of a tile.
///
/// # Errors
/// What a launch refuses, among it GPUs without Hopper's tensor cores, and on a GPU tiles of less than 64 rows or 4 warps.
pub fn launch_float8<Q: Float + Number, T: Float + Number>(
    [a, b]: [&Buffer<Q>; 2],
    (scale, is_promoted): (f32, bool),
    out: &mut Buffer<T>,
    [m, n, k]: [usize; 3],
    setting: &Setting,
) -> Result<()> {
    check_shape(out.len(), &[m, n])?;
    let device = out.device().clone();
    // Of the parts that are promoted a lane holds as many sums again.
    let setting = &match is_promoted {
        true => setting.or_width(128),
        false => *setting,
    };
    let turns = turns(&device, [m, n], setting);
    let setting = &product::of_turns(turns.as_ref(), setting, if is_promoted { 128 } else { 256 });
    let kernel = float8_matmul::<Q, T>().promoted(is_promoted);
    let kernel = setting
        .tiles(kernel, |it, bm| it.bm(bm), |it, bn| it.bn(bn))
        .in_turns(turns.is_some())
        .by(setting);
    let (a, b) = factors([a, b], [m, n, k])?;
    let arguments = (a, b, out.view_mut([m, n])?, scale);
    match turns {
        Some((programs, _)) => kernel.launch(&device, programs, arguments),
        None => kernel.launch(&device, (), arguments),
    }
}

/// `a b^T` of numbers `a` `[m, k]` and `b` `[n, k]`: `i8` added in `i32`, `u8` in `u32`, and floats of 8 to 32 bits in `f32` by
/// [`Precision::Hopper`]. A setting's `block` and `width` are the rows and the columns of a tile.
///
/// # Errors
/// What a launch refuses, among it other types, of floats GPUs without Hopper's tensor cores, and on a GPU 8-bit floats in tiles
/// of less than 64 rows or 4 warps.
pub fn launch_rows<T: Numeric + Number, A: Numeric + Number>(
    [a, b]: [&Buffer<T>; 2],
    out: &mut Buffer<A>,
    [m, n, k]: [usize; 3],
    setting: &Setting,
) -> Result<()> {
    check_shape(out.len(), &[m, n])?;
    let device = out.device().clone();
    let turns = turns(&device, [m, n], setting);
    let setting = &product::of_turns(turns.as_ref(), setting, 256);
    let kernel = setting
        .tiles(
            rows_matmul::<T, A>(),
            |it, bm| it.bm(bm),
            |it, bn| it.bn(bn),
        )
        .in_turns(turns.is_some())
        .by(setting);
    let (a, b) = factors([a, b], [m, n, k])?;
    let arguments = (a, b, out.view_mut([m, n])?);
    match turns {
        Some((programs, _)) => kernel.launch(&device, programs, arguments),
        None => kernel.launch(&device, (), arguments),
    }
}

/// What [`launch`] computes, with its bits.
pub fn reference(
    [a, b]: [&[i8]; 2],
    [row_scales, column_scales]: [&[f32]; 2],
    [m, n, k]: [usize; 3],
) -> Vec<f32> {
    let element = |(row, column): (usize, usize)| {
        let terms = a[row * k..][..k].iter().zip(&b[column * k..][..k]);
        let sum: i32 = terms.map(|(&a, &b)| i32::from(a) * i32::from(b)).sum();
        sum as f32 * row_scales[row] * column_scales[column]
    };
    let places = (0..m).flat_map(|row| (0..n).map(move |column| (row, column)));
    places.map(element).collect()
}

/// What [`launch_blocks`] computes of numbers as `f32`, in `f64` and rounded once.
pub fn blocks_reference(
    [a, b]: [&[f32]; 2],
    [row_scales, scales]: [&[f32]; 2],
    [m, n, k]: [usize; 3],
) -> Vec<f32> {
    let blocks = k.div_ceil(BLOCK);
    let element = |(row, column): (usize, usize)| {
        let term = |at: usize| {
            let scale = f64::from(row_scales[row * blocks + at / BLOCK])
                * f64::from(scales[column / BLOCK * blocks + at / BLOCK]);
            f64::from(a[row * k + at]) * f64::from(b[column * k + at]) * scale
        };
        (0..k).map(term).sum::<f64>() as f32
    };
    let places = (0..m).flat_map(|row| (0..n).map(move |column| (row, column)));
    places.map(element).collect()
}

/// The settings worth trying.
pub fn space() -> Vec<Setting> {
    product::space()
}

/// The settings worth trying where products are added to sums of their own and these to others, for tiles of at most the columns of
/// a block. Their stages have two blocks each.
pub fn blocks_space() -> Vec<Setting> {
    let tiles = [
        (128, 128, 8, 3),
        (128, 128, 8, 2),
        (64, 128, 4, 4),
        (64, 128, 4, 3),
        (64, 128, 4, 2),
    ];
    tiles.map(Setting::staged).to_vec()
}
