//! Sums of the rows and of the columns of a matrix, and of all elements of an array.
//!
//! What is too long for one program is cut at multiples of a power of two. Such a part is a subtree
//! of the tree over the whole axis, so a second launch over the sums of the parts gives the bits of
//! one sum, whatever the tiles.

use exactile::prelude::*;
use exactile::{Number, Result, Schedule};

use crate::setting::{Settable, Setting, check_shape, ensure};
use crate::space;
use crate::tree;

/// The sums of `ROWS` rows a program; `TILES` tiles of `BLOCK` columns hold a row.
#[kernel(ROWS = 1, BLOCK = 1024, TILES = 1, grid = x.extent(0).div_ceil(ROWS))]
pub fn sum_rows<
    T: Float,
    #[meta(1..=4)] const ROWS: usize,
    const BLOCK: usize,
    const TILES: usize,
>(
    x: Tensor<T, 2>,
    out: TensorMut<T, 1>,
) {
    let row = program_id(0) * ROWS;
    let tiles = x.tile([ROWS, BLOCK]);
    let mut sum = sum_accumulator::<f32>([ROWS]).at_most(TILES);
    for column in range(0, x.extent(1)).step(BLOCK).stages(stages::<T>()) {
        sum.add(load(tiles.at_offset((row, column))), 1);
    }
    store(out.tile([ROWS]).at_offset((row,)), sum.finish().to::<T>());
}

/// The sums of `COLUMNS` columns over `TILES` tiles of `ROWS` rows: one row of `out` for each part
/// of the rows.
#[kernel(ROWS = 32, COLUMNS = 128, TILES = 1, grid = (x.extent(1).div_ceil(COLUMNS), out.extent(0)))]
pub fn sum_columns<
    T: Float,
    U: Float,
    const ROWS: usize,
    #[meta(32..=1024)] const COLUMNS: usize,
    const TILES: usize,
>(
    x: Tensor<T, 2>,
    out: TensorMut<U, 2>,
) {
    let (strip, part) = (program_id(0), program_id(1));
    let (first, column) = (part * (ROWS * TILES), strip * COLUMNS);
    let tiles = x.tile([ROWS, COLUMNS]);
    let mut sum = sum_accumulator::<f32>([COLUMNS]).at_most(TILES);
    for row in range(0, ROWS * TILES).step(ROWS) {
        sum.add(load(tiles.at_offset((first + row, column))), 0);
    }
    let sum = sum.finish().to::<U>().expand(0);
    store(out.tile([1, COLUMNS]).at((part, strip)), sum);
}

/// The stages of the loop over a row. Narrow elements run ahead, which gains where no vector divides rows and costs nothing elsewhere;
/// wider ones lanes load as fast one by one.
const fn stages<T>() -> usize {
    if size_of::<T>() <= 2 { 2 } else { 1 }
}

/// The sum of `TILES` tiles of `BLOCK` elements: one element of `out` for each part.
#[kernel(BLOCK = 8192, TILES = 8, grid = out.extent(0))]
pub fn sum_parts<T: Float, U: Float, const BLOCK: usize, const TILES: usize>(
    x: Tensor<T, 1>,
    out: TensorMut<U, 1>,
) {
    let part = program_id(0);
    let first = part * (BLOCK * TILES);
    let tiles = x.tile([BLOCK]);
    let mut sum = sum_accumulator::<f32>([]).at_most(TILES);
    for offset in range(0, BLOCK * TILES).step(BLOCK) {
        sum.add(load(tiles.at_offset((first + offset,))), 0);
    }
    let sum = sum.finish().to::<U>().expand(0);
    store(out.tile([1]).at((part,)), sum);
}

/// Rows that one program of the first launch of [`columns`] adds.
const PART_ROWS: usize = 2048;

/// Elements that one program of the first launch of [`all`] adds without a width.
const PART: usize = 65536;

/// The fewest elements that one program of the first launch of [`all`] adds.
const LEAST_PART: usize = 1024;

/// The sum of each row of `[rows, columns]`. A setting's `block` is the columns of a tile, its `width`
/// the rows.
pub fn rows<T: Float + Number>(
    x: &Buffer<T>,
    out: &mut Buffer<T>,
    [rows, columns]: [usize; 2],
    setting: &Setting,
) -> Result<()> {
    check_shape(x.len(), &[rows, columns])?;
    check_shape(out.len(), &[rows])?;
    let row = columns.next_power_of_two();
    let block = setting.block_or(row.min((row / 4).clamp(2048, 8192)));
    let kernel = sum_rows::<T>()
        .rows(setting.width_or(1))
        .block(block)
        .tiles(columns.div_ceil(block))
        .by(setting);
    let device = out.device().clone();
    let arguments = (x.view([rows, columns])?, out.view_mut([rows])?);
    kernel.launch(&device, (), arguments)
}

/// The elements that [`columns`] needs for the sums of parts.
pub fn column_parts([rows, columns]: [usize; 2]) -> usize {
    rows.div_ceil(PART_ROWS) * columns
}

