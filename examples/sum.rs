//! Sums of the rows and of the columns of a matrix, and of all elements of an array.
//!
//! What is too long for one program is cut at multiples of a power of two. Such a part is a subtree
//! of the tree over the whole axis, so a second launch over the sums of the parts gives the bits of
//! one sum, whatever the tiles.

use exactile::prelude::*;
use exactile::{Number, Result};
use exactile_harness::demo::{Case, Setting, problem, problem_in_phases, uniform};

/// The sums of `ROWS` rows a program; `TILES` tiles of `BLOCK` columns hold a row.
#[kernel(ROWS = 1, BLOCK = 1024, TILES = 1)]
pub(crate) fn sum_rows<T: Float, const ROWS: usize, const BLOCK: usize, const TILES: usize>(
    x: Tensor<T, 2>,
    out: TensorMut<T, 1>,
) {
    let row = program_id(0) * ROWS;
    let tiles = x.tile([ROWS, BLOCK]);
    let mut sum = sum_accumulator::<f32>([ROWS]).at_most(TILES);
    for column in range(0, x.extent(1)).step(BLOCK) {
        sum.add(load(tiles.at_offset((row, column))), 1);
    }
    store(out.tile([ROWS]).at_offset((row,)), sum.finish().to::<T>());
}

/// The sums of `COLUMNS` columns over `TILES` tiles of `ROWS` rows: one row of `out` for each part
/// of the rows.
#[kernel(ROWS = 32, COLUMNS = 128, TILES = 1)]
pub(crate) fn sum_columns<
    T: Float,
    U: Float,
    const ROWS: usize,
    const COLUMNS: usize,
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

