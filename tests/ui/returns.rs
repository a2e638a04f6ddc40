//! A `return` is a statement.

use exactile::prelude::*;

#[kernel]
fn returns(x: PtrMut<f32>, n: i32) {
    let value = if n > 3 {
        return;
    } else {
        1.0
    };
    store(x, value);
}

fn main() {}
