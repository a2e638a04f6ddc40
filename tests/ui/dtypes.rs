//! Element types do not mix silently, except `i32` with `i64`.

use exactile::prelude::*;

#[kernel]
fn mixes(x: Ptr<f32>, h: Ptr<f16>, out: PtrMut<f32>, n: i32, s: i64) {
    let offsets = arange(0, 16);
    let fine = offsets * n + s;
    let a = load(x + offsets);
    let b = load(h + offsets);
    let sum = a + b;
    let mask = a < b;
    store(out + offsets, b);
    store(out + fine, sum);
}

fn main() {}
