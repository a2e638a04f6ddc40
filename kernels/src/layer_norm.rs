//! Layer normalisation of each row, with weight and bias; the means and the reciprocals of the
//! standard deviations are kept, as training needs them.

use exactile::prelude::*;
use exactile::{Number, Result};

use crate::setting::{Settable, Setting, check_shape, extent};
use crate::space;

/// `BLOCK` is the next power of two of the number of columns.
#[kernel]
pub fn layer_norm<T: Float, const BLOCK: usize>(
    x: Ptr<T>,
    weight: Ptr<T>,
    bias: Ptr<T>,
    out: PtrMut<T>,
    means: PtrMut<f32>,
    scales: PtrMut<f32>,
    columns: i32,
    epsilon: f32,
) {
    let offsets = arange(0, BLOCK);
    let mask = offsets < columns;
    let row_index = program_id(0);
    let start = row_index * columns;
    let count = columns.to::<f32>();
    let row = load(x + start + offsets).mask(mask).to::<f32>();
    let mean = row.sum(0) / count;
    store(means + row_index, mean);
    let centred = select(mask, row - mean, 0.0);
    let variance = (centred * centred).sum(0) / count;
    let scale = rsqrt(variance + epsilon);
    let normal = centred * scale;
    store(scales + row_index, scale);
    let weight = load(weight + offsets).mask(mask).to::<f32>();
    let bias = load(bias + offsets).mask(mask).to::<f32>();
    store(out + start + offsets, (normal * weight + bias).to::<T>()).mask(mask);
}

/// The same by a grid of any size: each program takes a row, then one as far away as there are
/// programs. Weight and bias are loaded once, the next rows while one is worked on.
#[kernel]
pub fn layer_norm_loop<T: Float, const BLOCK: usize>(
    x: Ptr<T>,
    weight: Ptr<T>,
    bias: Ptr<T>,
    out: PtrMut<T>,
    means: PtrMut<f32>,
    scales: PtrMut<f32>,
    rows: i32,
    columns: i32,
    epsilon: f32,
) {
    let offsets = arange(0, BLOCK);
    let mask = offsets < columns;
    let count = columns.to::<f32>();
    let weight = load(weight + offsets).mask(mask).to::<f32>();
    let bias = load(bias + offsets).mask(mask).to::<f32>();
    let mine = range(program_id(0), rows).step(num_programs(0));
    for row_index in mine.stages(2) {
        let start = row_index * columns;
        let row = load(x + start + offsets).mask(mask).to::<f32>();
        let mean = row.sum(0) / count;
        let centred = select(mask, row - mean, 0.0);
        let variance = (centred * centred).sum(0) / count;
        let scale = rsqrt(variance + epsilon);
        let normal = centred * scale;
        store(means + row_index, mean);
        store(scales + row_index, scale);
        store(out + start + offsets, (normal * weight + bias).to::<T>()).mask(mask);
    }
}

/// What [`launch`] reads.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a, T> {
    /// The rows.
    pub x: &'a Buffer<T>,
    /// What each column is multiplied by.
    pub weight: &'a Buffer<T>,
    /// What is then added to it.
    pub bias: &'a Buffer<T>,
    /// What is added to the variance.
    pub epsilon: f32,
}

/// What [`launch`] writes.
#[derive(Debug)]
pub struct Outputs<'a, T> {
    /// The rows.
    pub out: &'a mut Buffer<T>,
    /// The mean of each row.
    pub means: &'a mut Buffer<f32>,
    /// The reciprocal of the standard deviation of each row.
    pub scales: &'a mut Buffer<f32>,
}

/// The layer normalisation of each row of `[rows, columns]`. A setting's `block` is a power of two
/// that holds a row. With `width` 0 there is a program for each row, else `width` for each
/// multiprocessor.
pub fn launch<T: Float + Number>(
    inputs: Inputs<'_, T>,
    outputs: Outputs<'_, T>,
    [rows, columns]: [usize; 2],
    setting: &Setting,
) -> Result<()> {
    let Inputs {
        x,
        weight,
        bias,
        epsilon,
    } = inputs;
    let Outputs { out, means, scales } = outputs;
    for (len, shape) in [
        (x.len(), &[rows, columns][..]),
        (weight.len(), &[columns]),
        (bias.len(), &[columns]),
        (out.len(), &[rows, columns]),
        (means.len(), &[rows]),
        (scales.len(), &[rows]),
    ] {
        check_shape(len, shape)?;
    }
    let device = out.device().clone();
    let block = setting.block_or(columns.next_power_of_two());
    let count = extent(columns)?;
    if setting.width == 0 {
        let kernel = layer_norm::<T>().block(block).by(setting);
        let arguments = (x, weight, bias, out, means, scales, count, epsilon);
        return kernel.launch(&device, rows, arguments);
    }
    let kernel = layer_norm_loop::<T>().block(block).by(setting);
    let programs = rows.min(setting.width * device.multiprocessors());
    let rows = extent(rows)?;
    let arguments = (x, weight, bias, out, means, scales, rows, count, epsilon);
    kernel.launch(&device, programs, arguments)
}

/// What it computes for one row, rounded once: the row, its mean, and the reciprocal of its standard
/// deviation.
pub fn reference(row: &[f32], weight: &[f32], bias: &[f32], epsilon: f32) -> (Vec<f32>, f32, f32) {
    let count = row.len() as f64;
    let mean = row.iter().map(|&x| f64::from(x)).sum::<f64>() / count;
    let square = |&x: &f32| (f64::from(x) - mean).powi(2);
    let variance = row.iter().map(square).sum::<f64>() / count;
    let scale = 1.0 / (variance + f64::from(epsilon)).sqrt();
    let affine = weight.iter().zip(bias);
    let normal = |(x, (weight, bias)): (&f32, (&f32, &f32))| {
        ((f64::from(*x) - mean) * scale * f64::from(*weight) + f64::from(*bias)) as f32
    };
    let out = row.iter().zip(affine).map(normal).collect();
    (out, mean as f32, scale as f32)
}

/// The settings worth trying.
pub fn space([_, columns]: [usize; 2]) -> Vec<Setting> {
    space::looped_rows(columns)
}
