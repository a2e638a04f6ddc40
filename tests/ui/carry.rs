//! What `#[derive(Carry)]` takes, and two numbers of the host where one must tell the type.

use exactile::prelude::*;

#[derive(Clone, Copy, Carry)]
struct Window {
    sum: Scalar<f32>,
    width: usize,
}

#[derive(Clone, Copy, Carry)]
enum Side {
    Left,
    Right,
}

#[kernel]
fn chooses(out: PtrMut<f32>, n: i32) {
    let at = arange(0, 16);
    store(out + at, select(at < n, 1.0, 0));
}

fn main() {}
