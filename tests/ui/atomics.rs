//! Atomics write, and combine integers of 32 and 64 bits; floats are only added and exchanged.

use exactile::prelude::*;

#[kernel]
fn wrong(x: Ptr<i32>, small: PtrMut<i16>, floats: PtrMut<f32>) {
    atomic_add(x, 1);
    atomic_add(small, 1);
    atomic_max(floats + arange(0, 16), 1.0);
    let _ = atomic_exchange(small, 1);
    let _ = atomic_compare_exchange(floats, 1.0, 2.0);
}

fn main() {}
