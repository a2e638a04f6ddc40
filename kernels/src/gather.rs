//! Elements of each row by their indices: `out[r, c] = x[r, index[r, c]]`, as `torch.gather` along
//! the last axis.

use exactile::prelude::*;
use exactile::{Number, Result};

use crate::setting::{Settable, Setting, check_shape, extent};
use crate::space;

/// `BLOCK` is a power of two that holds a row; an index is below the number of columns.
#[kernel]
pub fn gather_rows<T: Numeric, const BLOCK: usize>(
    x: Ptr<T>,
    index: Ptr<i64>,
    out: PtrMut<T>,
    columns: i32,
) {
    let offsets = arange(0, BLOCK);
    let mask = offsets < columns;
    let start = program_id(0) * columns;
    let row = load(x + start + offsets).mask(mask);
    let indices = load(index + start + offsets).mask(mask);
    store(out + start + offsets, gather(row, indices, 0)).mask(mask);
}

/// Picks elements of each row of `[rows, columns]` by indices below the number of columns. A setting's
/// `block` is a power of two that holds a row.
pub fn launch<T: Numeric + Number>(
    x: &Buffer<T>,
    index: &Buffer<i64>,
    out: &mut Buffer<T>,
    [rows, columns]: [usize; 2],
    setting: &Setting,
) -> Result<()> {
    for len in [x.len(), index.len(), out.len()] {
        check_shape(len, &[rows, columns])?;
    }
    let block = setting.block_or(columns.next_power_of_two());
    let kernel = gather_rows::<T>().block(block).by(setting);
    let device = out.device().clone();
    kernel.launch(&device, rows, (x, index, out, extent(columns)?))
}

/// What it computes; `None` where an index has no element.
pub fn reference(x: &[f32], index: &[i64], columns: usize) -> Option<Vec<f32>> {
    let rows = x.chunks(columns).zip(index.chunks(columns));
    let picked = rows.flat_map(|(row, index)| {
        let pick = |&at: &i64| row.get(usize::try_from(at).ok()?).copied();
        index.iter().map(pick)
    });
    picked.collect()
}

/// The settings worth trying.
pub fn space([_, columns]: [usize; 2]) -> Vec<Setting> {
    space::whole_rows(columns)
}
