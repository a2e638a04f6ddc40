//! Normalisation over groups of rows, such as groups of channels of an image, and over the rows of a batch.

use exactile::prelude::*;
use exactile::{Number, Result};

use crate::setting::{Settable, Setting, check_shape, ensure, extent};
use crate::space;

/// A group of `channels` rows of `pixels` a program, `BLOCK` elements at a time.
#[kernel(BLOCK = 1024)]
pub fn group_norm<T: Float, #[meta(1024..=4096)] const BLOCK: usize>(
    x: Ptr<T>,
    weight: Ptr<T>,
    bias: Ptr<T>,
    out: PtrMut<T>,
    groups: i32,
    channels: i32,
    pixels: i32,
    epsilon: f32,
) {
    let count = channels * pixels;
    let start = program_id(0) * count;
    let mut sum = sum_accumulator::<f32>([]);
    for first in range(0, count).step(BLOCK).stages(2) {
        let at = first + arange(0, BLOCK);
        sum.add(load(x + start + at).mask(at < count).to::<f32>(), 0);
    }
    let mean = sum.finish() / count.to::<f32>();
    let mut squares = sum_accumulator::<f32>([]);
    for first in range(0, count).step(BLOCK).stages(2) {
        let at = first + arange(0, BLOCK);
        let centred = load(x + start + at).mask(at < count).to::<f32>() - mean;
        squares.add_masked(centred * centred, at < count, 0);
    }
    let scale = rsqrt(squares.finish() / count.to::<f32>() + epsilon);
    for first in range(0, count).step(BLOCK).stages(2) {
        let at = first + arange(0, BLOCK);
        let mask = at < count;
        let channel = program_id(0) % groups * channels + at / pixels;
        let weight = load(weight + channel).mask(mask).to::<f32>();
        let bias = load(bias + channel).mask(mask).to::<f32>();
        let centred = load(x + start + at).mask(mask).to::<f32>() - mean;
        store(
            out + start + at,
            (centred * scale * weight + bias).to::<T>(),
        )
        .mask(mask);
    }
}

/// The moments of `CHANNELS` columns a program, by Welford's combine over `ROWS` rows at a time.
#[kernel(ROWS = 32, CHANNELS = 32, grid = x.extent(1).div_ceil(CHANNELS))]
pub fn batch_moments<T: Float, #[meta(32..=128)] const ROWS: usize, const CHANNELS: usize>(
    x: Tensor<T, 2>,
    means: TensorMut<f32, 1>,
    variances: TensorMut<f32, 1>,
) {
    let (rows, column) = (x.extent(0), program_id(0) * CHANNELS);
    let mut moments = accumulator::<(Tile<f32>, Tile<f32>, Tile<f32>)>([CHANNELS], |a, b| {
        let count = a.0 + b.0;
        let (distance, share) = (b.1 - a.1, b.0 / count);
        let squares = a.2 + b.2 + distance * distance * a.0 * share;
        (count, a.1 + distance * share, squares)
    });
    for row in range(0, rows).step(ROWS) {
        let tile = x
            .tile([ROWS, CHANNELS])
            .at_offset((row, column))
            .load()
            .to::<f32>();
        let one = full::<f32>([ROWS, CHANNELS], 1.0);
        let mask = (row + arange(0, ROWS)).expand(1) < rows;
        moments.add_masked(
            (one, tile, zeros::<f32>([ROWS, CHANNELS])),
            mask.broadcast_to([ROWS, CHANNELS]),
            0,
        );
    }
    let (count, mean, squares) = moments.finish();
    means.tile([CHANNELS]).at_offset((column,)).store(mean);
    variances
        .tile([CHANNELS])
        .at_offset((column,))
        .store(squares / count);
}

/// `[ROWS, CHANNELS]` elements a program, by the moments of their columns.
#[kernel(ROWS = 32, CHANNELS = 32, grid = (x.extent(0).div_ceil(ROWS), x.extent(1).div_ceil(CHANNELS)))]
pub fn batch_norm<T: Float, #[meta(32..=128)] const ROWS: usize, const CHANNELS: usize>(
    x: Tensor<T, 2>,
    means: Tensor<f32, 1>,
    variances: Tensor<f32, 1>,
    weight: Tensor<T, 1>,
    bias: Tensor<T, 1>,
    out: TensorMut<T, 2>,
    epsilon: f32,
) {
    let (place, column) = ((program_id(0), program_id(1)), (program_id(1),));
    let mean = load(means.tile([CHANNELS]).at(column)).expand(0);
    let variance = load(variances.tile([CHANNELS]).at(column)).expand(0);
    let weight = load(weight.tile([CHANNELS]).at(column))
        .to::<f32>()
        .expand(0);
    let bias = load(bias.tile([CHANNELS]).at(column)).to::<f32>().expand(0);
    let x = load(x.tile([ROWS, CHANNELS]).at(place)).to::<f32>();
    let normal = (x - mean) * rsqrt(variance + epsilon) * weight + bias;
    store(out.tile([ROWS, CHANNELS]).at(place), normal.to::<T>());
}

