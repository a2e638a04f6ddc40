//! All mistakes of one kernel come at once.

use exactile::prelude::*;

#[kernel(BLOKC = 128)]
fn mistakes<const BLOCK: usize>(x: &Buffer<f32>, out: PtrMut<f32>, n: i32) -> f32 {
    assert_eq!(BLOCK, 64);
    let host = [1.0; BLOCK];
    let mut acc = zeros::<f32>([BLOCK]);
    let alias = &mut acc;
    for i in 0..n {
        if i > 3 {
            break;
        }
        if i > 4 {
            return;
        }
    }
    unsafe { store(out, 1.0); }
}

fn main() {}
