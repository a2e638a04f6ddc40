//! The gradients of a layer normalisation, from what its forward pass kept. No locks and no atomics: the sums over rows are
//! trees of their own.

use exactile::prelude::*;
use exactile::{Number, Result};

use crate::setting::{Settable, Setting, check_shape, ensure, extent};
use crate::space;

/// Tiles of rows that a program can add.
const MOST_TILES: usize = 4096;

/// The gradient of a row of `x`; `BLOCK` is the next power of two of the number of columns.
#[kernel]
pub fn layer_norm_rows<T: Float, const BLOCK: usize>(
    x: Ptr<T>,
    weight: Ptr<T>,
    gradient: Ptr<T>,
    means: Ptr<f32>,
    scales: Ptr<f32>,
    x_gradient: PtrMut<T>,
    columns: i32,
) {
    let at = arange(0, BLOCK);
    let (mask, row) = (at < columns, program_id(0));
    let own = row * columns + at;
    let [x, gradient] = [x, gradient].map(|from| load(from + own).mask(mask).to::<f32>());
    let pull = load(weight + at).mask(mask).to::<f32>() * gradient;
    let scale = load(scales + row);
    let normal = select(mask, (x - load(means + row)) * scale, 0.0);
    let sums = [(normal * pull).sum(0), pull.sum(0)];
    let [along, level] = sums.map(|sum| sum / columns.to::<f32>());
    let slope = (pull - (normal * along + level)) * scale;
    store(x_gradient + own, slope.to::<T>()).mask(mask);
}

/// The gradients of `COLUMNS` weights and biases, `ROWS` rows at a time.
#[kernel(ROWS = 32, COLUMNS = 64, grid = x.extent(1).div_ceil(COLUMNS))]
pub fn layer_norm_columns<
    T: Float,
    #[meta(16..=64)] const ROWS: usize,
    #[meta(32..=128)] const COLUMNS: usize,
>(
    x: Tensor<T, 2>,
    gradient: Tensor<T, 2>,
    means: Tensor<f32, 1>,
    scales: Tensor<f32, 1>,
    weight_gradient: TensorMut<T, 1>,
    bias_gradient: TensorMut<T, 1>,
) {
    let column = program_id(0) * COLUMNS;
    let new_sum = || sum_accumulator::<f32>([COLUMNS]).at_most(MOST_TILES);
    let (mut weight, mut bias) = (new_sum(), new_sum());
    for row in range(0, x.extent(0)).step(ROWS).stages(2) {
        let tile = |of: Tensor<T, 2>| of.tile([ROWS, COLUMNS]).at_offset([row, column]);
        let [x, gradient] = [x, gradient].map(|of| tile(of).load().to::<f32>());
        let [mean, scale] = [means, scales].map(|of| of.tile([ROWS]).at_offset([row]).load());
        weight.add(gradient * ((x - mean.expand(1)) * scale.expand(1)), 0);
        bias.add(gradient, 0);
    }
    for (out, sum) in [(weight_gradient, weight), (bias_gradient, bias)] {
        let sum = sum.finish().to::<T>();
        out.tile([COLUMNS]).at_offset([column]).store(sum);
    }
}

/// What [`launch`] reads.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a, T> {
    /// The rows that were normalised.
    pub x: &'a Buffer<T>,
    /// What each column was multiplied by.
    pub weight: &'a Buffer<T>,
    /// The gradient of what the forward pass gave.
    pub gradient: &'a Buffer<T>,
    /// The mean of each row.
    pub means: &'a Buffer<f32>,
    /// The reciprocal of the standard deviation of each row.
    pub scales: &'a Buffer<f32>,
}

/// What [`launch`] writes.
#[derive(Debug)]
pub struct Gradients<'a, T> {
    /// Of the rows.
    pub x: &'a mut Buffer<T>,
    /// Of the weights.
    pub weight: &'a mut Buffer<T>,
    /// Of the biases.
    pub bias: &'a mut Buffer<T>,
}

