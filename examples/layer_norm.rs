//! Layer normalisation of each row, with weight and bias.

use exactile::prelude::*;

/// `BLOCK` is the next power of two of the number of columns.
#[kernel]
fn layer_norm<T: Float, const BLOCK: usize>(
    x: Ptr<T>,
    weight: Ptr<T>,
    bias: Ptr<T>,
    out: PtrMut<T>,
    columns: i32,
    epsilon: f32,
) {
    let offsets = arange(0, BLOCK);
    let mask = offsets < columns;
    let start = program_id(0) * columns;
    let count = columns.to::<f32>();
    let row = load(x + start + offsets).mask(mask).to::<f32>();
    let mean = row.sum(0) / count;
    let centred = select(mask, row - mean, 0.0);
    let variance = (centred * centred).sum(0) / count;
    let normal = centred * rsqrt(variance + epsilon);
    let weight = load(weight + offsets).mask(mask).to::<f32>();
    let bias = load(bias + offsets).mask(mask).to::<f32>();
    store(out + start + offsets, (normal * weight + bias).to::<T>()).mask(mask);
}

fn main() {
    println!("{:?}", layer_norm::<f32>(layer_norm::Config::new(1024)));
}
