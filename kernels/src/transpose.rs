//! The transpose of a matrix, by square tiles.

use exactile::prelude::*;
use exactile::{Number, Result};

use crate::setting::{Settable, Setting, check_shape};
use crate::space;

/// A square of `BLOCK` rows and columns a program.
#[kernel(BLOCK = 64, grid = (x.extent(1).div_ceil(BLOCK), x.extent(0).div_ceil(BLOCK)))]
pub fn transpose<T: Element, #[meta(32..=128)] const BLOCK: usize>(
    x: Tensor<T, 2>,
    out: TensorMut<T, 2>,
) {
    let (row, column) = (program_id(1), program_id(0));
    let tile = load(x.tile([BLOCK, BLOCK]).at((row, column)));
    store(out.tile([BLOCK, BLOCK]).at((column, row)), tile.transpose());
}

/// `out[j, i] = x[i, j]` for `[rows, columns]`. A setting's `block` is the rows and columns of a tile.
pub fn launch<T: Element + Number>(
    x: &Buffer<T>,
    out: &mut Buffer<T>,
    [rows, columns]: [usize; 2],
    setting: &Setting,
) -> Result<()> {
    check_shape(x.len(), &[rows, columns])?;
    check_shape(out.len(), &[rows, columns])?;
    let kernel = transpose::<T>().block(setting.block_or(64)).by(setting);
    let device = out.device().clone();
    let arguments = (x.view([rows, columns])?, out.view_mut([columns, rows])?);
    kernel.launch(&device, (), arguments)
}

/// What it computes.
pub fn reference(x: &[f32], [rows, columns]: [usize; 2]) -> Vec<f32> {
    let places = (0..columns).flat_map(|column| (0..rows).map(move |row| row * columns + column));
    places.map(|place| x[place]).collect()
}

/// The settings worth trying.
pub fn space() -> Vec<Setting> {
    space::space(
        &transpose::<f32>().range_of("BLOCK"),
        &[0],
        &[None],
        |block, _| block * block,
    )
}
