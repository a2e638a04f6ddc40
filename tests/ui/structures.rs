//! What is no structure of parameters.

use exactile::prelude::*;

#[derive(KernelArguments)]
struct Window<'a> {
    start: &'a f32,
}

#[derive(KernelArguments)]
enum Side {
    Left,
    Right,
}

#[derive(KernelArguments)]
struct Step {
    rates: (f32, [i64; 2]),
    count: Scalar<i32>,
}

fn main() {}
