//! The cross entropy of each row of scores with a class, by chunks, for any number of classes.

use exactile::prelude::*;
use exactile::{Number, Result};

use crate::setting::{LANE_SCORES, Settable, Setting, check_shape, extent};
use crate::space;

/// A row a program, `BLOCK` classes at a time. A class below zero has no loss, and one that no column has is an
/// error of checked launches.
#[kernel(BLOCK = 1024)]
pub fn cross_entropy<T: SingleFloat, #[meta(1024..=4096)] const BLOCK: usize>(
    x: Ptr<T>,
    classes: Ptr<i32>,
    losses: PtrMut<f32>,
    columns: i32,
) {
    let row = x + program_id(0) * columns;
    let class = load(classes + program_id(0));
    device_assert(class < columns, "a class has a column");
    let mut total = log_sum_exp_accumulator([]);
    for start in range(0, columns).step(BLOCK).stages(2) {
        let at = start + arange(0, BLOCK);
        total.add_masked(load(row + at).mask(at < columns), at < columns, 0);
    }
    let chosen = load(row + class)
        .mask((class >= 0) & (class < columns))
        .to::<f32>();
    let loss = total.finish().scalar() - chosen;
    store(losses + program_id(0), select(class < 0, 0.0, loss));
}

/// `log(sum(exp(x))) - x[class]` of each row of `[rows, columns]`, in `f32`; 0 where the class is negative. A setting's
/// `block` is the classes of a chunk. The error is about 2^-23 of the greatest magnitude among the scores.
pub fn launch<T: SingleFloat + Number>(
    x: &Buffer<T>,
    classes: &Buffer<i32>,
    losses: &mut Buffer<f32>,
    [rows, columns]: [usize; 2],
    setting: &Setting,
) -> Result<()> {
    check_shape(x.len(), &[rows, columns])?;
    check_shape(classes.len(), &[rows])?;
    check_shape(losses.len(), &[rows])?;
    let block = setting.block_or(1024);
    let setting = setting.with_lanes_of(LANE_SCORES, block);
    let kernel = cross_entropy::<T>().block(block).by(&setting);
    let device = losses.device().clone();
    kernel.launch(&device, rows, (x, classes, losses, extent(columns)?))
}

/// The loss of one row.
pub fn reference(row: &[f32], class: i32) -> f32 {
    let Ok(class) = usize::try_from(class) else {
        return 0.0;
    };
    let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = row.iter().map(|&x| f64::from(x - most).exp()).sum();
    (sum.ln() + f64::from(most) - f64::from(row[class])) as f32
}

/// The settings worth trying.
pub fn space() -> Vec<Setting> {
    space::space(
        &cross_entropy::<f32>().range_of("BLOCK"),
        &[0],
        &[None],
        |block, _| block,
    )
}
