//! The greatest elements of each row, with and without their indices.

use exactile::prelude::*;
use exactile::{Number, Result};

use crate::setting::{Settable, Setting, check_shape};
use crate::sort::{self, check_columns, rows_of};

/// The `K` greatest elements of each row, the greatest first. `COLUMNS` is the length of a row, a
/// power of two; a program takes `ROWS` rows.
#[kernel(ROWS = 4, K = 32, grid = x.extent(0).div_ceil(ROWS))]
pub fn topk<T: Numeric, #[meta(1..=16)] const ROWS: usize, const COLUMNS: usize, const K: usize>(
    x: Tensor<T, 2>,
    out: TensorMut<T, 2>,
) {
    let place = (program_id(0), 0);
    let rows = load(x.tile([ROWS, COLUMNS]).at(place));
    store(out.tile([ROWS, K]).at(place), rows.topk(K, 1));
}

/// The same with the column of each element; of equal elements the first.
#[kernel(ROWS = 4, K = 32, grid = x.extent(0).div_ceil(ROWS))]
pub fn topk_indices<
    T: Numeric,
    #[meta(1..=16)] const ROWS: usize,
    const COLUMNS: usize,
    const K: usize,
>(
    x: Tensor<T, 2>,
    out: TensorMut<T, 2>,
    indices: TensorMut<i64, 2>,
) {
    let place = (program_id(0), 0);
    let rows = load(x.tile([ROWS, COLUMNS]).at(place));
    let (values, columns) = rows.topk_with_indices(K, 1);
    store(out.tile([ROWS, K]).at(place), values);
    store(indices.tile([ROWS, K]).at(place), columns);
}

/// The greatest elements of each row of `[rows, columns]`, the greatest first: as many as `out` has room
/// for. Both counts are powers of two. A setting's `block` is the rows of a program.
pub fn launch<T: Numeric + Number>(
    x: &Buffer<T>,
    out: &mut Buffer<T>,
    [rows, columns]: [usize; 2],
    setting: &Setting,
) -> Result<()> {
    let k = kept(x.len(), out.len(), [rows, columns])?;
    let kernel = topk::<T>()
        .columns(columns)
        .rows(setting.block_or(rows_of(columns)))
        .k(k)
        .by(setting);
    let device = out.device().clone();
    let (view, greatest) = (x.view([rows, columns])?, out.view_mut([rows, k])?);
    kernel.launch(&device, (), (view, greatest))
}

/// As [`launch`], with the column of each element.
pub fn launch_with_indices<T: Numeric + Number>(
    x: &Buffer<T>,
    out: &mut Buffer<T>,
    indices: &mut Buffer<i64>,
    [rows, columns]: [usize; 2],
    setting: &Setting,
) -> Result<()> {
    let k = kept(x.len(), out.len(), [rows, columns])?;
    check_shape(indices.len(), &[rows, k])?;
    let kernel = topk_indices::<T>()
        .columns(columns)
        .rows(setting.block_or(rows_of(columns)))
        .k(k)
        .by(setting);
    let device = out.device().clone();
    let arguments = (
        x.view([rows, columns])?,
        out.view_mut([rows, k])?,
        indices.view_mut([rows, k])?,
    );
    kernel.launch(&device, (), arguments)
}

/// How many elements of a row there is room for.
fn kept(input: usize, output: usize, [rows, columns]: [usize; 2]) -> Result<usize> {
    check_shape(input, &[rows, columns])?;
    check_columns(columns)?;
    let k = output / rows.max(1);
    check_shape(output, &[rows, k])?;
    check_columns(k)?;
    Ok(k)
}

/// What it computes: elements and their columns; of equal elements the first.
pub fn reference(x: &[f32], columns: usize, k: usize) -> (Vec<f32>, Vec<i64>) {
    let mut greatest = Vec::new();
    for row in x.chunks(columns) {
        let mut pairs: Vec<(f32, i64)> = row.iter().copied().zip(0..).collect();
        pairs.sort_by(|one, other| sort::order(&other.0, &one.0));
        greatest.extend(pairs.into_iter().take(k));
    }
    greatest.into_iter().unzip()
}

/// The settings worth trying.
pub fn space(shape: [usize; 2]) -> Vec<Setting> {
    sort::space(shape)
}
