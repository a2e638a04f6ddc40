//! A const generic of a kernel is a value of the trace, so it fits no const position.

use exactile::prelude::*;

fn helper<const N: usize>(x: Tile<f32>) -> Tile<f32> {
    x * N as f64
}

#[kernel]
fn constants<const BLOCK: usize>(x: PtrMut<f32>) {
    let offsets = arange(0, BLOCK);
    let host = [0.0; BLOCK];
    let array: [f32; BLOCK] = host;
    let scaled = helper::<BLOCK>(load(x + offsets));
    let braced = helper::<{ BLOCK * 2 }>(scaled);
    let chosen = match offsets.shape()[0] {
        BLOCK => 1.0,
        0..=BLOCK => 2.0,
        _ => 3.0,
    };
    store(x + offsets, braced * chosen);
}

fn main() {}
