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

fn main() {}
