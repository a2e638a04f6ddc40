//! Functions over classes of elements, and what loads, choices, indices and steps take.

use exactile::prelude::*;

fn flips<T: Bits>(x: Tile<T>) -> Tile<T> {
    !x
}

fn rest<T: Numeric>(x: Tile<T>) -> Tile<T> {
    x % x
}

#[kernel]
fn classes(x: PtrMut<f32>, y: PtrMut<f64>, n: i32) {
    let at = arange(0, 16);
    store(x + at, flips(load(x + at)));
    store(x + at, count_ones(load(x + at)));
    store(y + at, rest(load(y + at)));
    store(y + at, silu(load(y + at)));
    store(x + at, load(n));
    store(x + at, select(n, load(x + at), 0.0));
    for i in 2.5..n {
        store(x + i, 1.0);
    }
    if n && (n > 0) {
        store(x, cdiv(2.5, 2));
    }
    store(x + at, dot(load(x + at), load(y + at), load(x + at)));
    for i in range(0, 2.5) {
        store(x + i, 1.0);
    }
    for i in range(0, n).step(2.5) {
        store(x + i, 1.0);
    }
}

fn main() {}
