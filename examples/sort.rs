//! Sorts rows: NaN last, -0 before +0.

use exactile::{Buffer, Device, Result};
use exactile_kernels::{Setting, sort};

fn main() -> Result<()> {
    let device = Device::cpu();
    let x = Buffer::from_slice(&device, &[0.0f32, f32::NAN, -0.0, -3.5, 4.0, 3.0, 2.0, 1.0])?;
    let mut out = Buffer::zeros(&device, 8)?;
    sort(&x, &mut out, [2, 4], &Setting::default())?;
    let sorted = out.to_vec()?;
    println!("{sorted:?}");
    assert!(sorted[3].is_nan() && sorted[1].is_sign_negative());
    assert_eq!(sorted[4..], [1.0, 2.0, 3.0, 4.0]);
    Ok(())
}
