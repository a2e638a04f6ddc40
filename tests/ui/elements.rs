//! Element types of tiles.

use exactile::prelude::*;

#[kernel]
fn fills(x: PtrMut<f32>) {
    let a = zeros::<usize>([16]);
    let b = zeros::<i32>([16]);
    store(x + arange(0, 16), copysign(b, b));
    store(x + arange(0, 16), load(x + arange(0, 16)) % 2.0);
}

fn main() {}
