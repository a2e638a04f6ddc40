//! Softmax of each row: one program a row, the whole row in one tile.

use exactile::prelude::*;

/// `BLOCK` is the next power of two of the number of columns.
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

fn main() {
    println!("{:?}", softmax::<f32>(softmax::Config::new(1024)));
}
