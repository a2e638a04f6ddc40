//! A number decides no branch or loop.

use exactile::prelude::*;

#[kernel]
fn decides(x: PtrMut<f32>, n: i32) {
    while n {
        store(x, 2.0);
    }
    store(x, 1.0).mask(n > 3 && n);
}

fn main() {}
