//! Arrays of `ndarray` as arguments, and an array of ours as one of theirs: nothing is copied.

use exactile::interop::ndarray::{tensor, tensor_mut, view};
use exactile::prelude::*;
use ndarray::{Array2, Axis};

/// Divides each row by its sum.
#[kernel]
fn shares<const COLUMNS: usize>(x: Tensor<f32, 2>, out: TensorMut<f32, 2>) {
    let place = (program_id(0), 0);
    let row = load(x.tile([1, COLUMNS]).at(place));
    store(out.tile([1, COLUMNS]).at(place), row / row.sum(1).expand(1));
}

fn main() -> exactile::Result<()> {
    let (rows, columns) = (3, 5);
    let x = Array2::from_shape_fn((rows, columns), |(i, j)| (i * columns + j) as f32);
    let mut of_rows = Array2::zeros((rows, columns));
    let kernel = shares().columns(8);
    let arguments = (tensor(&x.view())?, tensor_mut(of_rows.view_mut())?);
    kernel.run(&Device::cpu(), rows, arguments)?;
    // The columns are the rows of a view.
    let mut of_columns = Buffer::zeros(&Device::cpu(), rows * columns)?;
    let arguments = (tensor(&x.t())?, of_columns.view_mut([columns, rows])?);
    kernel.run(&Device::cpu(), columns, arguments)?;
    let of_columns = view(of_columns.view([columns, rows])?)?;
    println!("{of_rows}\n{of_columns}");
    for sums in [of_rows.sum_axis(Axis(1)), of_columns.sum_axis(Axis(1))] {
        assert!(sums.iter().all(|sum| (sum - 1.0).abs() < 1e-6));
    }
    Ok(())
}

#[test]
fn runs() {
    main().expect("runs");
}
