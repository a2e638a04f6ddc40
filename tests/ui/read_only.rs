//! A `Ptr` is only read.

use exactile::prelude::*;

#[kernel]
fn writes(x: Ptr<f32>) {
    store(x + arange(0, 16), 1.0);
}

fn main() {}
