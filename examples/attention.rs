//! Causal attention by tensor cores: the GPU gives what the CPU gives, and no tile size shows.

use exactile::prelude::*;
use exactile::{Result, bf16};
use exactile_kernels::attention::{Options, Shape};
use exactile_kernels::{Setting, attention};

const SHAPE: Shape = Shape::new(2, 192, 64, true);

fn run(device: &Device, queries: usize, keys: usize) -> Result<Vec<bf16>> {
    let count = SHAPE.heads * SHAPE.keys * SHAPE.width;
    let input = |step: usize| {
        let number = |i: usize| bf16::from_f32((i * step % 97) as f32 / 48.0 - 1.0);
        Buffer::from_slice(device, &(0..count).map(number).collect::<Vec<_>>())
    };
    let mut out = Buffer::zeros(device, count)?;
    let setting = Setting {
        block: queries,
        width: keys,
        ..Setting::default()
    };
    let inputs = [&input(7)?, &input(11)?, &input(13)?];
    attention(inputs, &mut out, SHAPE, Options::default(), &setting)?;
    out.to_vec()
}

fn main() -> Result<()> {
    let golden = run(&Device::cpu(), 64, 64)?;
    assert!(run(&Device::cpu(), 32, 128)? == golden);
    if let Ok(gpu) = Device::cuda(0) {
        assert!(run(&gpu, 128, 128)? == golden);
    }
    Ok(())
}
