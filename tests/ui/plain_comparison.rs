//! Handles compare with nothing by themselves: a function with comparisons needs `#[device]`.

use exactile::prelude::*;

fn relu(x: Tile<f32>) -> Tile<f32> {
    select(x > 0.0, x, 0.0)
}

fn least<T: Float>(x: Scalar<T>, y: Scalar<T>) -> Scalar<T> {
    if x == y { x } else { y }
}

#[derive(Clone, Copy, PartialEq)]
struct Pair {
    one: Tile<f32>,
    other: Tile<f32>,
}

fn main() {}
