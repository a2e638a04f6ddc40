//! A tile cannot decide a branch or loop; nor can a number.

use exactile::prelude::*;

#[kernel]
fn decides(x: PtrMut<f32>, n: i32) {
    let offsets = arange(0, 16);
    if offsets < n {
        store(x + offsets, 1.0);
    }
    while n {
        store(x, 2.0);
    }
}

fn main() {}
