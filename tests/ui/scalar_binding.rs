//! A `mut` scalar that is given what a reduction gives: the compiler names the conversion.

use exactile::prelude::*;

#[kernel]
fn greatest(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let mut m = scalar::<f32>(f64::NEG_INFINITY);
    for i in range(0, n) {
        let row = load(x + i * 8 + arange(0, 8));
        m = maximum(m, row.max(0));
    }
    store(out, m);
}

fn main() {}
