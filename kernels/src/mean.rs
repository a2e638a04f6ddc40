//! The mean of a tensor `[outer, middle, inner]` over its middle axis.
//!
//! The accumulator adds the tiles of the loop in the order of one tree over the whole axis, so the
//! tile sizes never change bits.

use exactile::prelude::*;
use exactile::{Number, Result};

use crate::setting::{Settable, Setting, check_shape, ensure};
use crate::space;
use crate::tree;

/// Tiles of the middle axis that a program can add.
const MOST_TILES: usize = 256;

/// Tiles of `ROWS` elements of the middle axis and `COLUMNS` of the inner one.
#[kernel(ROWS = 64, COLUMNS = 16, grid = (x.extent(2).div_ceil(COLUMNS), x.extent(0)))]
pub fn mean<
    T: Float,
    #[meta(128, 256, 512, 1024, 64, 32)] const ROWS: usize,
    const COLUMNS: usize,
>(
    x: Tensor<T, 3>,
    out: TensorMut<T, 2>,
) {
    let (column, outer) = (program_id(0), program_id(1));
    let tiles = x.tile([1, ROWS, COLUMNS]);
    let mut sum = sum_accumulator::<f32>([1, COLUMNS]).at_most(MOST_TILES);
    for row in range(0, x.extent(1)).step(ROWS) {
        let tile = load(tiles.at_offset((outer, row, column * COLUMNS)));
        sum.add(tile, 1);
    }
    let mean = sum.finish() / x.extent(1).to::<f32>();
    store(out.tile([1, COLUMNS]).at((outer, column)), mean.to::<T>());
}

/// The means of `[outer, middle, inner]` over the middle axis, as `[outer, inner]`. A setting's `block`
/// is the rows of a tile, its `width` the columns.
pub fn launch<T: Float + Number>(
    x: &Buffer<T>,
    out: &mut Buffer<T>,
    [outer, middle, inner]: [usize; 3],
    setting: &Setting,
) -> Result<()> {
    check_shape(x.len(), &[outer, middle, inner])?;
    check_shape(out.len(), &[outer, inner])?;
    let tile = setting.block_or(64);
    ensure(middle.div_ceil(tile) <= MOST_TILES, || {
        format!("{middle} elements are more than {MOST_TILES} tiles of {tile}")
    })?;
    let kernel = mean::<T>()
        .rows(tile)
        .columns(setting.width_or(columns_of(inner)))
        .by(setting);
    let device = out.device().clone();
    let arguments = (
        x.view([outer, middle, inner])?,
        out.view_mut([outer, inner])?,
    );
    kernel.launch(&device, (), arguments)
}

/// The columns of a tile without a width.
fn columns_of(inner: usize) -> usize {
    inner.next_power_of_two().min(64)
}

/// What it computes, with its bits.
pub fn reference(x: &[f32], [outer, middle, inner]: [usize; 3]) -> Vec<f32> {
    let mut out = Vec::new();
    for (matrix, column) in (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i))) {
        let at = |row: usize| x[(matrix * middle + row) * inner + column];
        let column: Vec<f32> = (0..middle).map(at).collect();
        out.push(tree::sum(&column) / middle as f32);
    }
    out
}

/// The settings worth trying. Many loads of a lane are under way at once.
pub fn space([_, _, inner]: [usize; 3]) -> Vec<Setting> {
    space::space_by(
        &mean::<f32>().range_of("ROWS"),
        &[0],
        &[Some(3), None],
        |rows, _| rows * columns_of(inner),
        |lane, setting| space::distance(lane, 32) + 0.2 * space::distance(space::warps(setting), 8),
    )
}
