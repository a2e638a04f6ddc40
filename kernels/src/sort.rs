//! Sorts each row: NaN last, -0 before +0.

use exactile::prelude::*;
use exactile::{Number, Result};

use crate::setting::{Settable, Setting, check_shape, ensure};
use crate::space;

/// `COLUMNS` is the length of a row, a power of two; a program sorts `ROWS` rows.
#[kernel(ROWS = 4, grid = x.extent(0).div_ceil(ROWS))]
pub fn sort<T: Numeric, #[meta(1..=16)] const ROWS: usize, const COLUMNS: usize>(
    x: Tensor<T, 2>,
    out: TensorMut<T, 2>,
) {
    let place = (program_id(0), 0);
    let rows = load(x.tile([ROWS, COLUMNS]).at(place));
    store(out.tile([ROWS, COLUMNS]).at(place), rows.sort(1));
}

/// Sorts each row of `[rows, columns]`, a power of two of columns. A setting's `block` is the rows of a
/// program.
pub fn launch<T: Numeric + Number>(
    x: &Buffer<T>,
    out: &mut Buffer<T>,
    [rows, columns]: [usize; 2],
    setting: &Setting,
) -> Result<()> {
    check_shape(x.len(), &[rows, columns])?;
    check_shape(out.len(), &[rows, columns])?;
    check_columns(columns)?;
    let kernel = sort::<T>()
        .columns(columns)
        .rows(setting.block_or(rows_of(columns)))
        .by(setting);
    let device = out.device().clone();
    let (view, sorted) = (x.view([rows, columns])?, out.view_mut([rows, columns])?);
    kernel.launch(&device, (), (view, sorted))
}

/// Rows of a program, no more than a GPU has registers for.
pub(crate) fn rows_of(columns: usize) -> usize {
    ((1 << 18) / columns.max(1)).clamp(1, 4)
}

/// A row is a tile.
pub(crate) fn check_columns(columns: usize) -> Result<()> {
    ensure(columns.is_power_of_two(), || {
        format!("rows of {columns} elements are no power of two")
    })
}

/// What it computes.
pub fn reference(x: &[f32], columns: usize) -> Vec<f32> {
    let mut out = x.to_vec();
    for row in out.chunks_mut(columns) {
        row.sort_by(order);
    }
    out
}

/// The order of a sort: NaN last, -0 before +0.
pub(crate) fn order(one: &f32, other: &f32) -> std::cmp::Ordering {
    let nan = one.is_nan().cmp(&other.is_nan());
    nan.then(one.total_cmp(other))
}

/// The settings worth trying.
pub fn space([_, columns]: [usize; 2]) -> Vec<Setting> {
    space::space(&sort::<f32>().range_of("ROWS"), &[0], &[None], |rows, _| {
        rows * columns
    })
}
