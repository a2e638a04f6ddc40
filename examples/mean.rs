//! A reduction over many tiles: the accumulator adds them in the order of one tree over the whole
//! axis, so the tile size never changes bits.

use exactile::prelude::*;
use exactile::{Result, assert_bits_equal};

/// The mean of a row, in tiles of `BLOCK` elements.
#[kernel]
fn row_mean<const BLOCK: usize>(x: Tensor<f32, 2>, out: TensorMut<f32, 1>) {
    let row = program_id(0);
    let tiles = x.tile([1, BLOCK]);
    let mut sum = sum_accumulator::<f32>([1]);
    for column in range(0, x.extent(1)).step(BLOCK) {
        sum.add(load(tiles.at_offset((row, column))), 1);
    }
    let mean = sum.finish() / x.extent(1).to::<f32>();
    store(out.tile([1]).at((row,)), mean);
}

fn means(block: usize) -> Result<Vec<f32>> {
    let (device, rows, columns) = (Device::cpu(), 3, 1000);
    let numbers: Vec<f32> = (0..rows * columns).map(|i| 1.0 / (i + 1) as f32).collect();
    let x = Buffer::from_slice(&device, &numbers)?;
    let mut out = Buffer::zeros(&device, rows)?;
    let arguments = (x.view([rows, columns])?, out.view_mut([rows])?);
    row_mean().block(block).launch(&device, rows, arguments)?;
    out.to_vec()
}

fn main() -> Result<()> {
    let golden = means(64)?;
    assert_bits_equal(&means(1024)?, &golden);
    println!("{golden:?}");
    Ok(())
}
