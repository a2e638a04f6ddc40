//! The sum of two arrays of rows, and its root mean square normalisation by a weight: what stands between the layers
//! of a transformer, in one pass.

use exactile::prelude::*;
use exactile::{Number, Result};

use crate::setting::{Settable, Setting, check_shape, extent};
use crate::space;

/// `BLOCK` is the next power of two of the number of columns.
#[kernel]
pub fn add_rms_norm<T: Float, const BLOCK: usize>(
    x: Ptr<T>,
    residual: PtrMut<T>,
    weight: Ptr<T>,
    out: PtrMut<T>,
    columns: i32,
    epsilon: f32,
) {
    let at = arange(0, BLOCK);
    let mask = at < columns;
    let row = program_id(0) * columns + at;
    let sum = load(x + row).mask(mask).to::<f32>() + load(residual + row).mask(mask).to::<f32>();
    let scale = rsqrt((sum * sum).sum(0) / columns.to::<f32>() + epsilon);
    let weight = load(weight + at).mask(mask).to::<f32>();
    store(residual + row, sum.to::<T>()).mask(mask);
    store(out + row, (sum * scale * weight).to::<T>()).mask(mask);
}

/// `residual += x`, and each row of `[rows, columns]` of it normalised, in `f32` and rounded once. A setting's
/// `block` is a power of two that holds a row.
pub fn launch<T: Float + Number>(
    x: &Buffer<T>,
    residual: &mut Buffer<T>,
    weight: &Buffer<T>,
    out: &mut Buffer<T>,
    epsilon: f32,
    [rows, columns]: [usize; 2],
    setting: &Setting,
) -> Result<()> {
    for len in [x.len(), residual.len(), out.len()] {
        check_shape(len, &[rows, columns])?;
    }
    check_shape(weight.len(), &[columns])?;
    let block = setting.block_or(columns.next_power_of_two());
    let kernel = add_rms_norm::<T>().block(block).by(setting);
    let device = out.device().clone();
    kernel.launch(
        &device,
        rows,
        (x, residual, weight, out, extent(columns)?, epsilon),
    )
}

/// The sum and its normalisation, for one row, rounded once.
pub fn reference(
    x: &[f32],
    residual: &[f32],
    weight: &[f32],
    epsilon: f32,
) -> (Vec<f32>, Vec<f32>) {
    let sum: Vec<f32> = x
        .iter()
        .zip(residual)
        .map(|(x, residual)| x + residual)
        .collect();
    let squares: f64 = sum.iter().map(|&x| f64::from(x).powi(2)).sum();
    let scale = 1.0 / (squares / sum.len() as f64 + f64::from(epsilon)).sqrt();
    let normal = |(&x, &weight): (&f32, &f32)| (f64::from(x) * scale * f64::from(weight)) as f32;
    let out = sum.iter().zip(weight).map(normal).collect();
    (sum, out)
}

/// The settings worth trying.
pub fn space([_, columns]: [usize; 2]) -> Vec<Setting> {
    space::whole_rows(columns)
}
