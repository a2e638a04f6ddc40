//! Every element of a scan has the bits of the sum of its prefix.

use exactile::{Buffer, Device, Result, assert_bits_equal};
use exactile_kernels::{Setting, cumsum, sum_rows};

fn main() -> Result<()> {
    let device = Device::cpu();
    let shape = [4, 1000];
    let numbers: Vec<f32> = (0..4000).map(|i| 1.0 / (i + 1) as f32).collect();
    let x = Buffer::from_slice(&device, &numbers)?;
    let mut prefixes = Buffer::zeros(&device, 4000)?;
    let mut sums = Buffer::zeros(&device, 4)?;
    cumsum(&x, &mut prefixes, shape, &Setting::default())?;
    sum_rows(&x, &mut sums, shape, &Setting::default())?;
    let prefixes = prefixes.to_vec()?;
    let last: Vec<f32> = prefixes.chunks(1000).map(|row| row[999]).collect();
    assert_bits_equal(&last, &sums.to_vec()?);
    println!("{last:?}");
    Ok(())
}
