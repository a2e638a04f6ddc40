//! Defaults name const generics of the kernel or fields of the schedule; `order` and `overflow` have one value.

use exactile::prelude::*;

#[kernel(BLOK = 128, BLOCK = 64, BLOCK = 32, warps = 8)]
fn defaults<const BLOCK: usize>(x: PtrMut<f32>) {
    store(x + arange(0, BLOCK), 1.0);
}

#[kernel(order = "rows", warps = 4)]
fn ordered(x: PtrMut<f32>) {
    store(x, 1.0);
}

#[kernel(overflow = "wraps")]
fn wraps(x: PtrMut<i32>) {
    store(x, 1);
}

#[device(overflow = true)]
fn sums(x: Scalar<i32>) -> Scalar<i32> {
    x + 1
}

fn main() {}