/// The sum of each column of `[rows, columns]`; `parts` has [`column_parts`] elements to work with. A
/// setting's `block` is the rows of a tile, its `width` the columns.
pub fn columns<T: Float + Number>(
    x: &Buffer<T>,
    parts: &mut Buffer<f32>,
    out: &mut Buffer<T>,
    [rows, columns]: [usize; 2],
    setting: &Setting,
) -> Result<()> {
    check_shape(x.len(), &[rows, columns])?;
    check_shape(out.len(), &[columns])?;
    check_shape(parts.len(), &[column_parts([rows, columns])])?;
    let block = setting.block_or(32);
    ensure(PART_ROWS.is_multiple_of(block), || {
        format!("tiles of {block} rows do not divide {PART_ROWS}")
    })?;
    let kernel = sum_columns::<T, f32>()
        .rows(block)
        .columns(setting.width_or(128))
        .tiles(PART_ROWS / block)
        .by(setting);
    let (device, count) = (out.device().clone(), rows.div_ceil(PART_ROWS));
    let arguments = (x.view([rows, columns])?, parts.view_mut([count, columns])?);
    kernel.launch(&device, (), arguments)?;
    let last = sum_columns::<f32, T>()
        .rows(count.next_power_of_two())
        .columns(32)
        .determinism(setting.determinism);
    let arguments = (parts.view([count, columns])?, out.view_mut([1, columns])?);
    last.launch(&device, (), arguments)
}

/// The elements that [`all`] needs at most for the sums of parts of `n` elements.
pub fn all_parts(n: usize) -> usize {
    n.div_ceil(LEAST_PART)
}

/// The sum of all elements; `parts` has [`all_parts`] elements to work with. A setting's `width` is the
/// elements that a program of the first launch adds, a multiple of its `block`.
pub fn all<T: Float + Number>(
    x: &Buffer<T>,
    parts: &mut Buffer<f32>,
    out: &mut Buffer<T>,
    setting: &Setting,
) -> Result<()> {
    let n = x.len();
    check_shape(out.len(), &[1])?;
    check_shape(parts.len(), &[all_parts(n)])?;
    let (block, part) = (setting.block_or(8192), setting.width_or(PART));
    let fits = part.is_power_of_two() && part >= LEAST_PART && part.is_multiple_of(block);
    ensure(fits, || {
        format!(
            "parts of {part} elements are no powers of two from {LEAST_PART} on in tiles of {block}"
        )
    })?;
    let (device, count) = (out.device().clone(), n.div_ceil(part));
    let kernel = sum_parts::<T, f32>()
        .block(block)
        .tiles(part / block)
        .by(setting);
    let arguments = (x.view([n])?, parts.view_mut([count])?);
    kernel.launch(&device, (), arguments)?;
    let block = count.next_power_of_two().min(16384);
    let last = sum_parts::<f32, T>()
        .block(block)
        .tiles(count.next_power_of_two() / block)
        .schedule(Schedule::AUTO.warps((block / 512).clamp(1, 32) as u32))
        .determinism(setting.determinism);
    let arguments = (parts.view([count])?, out.view_mut([1])?);
    last.launch(&device, (), arguments)
}

/// What [`rows`] computes, with its bits; [`tree::sum`] is what [`all`] computes.
pub fn rows_reference(x: &[f32], columns: usize) -> Vec<f32> {
    x.chunks(columns).map(tree::sum).collect()
}

/// What [`columns`] computes, with its bits.
pub fn columns_reference(x: &[f32], columns: usize) -> Vec<f32> {
    let column = |column: usize| {
        let column: Vec<f32> = x.iter().skip(column).step_by(columns).copied().collect();
        tree::sum(&column)
    };
    (0..columns).map(column).collect()
}

/// The settings of [`rows`] worth trying.
pub fn rows_space([_, columns]: [usize; 2]) -> Vec<Setting> {
    let block = columns.next_power_of_two();
    space::space(
        &[block, block / 2, block / 4],
        &sum_rows::<f32>().range_of("ROWS"),
        &[None],
        |block, width| block * width,
    )
}

/// The settings of [`columns`] worth trying. A warp that owns its columns, 4 a lane, exchanges nothing
/// with others.
pub fn columns_space() -> Vec<Setting> {
    let own = |lane: usize, setting: &Setting| {
        let owned = space::distance(setting.width, 128 * space::warps(setting));
        space::distance(lane, 32) + 2.0 * owned
    };
    space::space_by(
        &[8, 16, 32, 64],
        &sum_columns::<f32, f32>().range_of("COLUMNS"),
        &[None],
        |block, width| block * width,
        own,
    )
}

/// The settings of [`all`] worth trying.
pub fn all_space() -> Vec<Setting> {
    space::space(
        &[8192, 4096, 2048, 1024, 16384],
        &[65536, 32768, 131_072],
        &[None],
        |block, _| block,
    )
}
