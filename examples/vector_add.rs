//! The sum of two vectors: offsets, a mask for the tail, loads and a store.

use exactile::prelude::*;

#[kernel(BLOCK = 1024)]
fn vector_add<T: Numeric, const BLOCK: usize>(x: Ptr<T>, y: Ptr<T>, out: PtrMut<T>, n: i32) {
    let offsets = program_id(0) * BLOCK + arange(0, BLOCK);
    let mask = offsets < n;
    let sum = load(x + offsets).mask(mask) + load(y + offsets).mask(mask);
    store(out + offsets, sum).mask(mask);
}

fn main() {
    println!("{:?}", vector_add::<f32>(vector_add::Config::default()));
}
