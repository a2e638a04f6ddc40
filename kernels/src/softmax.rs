//! Softmax of each row, the whole row in one tile: one program a row, some rows a program, or a loop
//! over rows.

use exactile::prelude::*;
use exactile::{DeviceKind, Number, Result};

use crate::setting::{Settable, Setting, check_shape, extent};
use crate::space;

/// `BLOCK` is the next power of two of the number of columns.
#[kernel]
pub fn softmax<T: Float, const BLOCK: usize>(x: Ptr<T>, out: PtrMut<T>, columns: i32) {
    let offsets = arange(0, BLOCK);
    let mask = offsets < columns;
    let start = program_id(0) * columns;
    let row = load(x + start + offsets)
        .mask(mask)
        .other(f64::NEG_INFINITY);
    store(out + start + offsets, normalised(row.to()).to::<T>()).mask(mask);
}

/// Divides once: as an exact operation a division takes ten instructions.
#[device]
fn normalised(row: Tile<f32>) -> Tile<f32> {
    let e = exp(row - row.max(0));
    let weight = 1.0 / e.sum(0);
    e * weight
}

/// The same for rows too short to fill a program: `ROWS` of them at once.
#[kernel(ROWS = 4)]
pub fn softmax_rows<T: Float, const ROWS: usize, const BLOCK: usize>(
    x: Tensor<T, 2>,
    out: TensorMut<T, 2>,
) {
    let place = (program_id(0), 0);
    let rows = load(x.tile([ROWS, BLOCK]).at(place)).other(f64::NEG_INFINITY);
    let rows = rows.to::<f32>();
    let e = exp(rows - rows.max(1).expand(1));
    let weight = 1.0 / e.sum(1);
    let normalised = e * weight.expand(1);
    store(out.tile([ROWS, BLOCK]).at(place), normalised.to::<T>());
}

/// The same by a grid of any size: each program takes a row, then one as far away as there are
/// programs. The next rows are loaded while one is worked on.
#[kernel]
pub fn softmax_loop<T: Float, const BLOCK: usize>(
    x: Ptr<T>,
    out: PtrMut<T>,
    rows: i32,
    columns: i32,
) {
    let offsets = arange(0, BLOCK);
    let mask = offsets < columns;
    let mine = range(program_id(0), rows).step(num_programs(0));
    for row in mine.stages(2) {
        let start = row * columns;
        let row = load(x + start + offsets)
            .mask(mask)
            .other(f64::NEG_INFINITY);
        store(out + start + offsets, normalised(row.to()).to::<T>()).mask(mask);
    }
}

/// Whether a program of such a row has a multiprocessor to itself, whose shared memory holds two rows.
fn is_alone<T>(columns: usize) -> bool {
    columns.next_power_of_two() == 32768 && size_of::<T>() <= 2
}

/// The softmax of each row of `[rows, columns]`. A setting's `block` is the elements of a tile, which
/// takes several rows when it is longer than one. With `width` 0 there is a program for each tile, but where such a program has a
/// multiprocessor to itself one on each takes rows in turns, a CPU aside. Else `width` programs on each multiprocessor do.
pub fn launch<T: Float + Number>(
    x: &Buffer<T>,
    out: &mut Buffer<T>,
    [rows, columns]: [usize; 2],
    setting: &Setting,
) -> Result<()> {
    check_shape(x.len(), &[rows, columns])?;
    check_shape(out.len(), &[rows, columns])?;
    let device = out.device().clone();
    let block = setting.block_or(columns.next_power_of_two());
    let together = block / columns.next_power_of_two();
    if together > 1 {
        let kernel = softmax_rows::<T>()
            .block(block / together)
            .rows(together)
            .by(setting);
        let (x, out) = (x.view([rows, columns])?, out.view_mut([rows, columns])?);
        return kernel.launch(&device, rows.div_ceil(together), (x, out));
    }
    let count = extent(columns)?;
    let width = match setting.width {
        0 if is_alone::<T>(columns) && device.kind() != DeviceKind::Cpu => 1,
        width => width,
    };
    if width == 0 {
        let kernel = softmax::<T>().block(block).by(setting);
        return kernel.launch(&device, rows, (x, out, count));
    }
    let kernel = softmax_loop::<T>().block(block).by(setting);
    let programs = rows.min(width * device.multiprocessors());
    kernel.launch(&device, programs, (x, out, extent(rows)?, count))
}

/// What it computes, rounded once.
pub fn reference(x: &[f32], columns: usize) -> Vec<f32> {
    let row = |row: &[f32]| {
        let greatest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let e: Vec<f64> = row.iter().map(|x| f64::from(x - greatest).exp()).collect();
        let sum: f64 = e.iter().sum();
        e.into_iter().map(move |e| (e / sum) as f32)
    };
    x.chunks(columns).flat_map(row).collect()
}

/// The settings worth trying.
pub fn space([_, columns]: [usize; 2]) -> Vec<Setting> {
    space::gathered_rows(columns)
}
