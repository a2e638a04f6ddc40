//! What a kernel has no parameter for cannot be set.

use exactile::prelude::*;

#[kernel]
fn fill<const BLOCK: usize>(x: PtrMut<f32>) {
    store(x + arange(0, BLOCK), 1.0);
}

fn main() {
    let _ = fill().blok(8);
    fill().block(8);
    let _ = fill(8);
    let _ = fill().block(1.5);
}
