//! A first kernel: offsets, a mask for the tail, loads and a store.

use exactile::Result;
use exactile::prelude::*;

/// Adds `BLOCK` elements a program.
#[kernel(BLOCK = 1024, grid = n.div_ceil(BLOCK))]
fn add<T: Numeric, const BLOCK: usize>(x: Ptr<T>, y: Ptr<T>, out: PtrMut<T>, n: i32) {
    let offsets = program_id(0) * BLOCK + arange(0, BLOCK);
    let mask = offsets < n;
    let sum = load(x + offsets).mask(mask) + load(y + offsets).mask(mask);
    store(out + offsets, sum).mask(mask);
}

fn main() -> Result<()> {
    let device = Device::cuda(0).unwrap_or_else(|_| Device::cpu());
    let n = 5000;
    let x = Buffer::from_slice(&device, &vec![1.5f32; n])?;
    let y = Buffer::from_slice(&device, &vec![2.25f32; n])?;
    let mut out = Buffer::<f32>::zeros(&device, n)?;
    add::<f32>().launch(&device, (), (&x, &y, &mut out, n as i32))?;
    assert!(out.to_vec()?.iter().all(|&sum| sum == 3.75));
    println!("{n} sums on {device}");
    Ok(())
}
