//! Rows of a table by their numbers; the gradient of the table is [`crate::segment_sum::embedding_backward`].

use exactile::prelude::*;
use exactile::{Number, Result};

use crate::setting::{Settable, Setting, check_shape, extent};
use crate::space;

/// A row a program, `BLOCK` columns at a time.
#[kernel(BLOCK = 256)]
pub fn embedding<T: Element, #[meta(256..=1024)] const BLOCK: usize>(
    table: Ptr<T>,
    indices: Ptr<i32>,
    out: PtrMut<T>,
    columns: i32,
) {
    let row = load(indices + program_id(0)).to::<i64>();
    for start in range(0, columns).step(BLOCK) {
        let at = start + arange(0, BLOCK);
        let mask = at < columns;
        let value = load(table + row * columns + at).mask(mask);
        store(out + program_id(0) * columns + at, value).mask(mask);
    }
}

/// `out[i] = table[indices[i]]` for rows of `columns` elements. A setting's `block` is the columns that are taken at a
/// time.
///
/// # Errors
/// A launch tells of an index that is beyond the table when somebody waits for it.
pub fn launch<T: Element + Number>(
    table: &Buffer<T>,
    indices: &Buffer<i32>,
    out: &mut Buffer<T>,
    columns: usize,
    setting: &Setting,
) -> Result<()> {
    check_shape(out.len(), &[indices.len(), columns])?;
    let kernel = embedding::<T>().block(setting.block_or(256)).by(setting);
    let device = out.device().clone();
    kernel.launch(
        &device,
        indices.len(),
        (table, indices, out, extent(columns)?),
    )
}

/// What it copies.
pub fn reference(table: &[f32], indices: &[i32], columns: usize) -> Vec<f32> {
    let row = |&index: &i32| &table[index as usize * columns..][..columns];
    indices.iter().flat_map(row).copied().collect()
}

/// The settings worth trying.
pub fn space() -> Vec<Setting> {
    space::space(
        &embedding::<f32>().range_of("BLOCK"),
        &[0],
        &[None],
        |block, _| block,
    )
}
