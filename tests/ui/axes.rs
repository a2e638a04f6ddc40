//! Axes that are inserted have numbers.

use exactile::prelude::*;

#[kernel]
fn inserts(out: PtrMut<f32>) {
    let row = full([4], 1.0f32);
    let tile = row.expand("first");
    store(out + arange(0, 4), tile);
}

fn main() {}
