//! The grid and the constraint of a kernel are Rust of the host, and have its types.

use exactile::prelude::*;

#[kernel(grid = n.div_ceil(BLOK))]
fn unknown<const BLOCK: usize>(x: PtrMut<f32>, n: i32) {
    store(x + arange(0, BLOCK), n.to::<f32>());
}

#[kernel(grid = x)]
fn no_number(x: PtrMut<f32>) {
    store(x, 1.0);
}

#[kernel(grid = 1, constraint = x.len())]
fn no_condition(x: PtrMut<f32>) {
    store(x, 1.0);
}

fn main() -> exactile::Result<()> {
    let device = Device::cpu();
    let mut x = Buffer::<f32>::zeros(&device, 1)?;
    no_number().run(&device, "one", (&mut x,))
}
