//! The tuner: it runs the settings of a kernel, and takes the fastest of those with the right bits.

use exactile::autotune::{TuneKey, Tuner, with_output};
use exactile::{Array, Buffer, Determinism, Device, Result};
use exactile_kernels::matmul;

fn main() -> Result<()> {
    let device = Device::cuda(0).unwrap_or_else(|_| Device::cpu());
    let shape @ [m, n, k] = [100, 80, 60];
    let numbers = |len| (0..len).map(|i| (i % 7) as f32).collect::<Vec<f32>>();
    let golden = matmul::reference(&numbers(m * k), &numbers(k * n), shape);
    let golden = Array::from_slice([m * n], &golden)?;
    let a = Buffer::from_slice(&device, &numbers(m * k))?;
    let b = Buffer::from_slice(&device, &numbers(k * n))?;
    let c = Buffer::<f32>::zeros(&device, m * n)?;
    let mut workload = with_output(c, |c, setting| matmul(&a, &b, c, shape, setting));
    let key = TuneKey {
        kernel: "matmul".to_string(),
        extents: shape.to_vec(),
        variant: "f32".to_string(),
    };
    let (tuner, space) = (Tuner::forgetful(), matmul::space());
    let level = Determinism::Exact;
    let tuned = tuner.tune(&device, &key, level, &space, &[golden], &mut workload)?;
    println!("{:.1} us with {:?}", tuned.seconds * 1e6, tuned.config);
    Ok(())
}
