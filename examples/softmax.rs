//! The example of the README: a kernel, launched with several tile sizes and on several devices.

use exactile::assert_bits_equal;
use exactile::prelude::*;

/// Softmax of each row; `BLOCK` is a power of two that holds a row.
#[kernel]
fn softmax<T: Float, const BLOCK: usize>(x: Ptr<T>, out: PtrMut<T>, columns: i32) {
    let offsets = arange(0, BLOCK);
    let mask = offsets < columns;
    let start = program_id(0) * columns;
    let row = load(x + start + offsets)
        .mask(mask)
        .other(f64::NEG_INFINITY);
    let row = row.to::<f32>();
    let e = exp(row - row.max(0));
    store(out + start + offsets, (e / e.sum(0)).to::<T>()).mask(mask);
}

fn run(device: &Device, block: usize) -> exactile::Result<Vec<f32>> {
    let (rows, columns) = (3, 5);
    let numbers: Vec<f32> = (0..rows * columns).map(|i| i as f32 / 4.0).collect();
    let x = Buffer::from_slice(device, &numbers)?;
    let mut out = Buffer::zeros(device, rows * columns)?;
    let kernel = softmax::<f32>().block(block);
    kernel.launch(device, rows, (&x, &mut out, columns as i32))?;
    out.to_vec()
}

fn main() -> exactile::Result<()> {
    let golden = run(&Device::cpu(), 8)?;
    // Another tile size, the specification, and a GPU where there is one: the same bits.
    assert_bits_equal(&run(&Device::cpu(), 64)?, &golden);
    assert_bits_equal(&run(&Device::interpreter(), 8)?, &golden);
    if let Ok(gpu) = Device::cuda(0) {
        assert_bits_equal(&run(&gpu, 32)?, &golden);
    }
    Ok(())
}
