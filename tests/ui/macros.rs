//! Macros whose arguments are not rewritten are refused with what to write instead.

use exactile::prelude::*;

#[kernel]
fn checks<const BLOCK: usize>(x: PtrMut<f32>, n: i32) {
    assert!(BLOCK > 16);
    assert_eq!(BLOCK % 16, 0, "multiple of 16");
    if matches!(BLOCK, 16 | 32) {
        store(x, 1.0);
    }
}

fn main() {}
