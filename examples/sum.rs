//! The sum of many numbers has the bits of one tree over all of them, whatever adds them up.

use exactile::{Buffer, Device, Result, assert_bits_equal};
use exactile_kernels::sum::{all_parts, all_space};
use exactile_kernels::{sum_all, tree};

fn main() -> Result<()> {
    let device = Device::cuda(0).unwrap_or_else(|_| Device::cpu());
    let numbers: Vec<f32> = (0..100_000).map(|i| (i as f32).sin()).collect();
    let x = Buffer::from_slice(&device, &numbers)?;
    let mut parts = Buffer::zeros(&device, all_parts(numbers.len()))?;
    let mut out = Buffer::zeros(&device, 1)?;
    for setting in &all_space()[..4] {
        sum_all(&x, &mut parts, &mut out, setting)?;
        assert_bits_equal(&out.to_vec()?, &[tree::sum(&numbers)]);
        println!("tiles of {}: {:?}", setting.block, out.to_vec()?);
    }
    Ok(())
}
