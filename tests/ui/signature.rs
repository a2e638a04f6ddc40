//! What the signature of a kernel cannot have.

use exactile::prelude::*;

#[kernel]
async unsafe fn signature<'a, const SCALE: f32, const SCHEDULE: usize>(
    (x, y): (Ptr<f32>, Ptr<f32>),
    z: &'a Buffer<f32>,
) -> f32 {
    1.0
}

#[kernel]
fn method(self, x: PtrMut<f32>) {}

#[device(fast)]
fn arguments(x: Tile<f32>) -> Tile<f32> {
    x
}

#[kernel]
struct NoFunction;

fn main() {}
