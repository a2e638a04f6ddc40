//! What a loop can run over.

use exactile::prelude::*;

#[kernel]
fn runs(x: PtrMut<f32>, n: i32) {
    let tile = arange(0, 16);
    for i in 0..tile.sum(0).to::<f32>() {
        store(x + i, 1.0);
    }
}

#[kernel]
fn open(x: PtrMut<f32>, n: i32) {
    for i in 0.. {
        store(x, 1.0);
    }
}

fn main() {}
