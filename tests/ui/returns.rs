//! Early returns are understood at the end of branches of the function's own block.

use exactile::prelude::*;

#[kernel]
fn returns(x: PtrMut<f32>, n: i32) {
    for i in 0..n {
        if i > 3 {
            return;
        }
        store(x + i, 1.0);
    }
    let value = if n > 3 {
        return;
    } else {
        1.0
    };
    store(x, value);
}

fn main() {}
