//! `&&` and `||` are for conditions that branches take, not for masks.

use exactile::prelude::*;

#[kernel]
fn masks(x: PtrMut<f32>, n: i32) {
    let offsets = arange(0, 16);
    store(x + offsets, 1.0).mask(offsets < n && offsets > 3);
}

fn main() {}
