//! Defaults name const generics of the kernel or fields of the schedule; `order` has one value.

use exactile::prelude::*;

#[kernel(BLOK = 128, BLOCK = 64, BLOCK = 32, warps = 8)]
fn defaults<const BLOCK: usize>(x: PtrMut<f32>) {
    store(x + arange(0, BLOCK), 1.0);
}

#[kernel(order = "rows", warps = 4)]
fn ordered(x: PtrMut<f32>) {
    store(x, 1.0);
}

fn main() {}
