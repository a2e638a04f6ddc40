//! The order in which the programs of a grid go through tiles.

use exactile::prelude::*;

use crate::language::{devices, upload};

#[kernel]
fn visited<const GROUP: usize>(out: PtrMut<i64>) {
    let (row, column) = (program_id(1), program_id(0));
    let (rows, columns) = (num_programs(1), num_programs(0));
    let (to_row, to_column) = swizzle_2d(row, column, rows, columns, GROUP as i64);
    store(out + row * columns + column, to_row * columns + to_column);
}

/// What the documentation says: groups of rows, each from column to column.
fn expected(rows: usize, columns: usize, group: usize) -> Vec<i64> {
    let mut tiles = Vec::new();
    for first in (0..rows).step_by(group) {
        for column in 0..columns {
            let own = first..rows.min(first + group);
            tiles.extend(own.map(|row| (row * columns + column) as i64));
        }
    }
    tiles
}

#[test]
fn programs_go_through_groups_of_rows() {
    for device in devices() {
        for (rows, columns, group) in [(5, 3, 2), (3, 7, 4)] {
            let mut out = upload(&device, &vec![-1_i64; rows * columns]);
            visited()
                .group(group)
                .run(&device, (columns, rows), (&mut out,))
                .expect("runs");
            let found = out.to_vec().expect("reads");
            assert_eq!(
                found,
                expected(rows, columns, group),
                "{rows}x{columns} by {group}"
            );
        }
    }
}

#[test]
fn a_group_has_a_row() {
    let device = Device::interpreter();
    let mut out = upload(&device, &[0_i64]);
    let refused = visited().group(0).run(&device, (1, 1), (&mut out,));
    let message = refused.expect_err("is refused").to_string();
    assert!(message.contains("groups of one row or more"), "{message}");
}
