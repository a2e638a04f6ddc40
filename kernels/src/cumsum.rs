//! The sums of all prefixes of each row: one program a row, the whole row in one tile.

use exactile::prelude::*;
use exactile::{Number, Result};

use crate::setting::{Settable, Setting, check_shape, extent};
use crate::space;
use crate::tree;

/// `BLOCK` is the next power of two of the number of columns.
#[kernel]
pub fn cumsum<T: Float, const BLOCK: usize>(x: Ptr<T>, out: PtrMut<T>, columns: i32) {
    let offsets = arange(0, BLOCK);
    let mask = offsets < columns;
    let start = program_id(0) * columns;
    let row = load(x + start + offsets).mask(mask);
    store(out + start + offsets, row.cumsum(0)).mask(mask);
}

/// The sums of all prefixes of each row of `[rows, columns]`. A setting's `block` is a power of two that
/// holds a row.
pub fn launch<T: Float + Number>(
    x: &Buffer<T>,
    out: &mut Buffer<T>,
    [rows, columns]: [usize; 2],
    setting: &Setting,
) -> Result<()> {
    check_shape(x.len(), &[rows, columns])?;
    check_shape(out.len(), &[rows, columns])?;
    let block = setting.block_or(columns.next_power_of_two());
    let kernel = cumsum::<T>().block(block).by(setting);
    let device = out.device().clone();
    kernel.launch(&device, rows, (x, out, extent(columns)?))
}

/// What it computes, with its bits: each element is the sum of its prefix.
pub fn reference(x: &[f32], columns: usize) -> Vec<f32> {
    let prefixes = |row: &'_ [f32]| -> Vec<f32> {
        (1..=row.len()).map(|end| tree::sum(&row[..end])).collect()
    };
    x.chunks(columns).flat_map(prefixes).collect()
}

/// The settings worth trying.
pub fn space([_, columns]: [usize; 2]) -> Vec<Setting> {
    space::whole_rows(columns)
}
