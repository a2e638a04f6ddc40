//! Counts how often each integer below a power of two occurs.

use exactile::{Buffer, Device, Result};
use exactile_kernels::{Setting, histogram};

fn main() -> Result<()> {
    let device = Device::cuda(0).unwrap_or_else(|_| Device::cpu());
    let numbers: Vec<i32> = (0..100_000).map(|i| i % 1000 * i % 16).collect();
    let x = Buffer::from_slice(&device, &numbers)?;
    let mut counts = Buffer::zeros(&device, 16)?;
    histogram(&x, &mut counts, &Setting::default())?;
    assert_eq!(counts.to_vec()?, histogram::reference(&numbers, 16));
    println!("{:?}", counts.to_vec()?);
    Ok(())
}
