//! Both branches of an `if` have one type.

use exactile::prelude::*;

#[kernel]
fn branches(out: PtrMut<f32>, n: i32) {
    let value = if n > 3 { zeros::<f32>([16]) } else { zeros::<f16>([16]) };
    store(out + arange(0, 16), value);
}

fn main() {}
