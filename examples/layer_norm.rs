//! A ready kernel with several outputs: layer normalisation, with what training needs of it.

use exactile::{Buffer, Device, Result};
use exactile_kernels::layer_norm::{Inputs, Outputs};
use exactile_kernels::{Setting, layer_norm};

fn main() -> Result<()> {
    let device = Device::cpu();
    let (rows, columns) = (2, 4);
    let inputs = Inputs {
        x: &Buffer::from_slice(&device, &[1.0f32, 2.0, 3.0, 4.0, -1.0, 0.0, 0.0, 1.0])?,
        weight: &Buffer::from_slice(&device, &[1.0; 4])?,
        bias: &Buffer::from_slice(&device, &[0.0; 4])?,
        epsilon: 1e-5,
    };
    let mut out = Buffer::zeros(&device, rows * columns)?;
    let (mut means, mut scales) = (Buffer::zeros(&device, rows)?, Buffer::zeros(&device, rows)?);
    let outputs = Outputs {
        out: &mut out,
        means: &mut means,
        scales: &mut scales,
    };
    layer_norm(inputs, outputs, [rows, columns], &Setting::default())?;
    for (row, mean) in out.to_vec()?.chunks(columns).zip(means.to_vec()?) {
        println!("mean {mean}: {row:?}");
    }
    Ok(())
}
