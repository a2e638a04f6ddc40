//! What a parameter of a kernel can be.

use exactile::prelude::*;

#[kernel]
fn takes(x: Vec<f32>, n: usize) {
    let _ = (x, n);
}

fn main() {}
