//! A stored alias would change a binding behind the loop's back.

use exactile::prelude::*;

#[kernel]
fn aliases(x: PtrMut<f32>, n: i32) {
    let mut acc = zeros::<f32>([16]);
    let alias = &mut acc;
    let pair = (&mut acc, 1);
    let ref mut other = acc;
    let mut tiles = [acc, acc];
    let first = tiles.iter_mut().next();
    for i in 0..n {
        *alias += 1.0;
    }
    store(x + arange(0, 16), acc);
}

fn main() {}
