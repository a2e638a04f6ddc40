//! An integer literal is no float.

use exactile::prelude::*;

#[kernel]
fn scales<const BLOCK: usize>(x: PtrMut<f32>) {
    let offsets = arange(0, BLOCK);
    let value = load(x + offsets);
    store(x + offsets, value * 2);
    store(x + offsets, value / BLOCK);
    store(x + offsets, 1 - value);
    store(x, 1 - load(x));
}

fn main() {}
