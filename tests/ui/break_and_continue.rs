//! Jumps out of a traced loop cannot be traced.

use exactile::prelude::*;

#[kernel]
fn jumps(x: PtrMut<f32>, n: i32) {
    for i in 0..n {
        if i > 3 {
            break;
        }
        if i > 2 {
            continue;
        }
        store(x + i, 1.0);
    }
    loop {
        store(x, 1.0);
    }
}

fn main() {}
