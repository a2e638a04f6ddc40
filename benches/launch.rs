//! The host's side of a launch: `cargo bench --bench launch`. Kernels of one small program, so that their own
//! work does not count.

#![expect(unsafe_code, reason = "unchecked launches are timed as well")]

use std::error::Error;
use std::time::Instant;

use exactile::prelude::*;

#[kernel(BLOCK = 4)]
fn add<const BLOCK: usize>(x: Ptr<f32>, y: Ptr<f32>, z: PtrMut<f32>, n: i32) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let inside = at < n;
    let sum = load(x + at).mask(inside) + load(y + at).mask(inside);
    store(z + at, sum).mask(inside);
}

#[kernel]
fn scale_and_add(
    x: Tensor<f32, 2>,
    y: Tensor<f32, 2>,
    z: TensorMut<f32, 2>,
    a: f32,
    b: f32,
    c: f32,
    d: f32,
    row: i32,
    column: i32,
    times: i64,
) {
    let x = load(x.tile([2, 2]).at([row, column]));
    let y = load(y.tile([2, 2]).at([row, column]));
    let sum = x * a + y * b + c * d + times.to::<f32>();
    store(z.tile([2, 2]).at([row, column]), sum);
}

const LAUNCHES: u32 = 20_000;
const ROUNDS: usize = 9;

/// Prints the least and the median nanoseconds of a launch.
fn measure(name: &str, mut launch: impl FnMut() -> exactile::Result<()>) -> exactile::Result<()> {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        for _ in 0..LAUNCHES {
            launch()?;
        }
        times.push(begin.elapsed().as_nanos() / u128::from(LAUNCHES));
    }
    times.sort_unstable();
    println!(
        "{name:32} {:6} ns, median {:6} ns",
        times[0],
        times[ROUNDS / 2]
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::cpu_single_thread();
    let x = Buffer::from_slice(&device, &[1.0f32; 4])?;
    let y = Buffer::from_slice(&device, &[2.0f32; 4])?;
    let mut z = Buffer::<f32>::zeros(&device, 4)?;
    let kernel = add();
    measure("add, proved", || {
        kernel.launch(&device, 1, (&x, &y, &mut z, 4))
    })?;
    measure("add, proved, made anew", || {
        add().launch(&device, 1, (&x, &y, &mut z, 4))
    })?;
    // SAFETY: the mask keeps every access inside.
    measure("add, unchecked", || unsafe {
        kernel.launch_unchecked(&device, 1, (&x, &y, &mut z, 4))
    })?;
    device.trust_proofs(false);
    measure("add, checked", || {
        kernel.launch(&device, 1, (&x, &y, &mut z, 4))
    })?;
    device.trust_proofs(true);
    let kernel = scale_and_add();
    measure("three tensors of ten, proved", || {
        let (x, y, z) = (x.view([2, 2])?, y.view([2, 2])?, z.view_mut([2, 2])?);
        kernel.launch(&device, 1, (x, y, z, 1.0, 2.0, 3.0, 4.0, 0, 0, 1i64))
    })?;
    measure("three tensors of ten, unchecked", || {
        let (x, y, z) = (x.view([2, 2])?, y.view([2, 2])?, z.view_mut([2, 2])?);
        let arguments = (x, y, z, 1.0, 2.0, 3.0, 4.0, 0, 0, 1i64);
        // SAFETY: tiles of tensors are in bounds.
        unsafe { kernel.launch_unchecked(&device, 1, arguments) }
    })?;
    Ok(())
}
