//! Memory of the program itself as arguments: on the host nothing is copied, and strides make views of it.

use exactile::prelude::*;
use exactile::{Result, TensorView, TensorViewMut};

/// Subtracts from each row its mean.
#[kernel]
fn centre<const COLUMNS: usize>(x: Tensor<f32, 2>, out: TensorMut<f32, 2>) {
    let place = (program_id(0), 0);
    let row = load(x.tile([1, COLUMNS]).at(place));
    let mean = row.sum(1) / x.extent(1).to::<f32>();
    store(out.tile([1, COLUMNS]).at(place), row - mean.expand(1));
}

fn main() -> Result<()> {
    let (rows, columns) = (4, 6);
    let numbers: Vec<f32> = (0..rows * columns).map(|i| i as f32).collect();
    let mut centred = vec![0.0; rows * columns];
    let kernel = centre().columns(8);
    let x = TensorView::of_slice(&numbers, [rows, columns])?;
    let out = TensorViewMut::of_slice(&mut centred, [rows, columns])?;
    kernel.run(&Device::cpu(), rows, (x, out))?;
    assert_eq!(centred[..columns], [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5]);
    // The columns of the same numbers, as rows.
    let x = TensorView::of_strided_slice(&numbers, [columns, rows], [1, columns])?;
    let out = TensorViewMut::of_strided_slice(&mut centred, [columns, rows], [1, columns])?;
    kernel.run(&Device::cpu(), columns, (x, out))?;
    assert_eq!(centred[..columns], [-9.0; 6]);
    println!("{rows} rows and {columns} columns have a mean of 0");
    Ok(())
}
