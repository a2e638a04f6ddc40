//! Atomics write, and combine integers of 32 and 64 bits; floats are only added.

use exactile::prelude::*;

#[kernel]
fn wrong(x: Ptr<i32>, small: PtrMut<i16>, floats: PtrMut<f32>) {
    atomic_add(x, 1);
    atomic_add(small, 1);
    atomic_max(floats + arange(0, 16), 1.0);
}

fn main() {}
