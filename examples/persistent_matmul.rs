//! A matrix product by seven programs: each takes tiles in turns.

use exactile::assert_bits_equal;
use exactile::prelude::*;

#[kernel]
fn product<const SIDE: usize>(a: Tensor<f32, 2>, b: Tensor<f32, 2>, c: TensorMut<f32, 2>) {
    let [rows, columns] = [0, 1].map(|axis| (c.extent(axis) + (SIDE - 1)) / SIDE);
    for tile in range(program_id(0), rows * columns).step(num_programs(0)) {
        let (row, column) = swizzle_2d(tile / columns, tile % columns, rows, columns, 8);
        let mut sum = zeros::<f32>([SIDE, SIDE]);
        for k in range(0, a.extent(1)).step(16) {
            let left = a.tile([SIDE, 16]).at_offset((row * SIDE, k)).load();
            let right = b.tile([16, SIDE]).at_offset((k, column * SIDE)).load();
            sum = dot(left, right, sum);
        }
        c.tile([SIDE, SIDE]).at((row, column)).store(sum);
    }
}

fn run(device: &Device, side: usize) -> exactile::Result<Vec<f32>> {
    let x: Vec<f32> = (0..6000).map(|i| i as f32 / 7.0).collect();
    let x = Buffer::from_slice(device, &x)?;
    let mut c = Buffer::<f32>::zeros(device, 8000)?;
    let (a, b) = (x.view([100, 60])?, x.view([60, 80])?);
    product()
        .side(side)
        .launch(device, 7, (a, b, c.view_mut([100, 80])?))?;
    c.to_vec()
}

fn main() -> exactile::Result<()> {
    let golden = run(&Device::cpu(), 32)?;
    assert_bits_equal(&run(&Device::interpreter(), 16)?, &golden);
    if let Ok(gpu) = Device::cuda(0) {
        assert_bits_equal(&run(&gpu, 64)?, &golden);
    }
    Ok(())
}
