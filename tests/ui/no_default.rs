//! A meta-parameter without a default must be stated.

use exactile::prelude::*;

#[kernel]
fn fill<const BLOCK: usize>(x: PtrMut<f32>) {
    store(x + arange(0, BLOCK), 1.0);
}

fn main() {
    let _ = fill(fill::Config::default());
}
