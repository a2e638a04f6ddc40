//! The two greatest elements of each row, and where they are.

use exactile::{Buffer, Device, Result};
use exactile_kernels::{Setting, topk_with_indices};

fn main() -> Result<()> {
    let device = Device::cpu();
    let x = Buffer::from_slice(&device, &[3, 9, 9, 1, 40, 10, 20, 30])?;
    let mut greatest = Buffer::<i32>::zeros(&device, 4)?;
    let mut columns = Buffer::zeros(&device, 4)?;
    let setting = Setting::default();
    topk_with_indices(&x, &mut greatest, &mut columns, [2, 4], &setting)?;
    assert_eq!(greatest.to_vec()?, [9, 9, 40, 30]);
    // Of equal elements the first one is named first.
    assert_eq!(columns.to_vec()?, [1, 2, 0, 3]);
    println!("{:?} at {:?}", greatest.to_vec()?, columns.to_vec()?);
    Ok(())
}
