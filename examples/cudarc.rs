//! Slices and streams of `cudarc`: launches in its stream, in order with its own work, on its memory.

use std::error::Error;

use cudarc::driver::CudaContext;
use exactile::interop::cudarc::{give_back, lend, lend_mut, stream, take};
use exactile::prelude::*;

#[kernel(BLOCK = 256)]
fn add<const BLOCK: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: i32) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let inside = at < n;
    let sum = load(x + at).mask(inside) + load(y + at).mask(inside);
    store(y + at, sum).mask(inside);
}

fn main() -> Result<(), Box<dyn Error>> {
    let Ok(device) = Device::cuda(0) else {
        println!("there is no GPU");
        return Ok(());
    };
    let theirs = CudaContext::new(0)?.new_stream()?;
    let x = theirs.clone_htod(&vec![1.0f32; 1000])?;
    let mut y = theirs.clone_htod(&vec![2.0f32; 1000])?;
    // Lent for a launch in another stream of ours, which waits for theirs, and theirs for it.
    lend(&device, &theirs, &x, |x| {
        let other = device.stream()?;
        lend_mut(&device, &theirs, &mut y, |y| {
            add().launch(&other, 4, (x, y, 1000))
        })
    })?;
    // Taken over, with a launch in their stream.
    let (x, mut y) = (take(&device, x)?, take(&device, y)?);
    add().launch(&stream(&device, &theirs)?, 4, (&x, &mut y, 1000))?;
    let y = theirs.clone_dtoh(&give_back(y)?)?;
    assert!(y.iter().all(|&y| y == 4.0));
    println!("{} numbers are {}", y.len(), y[0]);
    Ok(())
}
