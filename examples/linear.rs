//! A layer of a network by tensor cores, with bias and activation in one pass: a row has the same bits alone as in a batch.

use exactile::prelude::*;
use exactile::{Result, bf16};
use exactile_kernels::activation::Activation;
use exactile_kernels::{Setting, linear};

const INPUTS: usize = 96;
const OUTPUTS: usize = 80;

/// The layer of the first rows of a batch, by tiles of so many rows.
fn layer(device: &Device, rows: usize, block: usize) -> Result<Vec<bf16>> {
    let input = |count: usize, step: usize| {
        let number = |i: usize| bf16::from_f32((i * step % 97) as f32 / 48.0 - 1.0);
        Buffer::from_slice(device, &(0..count).map(number).collect::<Vec<_>>())
    };
    let (x, weight) = (input(rows * INPUTS, 7)?, input(OUTPUTS * INPUTS, 11)?);
    let bias = input(OUTPUTS, 13)?;
    let mut out = Buffer::zeros(device, rows * OUTPUTS)?;
    let setting = Setting {
        block,
        width: 64,
        ..Setting::default()
    };
    let (shape, gelu) = ([rows, OUTPUTS, INPUTS], Some(Activation::Gelu));
    linear([&x, &weight], Some(&bias), gelu, &mut out, shape, &setting)?;
    out.to_vec()
}

fn main() -> Result<()> {
    let alone = layer(&Device::cpu(), 1, 16)?;
    assert!(layer(&Device::cpu(), 70, 64)?.starts_with(&alone));
    if let Ok(gpu) = Device::cuda(0) {
        assert!(layer(&gpu, 70, 128)?.starts_with(&alone));
    }
    Ok(())
}
