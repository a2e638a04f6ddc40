//! In which order the programs of a grid go through the tiles of a matrix.

use super::control::IntoIndex;
use super::math::{maximum, minimum};
use super::tile::{Scalar, num_programs, program_id, require};

/// The tile of a program, in rows and columns, where the programs of a grid of `rows` by `columns` go through groups
/// of `group` rows of tiles, in each of them from column to column: programs that run at once then share more of what
/// they read. `row` and `column` say which program it is, in row-major order; the last group may have fewer rows.
///
/// `group` is at least 1.
#[track_caller]
pub fn swizzle_2d(
    row: impl IntoIndex,
    column: impl IntoIndex,
    rows: impl IntoIndex,
    columns: impl IntoIndex,
    group: i64,
) -> (Scalar<i64>, Scalar<i64>) {
    let (row, column) = (row.into_index(), column.into_index());
    let (rows, columns) = (rows.into_index(), columns.into_index());
    require(group > 0, "`swizzle_2d` takes groups of one row or more");
    let group = group.max(1);
    let first = row / group * group;
    let inside = (row - first) * columns + column;
    let height = minimum(rows - first, group);
    // The bounds hold in any case: they say so to whoever asks what an index can be.
    let row = first + inside % height;
    let row = maximum(minimum(row, rows - 1), 0);
    let column = maximum(minimum(inside / height, columns - 1), 0);
    (row, column)
}

/// The row and the column where the tile of a program begins, of a grid with a program for each tile of this shape over a
/// matrix: axis 0 goes along the columns, axis 1 along the rows. The programs go through the tiles as [`swizzle_2d`] has it,
/// in groups of `group` rows of tiles.
///
/// ```
/// use exactile_core::lang::prelude::*;
///
/// fn doubled(x: Tensor<f32, 2>, out: TensorMut<f32, 2>) {
///     let origin = tile_origin([64, 32], 8);
///     let tile = load(x.tile([64, 32]).at_offset(origin));
///     store(out.tile([64, 32]).at_offset(origin), tile * 2.0);
/// }
/// ```
#[track_caller]
pub fn tile_origin([rows, columns]: [usize; 2], group: i64) -> [Scalar<i64>; 2] {
    let extents = (num_programs(1), num_programs(0));
    let (row, column) = swizzle_2d(program_id(1), program_id(0), extents.0, extents.1, group);
    [row * rows, column * columns]
}
