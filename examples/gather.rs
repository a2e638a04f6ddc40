//! Picks elements of each row by their indices. An index outside the tile is an error that names the
//! line, the program and the index; the next read of the result tells it.

use exactile::{Buffer, Device, Result};
use exactile_kernels::{Setting, gather};

fn main() -> Result<()> {
    let device = Device::cpu();
    let x = Buffer::from_slice(&device, &[10.0f32, 11.0, 12.0, 20.0, 21.0, 22.0])?;
    let reversed = Buffer::from_slice(&device, &[2i64, 1, 0, 2, 1, 0])?;
    let mut out = Buffer::zeros(&device, 6)?;
    gather(&x, &reversed, &mut out, [2, 3], &Setting::default())?;
    assert_eq!(out.to_vec()?, [12.0, 11.0, 10.0, 22.0, 21.0, 20.0]);
    let wrong = Buffer::from_slice(&device, &[0i64, 1, 2, 0, 1, 5])?;
    gather(&x, &wrong, &mut out, [2, 3], &Setting::default())?;
    println!("{}", out.to_vec().expect_err("there are 3 columns"));
    Ok(())
}
