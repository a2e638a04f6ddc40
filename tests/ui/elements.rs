//! Element types of tiles.

use exactile::prelude::*;

#[kernel]
fn fills(x: PtrMut<f32>, y: PtrMut<f64>) {
    let a = zeros::<usize>([16]);
    let b = zeros::<i32>([16]);
    store(x + arange(0, 16), copysign(b, b));
    store(y + arange(0, 16), load(y + arange(0, 16)) % 2.0);
}

fn main() {}
