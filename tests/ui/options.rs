//! What a launch cannot leave out as a whole.

use exactile::prelude::*;

#[derive(KernelArguments)]
struct Row {
    start: Ptr<f32>,
    end: Ptr<f32>,
}

#[kernel]
fn of_structures(row: Option<Row>, y: PtrMut<f32>) {
    let _ = (row, y);
}

#[kernel]
fn of_arrays(rows: Option<[Ptr<f32>; 2]>, y: PtrMut<f32>) {
    let _ = (rows, y);
}

#[kernel]
fn of_tuples(row: Option<(Ptr<f32>, i32)>, y: PtrMut<f32>) {
    let _ = (row, y);
}

fn main() {}