/// What [`launch`] multiplies with and adds, a number a channel.
#[derive(Clone, Copy, Debug)]
pub struct Affine<'a, T> {
    /// What each channel is multiplied by.
    pub weight: &'a Buffer<T>,
    /// What is then added to it.
    pub bias: &'a Buffer<T>,
}

/// Normalises the groups of `channels / groups` channels of `[images, channels, pixels]`. A setting's `block` is the
/// elements of a chunk.
pub fn launch<T: Float + Number>(
    x: &Buffer<T>,
    Affine { weight, bias }: Affine<'_, T>,
    out: &mut Buffer<T>,
    (groups, epsilon): (usize, f32),
    [images, channels, pixels]: [usize; 3],
    setting: &Setting,
) -> Result<()> {
    ensure(groups > 0 && channels % groups == 0, || {
        format!("{channels} channels in {groups} groups")
    })?;
    check_shape(x.len(), &[images, channels, pixels])?;
    check_shape(out.len(), &[images, channels, pixels])?;
    check_shape(weight.len(), &[channels])?;
    check_shape(bias.len(), &[channels])?;
    let kernel = group_norm::<T>().block(setting.block_or(1024)).by(setting);
    let device = out.device().clone();
    // The kernel counts the elements of a group in `i32`.
    extent(channels / groups * pixels)?;
    let [count, own, pixels] = [groups, channels / groups, pixels].map(extent);
    let arguments = (x, weight, bias, out, count?, own?, pixels?, epsilon);
    kernel.launch(&device, images * groups, arguments)
}

/// The mean and the variance of each column of `[rows, channels]`. A setting's `block` is the rows of a chunk.
pub fn moments<T: Float + Number>(
    x: &Buffer<T>,
    means: &mut Buffer<f32>,
    variances: &mut Buffer<f32>,
    [rows, channels]: [usize; 2],
    setting: &Setting,
) -> Result<()> {
    check_shape(x.len(), &[rows, channels])?;
    check_shape(means.len(), &[channels])?;
    check_shape(variances.len(), &[channels])?;
    let kernel = batch_moments::<T>().rows(setting.block_or(32)).by(setting);
    let device = means.device().clone();
    let views = (
        x.view([rows, channels])?,
        means.view_mut([channels])?,
        variances.view_mut([channels])?,
    );
    kernel.launch(&device, (), views)
}

/// Normalises the columns of `[rows, channels]` by their means and variances: those of [`moments`] while a network learns,
/// kept ones later. In `f32`, rounded once. A setting's `block` is the rows of a program.
///
/// # Errors
/// Buffers of other shapes, and what a launch refuses.
pub fn normalise<T: Float + Number>(
    x: &Buffer<T>,
    [means, variances]: [&Buffer<f32>; 2],
    Affine { weight, bias }: Affine<'_, T>,
    out: &mut Buffer<T>,
    ([rows, channels], epsilon): ([usize; 2], f32),
    setting: &Setting,
) -> Result<()> {
    check_shape(x.len(), &[rows, channels])?;
    check_shape(out.len(), &[rows, channels])?;
    for len in [means.len(), variances.len(), weight.len(), bias.len()] {
        check_shape(len, &[channels])?;
    }
    let kernel = batch_norm::<T>().rows(setting.block_or(32)).by(setting);
    let device = out.device().clone();
    let arguments = (
        x.view([rows, channels])?,
        means.view([channels])?,
        variances.view([channels])?,
        weight.view([channels])?,
        bias.view([channels])?,
        out.view_mut([rows, channels])?,
        epsilon,
    );
    kernel.launch(&device, (), arguments)
}

/// The mean and the variance of numbers.
pub fn reference(x: &[f32]) -> (f64, f64) {
    let count = x.len() as f64;
    let mean = x.iter().map(|&x| f64::from(x)).sum::<f64>() / count;
    let squares: f64 = x.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum();
    (mean, squares / count)
}

/// The settings worth trying for groups.
pub fn space() -> Vec<Setting> {
    let blocks = group_norm::<f32>().range_of("BLOCK");
    space::space(&blocks, &[0], &[None], |block, _| block)
}

/// The settings worth trying for columns.
pub fn moments_space() -> Vec<Setting> {
    let rows = batch_moments::<f32>().range_of("ROWS");
    space::space(&rows, &[0], &[None], |rows, _| 32 * rows)
}