/// The sum of `TILES` tiles of `BLOCK` elements: one element of `out` for each part.
#[kernel(BLOCK = 8192, TILES = 8)]
pub(crate) fn sum_parts<T: Float, U: Float, const BLOCK: usize, const TILES: usize>(
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

/// The second extent of a setting, or what a case takes without one.
fn width(setting: &Setting, otherwise: usize) -> usize {
    match setting.width {
        0 => otherwise,
        width => width,
    }
}

/// Bytes that must move: each element in, each sum out.
fn bytes<T>(elements: usize, sums: usize) -> u64 {
    ((elements + sums) * size_of::<T>()) as u64
}

/// The sum of each row. A setting's `width` is rows a program.
pub(crate) fn rows_case<T: Float + Number>(rows: usize, columns: usize) -> Case {
    let block = columns.next_power_of_two();
    Case {
        kernel: "sum_rows",
        dtype: <T as Number>::DTYPE,
        shape: vec![rows, columns],
        bytes: bytes::<T>(rows * columns, rows),
        flops: (rows * columns) as u64,
        blocks: vec![block, block / 2, block / 8],
        elements: |block| block,
        setup: Box::new(move |device| {
            let x = Buffer::from_slice(device, &uniform::<T>(9, rows * columns, 0.0, 1.0))?;
            let device = device.clone();
            let out = Buffer::<T>::zeros(&device, rows)?;
            Ok(problem(out, move |out, setting| {
                let config = sum_rows::Config {
                    rows: width(setting, 1),
                    block: setting.block,
                    tiles: columns.div_ceil(setting.block),
                    ..sum_rows::Config::new()
                }
                .scheduled(setting.schedule());
                let arguments = (x.view([rows, columns])?, out.view_mut([rows])?);
                sum_rows::<T>(config)
                    .determinism(setting.determinism)
                    .launch(&device, rows.div_ceil(config.rows), arguments)
            }))
        }),
    }
}

/// The sum of each column. A setting's `block` is the rows of a tile, its `width` the columns.
pub(crate) fn columns_case<T: Float + Number>(rows: usize, columns: usize) -> Case {
    /// Rows that one program of the first launch adds.
    const PART: usize = 2048;
    Case {
        kernel: "sum_columns",
        dtype: <T as Number>::DTYPE,
        shape: vec![rows, columns],
        bytes: bytes::<T>(rows * columns, columns),
        flops: (rows * columns) as u64,
        blocks: vec![32, 8, 64],
        elements: |block| block * 128,
        setup: Box::new(move |device| {
            let x = Buffer::from_slice(device, &uniform::<T>(10, rows * columns, 0.0, 1.0))?;
            let device = device.clone();
            let parts = rows.div_ceil(PART);
            let mut partial = Buffer::<f32>::zeros(&device, parts * columns)?;
            let out = Buffer::<T>::zeros(&device, columns)?;
            Ok(problem_in_phases(out, move |out, setting| {
                let config = sum_columns::Config {
                    rows: setting.block,
                    columns: width(setting, 128),
                    tiles: PART / setting.block,
                    ..sum_columns::Config::new()
                }
                .scheduled(setting.schedule());
                let grid = (columns.div_ceil(config.columns), parts);
                let arguments = (
                    x.view([rows, columns])?,
                    partial.view_mut([parts, columns])?,
                );
                sum_columns::<T, f32>(config)
                    .determinism(setting.determinism)
                    .launch(&device, grid, arguments)?;
                let last = sum_columns::Config {
                    rows: parts.next_power_of_two(),
                    columns: 32,
                    ..sum_columns::Config::new()
                };
                let arguments = (partial.view([parts, columns])?, out.view_mut([1, columns])?);
                sum_columns::<f32, T>(last)
                    .determinism(setting.determinism)
                    .launch(&device, columns.div_ceil(last.columns), arguments)
            }))
        }),
    }
}

/// The sum of all elements. A setting's `width` is the elements that a program of the first launch
/// adds, a multiple of its `block`.
pub(crate) fn all_case<T: Float + Number>(n: usize) -> Case {
    /// Elements that one program adds without a width.
    const PART: usize = 65536;
    Case {
        kernel: "sum_all",
        dtype: <T as Number>::DTYPE,
        shape: vec![n],
        bytes: bytes::<T>(n, 1),
        flops: n as u64,
        blocks: vec![8192, 1024, 4096],
        elements: |block| block,
        setup: Box::new(move |device| {
            let x = Buffer::from_slice(device, &uniform::<T>(11, n, 0.0, 1.0))?;
            let device = device.clone();
            let mut partial = Buffer::<f32>::zeros(&device, n.div_ceil(1024))?;
            let out = Buffer::<T>::zeros(&device, 1)?;
            Ok(problem_in_phases(out, move |out, setting| {
                let part = width(setting, PART);
                let parts = n.div_ceil(part);
                let config = sum_parts::Config {
                    block: setting.block,
                    tiles: part / setting.block,
                    ..sum_parts::Config::new()
                }
                .scheduled(setting.schedule());
                let arguments = (x.view([n])?, partial.view_mut([parts])?);
                sum_parts::<T, f32>(config)
                    .determinism(setting.determinism)
                    .launch(&device, parts, arguments)?;
                let block = parts.next_power_of_two().min(16384);
                let last = sum_parts::Config {
                    block,
                    tiles: parts.next_power_of_two() / block,
                    warps: (block / 512).clamp(1, 32) as u32,
                    ..sum_parts::Config::new()
                };
                let arguments = (partial.view([parts])?, out.view_mut([1])?);
                sum_parts::<f32, T>(last)
                    .determinism(setting.determinism)
                    .launch(&device, 1, arguments)
            }))
        }),
    }
}

/// What the demo runs; `quick` takes small inputs.
pub(crate) fn cases(quick: bool) -> Vec<Case> {
    if quick {
        return vec![
            rows_case::<f32>(37, 1000),
            rows_case::<bf16>(9, 300),
            columns_case::<f32>(5000, 70),
            all_case::<f32>(100_003),
        ];
    }
    vec![
        rows_case::<f32>(8192, 8192),
        columns_case::<f32>(8192, 8192),
        all_case::<f32>(1 << 26),
    ]
}

fn main() -> Result<()> {
    exactile_harness::demo::main(&cases(true))
}
