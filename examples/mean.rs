//! The mean of a tensor `[outer, middle, inner]` over its middle axis.
//!
//! The accumulator adds the tiles of the loop in the order of one tree over the whole axis, so the
//! tile sizes never change bits.

use exactile::prelude::*;

#[kernel(ROWS = 64, COLUMNS = 16)]
fn mean<T: Float, const ROWS: usize, const COLUMNS: usize>(x: Tensor<T, 3>, out: TensorMut<T, 2>) {
    let (column, outer) = (program_id(0), program_id(1));
    let tiles = x.tile([1, ROWS, COLUMNS]);
    let mut sum = sum_accumulator::<f32>([1, COLUMNS]);
    for row in range(0, x.extent(1)).step(ROWS) {
        let tile = load(tiles.at_offset((outer, row, column * COLUMNS)));
        sum.add(tile, 1);
    }
    let mean = sum.finish() / x.extent(1).to::<f32>();
    store(out.tile([1, COLUMNS]).at((outer, column)), mean.to::<T>());
}

fn main() {
    println!("{:?}", mean::<f32>(mean::Config::default()));
}
