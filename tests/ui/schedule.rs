//! A default of the schedule names a field of it.

use exactile::prelude::*;

#[kernel(BLOCK = 64, wraps = 8)]
fn scheduled<const BLOCK: usize>(x: PtrMut<f32>) {
    store(x + arange(0, BLOCK), 1.0);
}

fn main() {}
