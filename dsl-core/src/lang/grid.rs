//! In which order the programs of a grid go through the tiles of a matrix.

use super::control::IntoIndex;
use super::math::{maximum, minimum};
use super::tile::{Scalar, require};

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
    let number = row * columns + column;
    let first = number / (columns * group) * group;
    let inside = number % (columns * group);
    let height = minimum(rows - first, group);
    // The bounds hold in any case: they say so to whoever asks what an index can be.
    let row = first + inside % height;
    let row = maximum(minimum(row, rows - 1), 0);
    let column = maximum(minimum(inside / height, columns - 1), 0);
    (row, column)
}
