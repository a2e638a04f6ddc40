//! Atomics write, and combine integers of 32 and 64 bits; floats have no bitwise ones, and narrow numbers are only added
//! and replaced.

use exactile::prelude::*;

#[kernel]
fn wrong(x: Ptr<i32>, tiny: PtrMut<u8>, small: PtrMut<i16>, halves: PtrMut<f16>, floats: PtrMut<f32>) {
    atomic_add(x, 1);
    atomic_add(small, 1);
    atomic_or(floats + arange(0, 16), 1.0);
    atomic_max(halves, 1.0);
    let _ = atomic_exchange(tiny, 1);
    let _ = atomic_compare_exchange(tiny, 1, 2);
}

fn main() {}
