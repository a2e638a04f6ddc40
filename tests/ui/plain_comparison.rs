//! Handles compare with nothing by themselves: a function with comparisons needs `#[device]`.

use exactile::prelude::*;

fn relu(x: Tile<f32>) -> Tile<f32> {
    select(x > 0.0, x, 0.0)
}

fn main() {}