/// The gradients of [`layer_norm`](crate::layer_norm()) of `[rows, columns]`, in `f32` and rounded once. A setting's `block` is the
/// rows that a sum over rows takes at a time, its `width` the columns; the schedule is that of both kernels.
///
/// # Errors
/// What a launch refuses.
pub fn launch<T: Float + Number>(
    inputs: Inputs<'_, T>,
    gradients: Gradients<'_, T>,
    [rows, columns]: [usize; 2],
    setting: &Setting,
) -> Result<()> {
    let Inputs {
        x,
        weight,
        gradient,
        means,
        scales,
    } = inputs;
    for len in [x.len(), gradient.len(), gradients.x.len()] {
        check_shape(len, &[rows, columns])?;
    }
    for len in [weight.len(), gradients.weight.len(), gradients.bias.len()] {
        check_shape(len, &[columns])?;
    }
    check_shape(means.len(), &[rows])?;
    check_shape(scales.len(), &[rows])?;
    let tile = setting.block_or(32);
    ensure(rows.div_ceil(tile) <= MOST_TILES, || {
        format!("{rows} rows are more than {MOST_TILES} tiles of {tile}")
    })?;
    let sums = layer_norm_columns::<T>()
        .rows(tile)
        .columns(setting.width_or(64))
        .by(setting);
    let device = gradients.x.device().clone();
    let own = layer_norm_rows::<T>()
        .block(columns.next_power_of_two())
        .by(setting);
    let count = extent(columns)?;
    let arguments = (x, weight, gradient, means, scales, gradients.x, count);
    own.launch(&device, rows, arguments)?;
    let arguments = (
        x.view([rows, columns])?,
        gradient.view([rows, columns])?,
        means.view([rows])?,
        scales.view([rows])?,
        gradients.weight.view_mut([columns])?,
        gradients.bias.view_mut([columns])?,
    );
    sums.launch(&device, (), arguments)
}

/// The gradients of the rows, the weights and the biases, in `f64` and rounded once.
pub fn reference(
    [x, weight, gradient]: [&[f32]; 3],
    [means, scales]: [&[f32]; 2],
) -> [Vec<f32>; 3] {
    let columns = weight.len();
    let mut rows = Vec::new();
    let (mut weights, mut biases) = (vec![0.0; columns], vec![0.0; columns]);
    let pairs = x.chunks(columns).zip(gradient.chunks(columns));
    for ((x, gradient), (&mean, &scale)) in pairs.zip(means.iter().zip(scales)) {
        let (mean, scale) = (f64::from(mean), f64::from(scale));
        let normal: Vec<f64> = x.iter().map(|&x| (f64::from(x) - mean) * scale).collect();
        let pulls = gradient.iter().zip(weight);
        let pulls: Vec<f64> = pulls.map(|(&g, &w)| f64::from(g) * f64::from(w)).collect();
        let level = pulls.iter().sum::<f64>() / columns as f64;
        let along = normal.iter().zip(&pulls).map(|(n, p)| n * p);
        let along = along.sum::<f64>() / columns as f64;
        for (column, (normal, pull)) in normal.iter().zip(&pulls).enumerate() {
            rows.push(((pull - (normal * along + level)) * scale) as f32);
            weights[column] += f64::from(gradient[column]) * normal;
            biases[column] += f64::from(gradient[column]);
        }
    }
    let [weights, biases] = [weights, biases].map(|sums| sums.iter().map(|&x| x as f32).collect());
    [rows, weights, biases]
}

/// The settings worth trying.
pub fn space() -> Vec<Setting> {
    let kernel = layer_norm_columns::<f32>();
    let [rows, columns] = ["ROWS", "COLUMNS"].map(|it| kernel.range_of(it));
    space::space(&rows, &columns, &[None], |rows, columns| rows * columns)
}
