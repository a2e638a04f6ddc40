//! Names that two things have, attributes without a plain name, and blocks that a kernel cannot hold.

use exactile::prelude::*;

#[kernel(tiles::BLOCK = 64)]
fn named<const BLOCK: usize>(BLOCK: i32, x: PtrMut<f32>) {
    let later = async { 1.0 };
    store(x, 1.0);
}

fn main() {}
