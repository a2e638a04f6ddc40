//! The logarithm of the softmax of each row, by chunks, for any number of columns.

use exactile::prelude::*;
use exactile::{Number, Result};

use crate::setting::{LANE_SCORES, Settable, Setting, check_shape, extent};
use crate::space;

/// A row a program, `BLOCK` columns at a time.
#[kernel(BLOCK = 1024)]
pub fn log_softmax<T: SingleFloat, #[meta(512..=4096)] const BLOCK: usize>(
    x: Ptr<T>,
    out: PtrMut<T>,
    columns: i32,
) {
    let row = program_id(0) * columns;
    let mut total = log_sum_exp_accumulator([]);
    for start in range(0, columns).step(BLOCK).stages(2) {
        let at = start + arange(0, BLOCK);
        total.add_masked(load(x + row + at).mask(at < columns), at < columns, 0);
    }
    let total = total.finish().scalar();
    for start in range(0, columns).step(BLOCK).stages(2) {
        let at = start + arange(0, BLOCK);
        let numbers = load(x + row + at).mask(at < columns).to::<f32>();
        store(out + row + at, (numbers - total).to::<T>()).mask(at < columns);
    }
}

/// `x - log(sum(exp(x)))` of each row of `[rows, columns]`, in `f32` and rounded once. A setting's `block` is the columns of a
/// chunk. The error is about 2^-23 of the greatest magnitude among the scores.
///
/// # Errors
/// What a launch refuses.
pub fn launch<T: SingleFloat + Number>(
    x: &Buffer<T>,
    out: &mut Buffer<T>,
    [rows, columns]: [usize; 2],
    setting: &Setting,
) -> Result<()> {
    check_shape(x.len(), &[rows, columns])?;
    check_shape(out.len(), &[rows, columns])?;
    let block = setting.block_or(1024);
    let setting = setting.with_lanes_of(LANE_SCORES, block);
    let kernel = log_softmax::<T>().block(block).by(&setting);
    let device = out.device().clone();
    kernel.launch(&device, rows, (x, out, extent(columns)?))
}

/// What it computes for one row, rounded once.
pub fn reference(row: &[f32]) -> Vec<f32> {
    let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sizes = row.iter().map(|&x| (f64::from(x) - f64::from(most)).exp());
    let size = sizes.sum::<f64>().ln() + f64::from(most);
    row.iter().map(|&x| (f64::from(x) - size) as f32).collect()
}

/// The settings worth trying.
pub fn space() -> Vec<Setting> {
    let blocks = log_softmax::<f32>().range_of("BLOCK");
    space::space(&blocks, &[0], &[None], |block, _| block)
}
