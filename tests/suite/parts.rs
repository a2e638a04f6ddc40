//! Tensors that a kernel makes of pointers, and parts of tensors.

use exactile::{Error, assert_bits_equal, prelude::*};

use crate::language::{devices, upload};

/// One row of keys for each program, from pages of `PAGE` rows that a table lists.
#[kernel(PAGE = 4, WIDTH = 8)]
fn gathered<const PAGE: usize, const WIDTH: usize>(
    cache: Ptr<f32>,
    table: Ptr<i32>,
    lengths: Ptr<i64>,
    out: TensorMut<f32, 3>,
) {
    let length = load(lengths + program_id(0));
    let own = out.select(0, program_id(0));
    for first in range(0, length).step(PAGE) {
        let number = load(table + program_id(0) * 3 + first / PAGE).to::<i64>();
        let rows = length - first;
        let keys = (cache + number * (PAGE * WIDTH)).tensor((rows, WIDTH), [WIDTH, 1]);
        let keys = load(keys.tile([PAGE, WIDTH]).at([0, 0]));
        store(own.tile([PAGE, WIDTH]).at_offset((first, 0)), keys);
    }
}

#[test]
fn pages_are_tensors_that_the_kernel_makes() {
    let cache: Vec<f32> = (0..5 * 32).map(|i| i as f32).collect();
    let (table, lengths) = ([3, 1, 9, 4, 0, 2], [5i64, 12]);
    let mut want = vec![0.0f32; 2 * 12 * 8];
    for (program, &length) in lengths.iter().enumerate() {
        for row in 0..12usize {
            for column in 0..8 {
                let page = table[program * 3 + row / 4] as usize;
                let place = (program * 12 + row) * 8 + column;
                let inside = (row as i64) < length;
                want[place] = if inside {
                    cache[page * 32 + row % 4 * 8 + column]
                } else {
                    0.0
                };
            }
        }
    }
    for device in devices() {
        let keys = upload(&device, &cache);
        let (pages, rows) = (upload(&device, &table), upload(&device, &lengths));
        let mut out = Buffer::<f32>::zeros(&device, want.len()).expect("fits");
        let view = out.view_mut([2, 12, 8]).expect("fits");
        let kernel = gathered();
        let run = kernel.run(&device, 2, (&keys, &pages, &rows, view));
        run.expect("runs");
        assert_bits_equal(&out, &want);
        // A page that is not there is an error, as any access outside of an argument.
        let wrong = upload(&device, &[3, 1, 9, 4, 0, 7]);
        let view = out.view_mut([2, 12, 8]).expect("fits");
        let run = kernel.run(&device, 2, (&keys, &wrong, &rows, view));
        let Err(Error::OutOfBounds {
            argument, program, ..
        }) = run
        else {
            panic!("{device}: {run:?}");
        };
        assert_eq!(
            (argument.as_str(), program),
            ("cache", [1, 0, 0]),
            "{device}"
        );
    }
}

/// The middle of a matrix, from a place on that the launch states, and one of its columns.
#[kernel]
fn middles(x: Tensor<i32, 2>, out: TensorMut<i32, 2>, row: i64, column: i64, rows: i32) {
    let part = x.part([row, column], (rows, 3));
    let tile = load(part.tile([4, 4]).at([0, 0]));
    store(out.tile([4, 4]).at([0, 0]), tile);
    let along = load(part.select(1, 1).tile([4]).at([0]));
    store(out.select(0, 4).tile([4]).at([0]), along);
    let far = load(part.tile([4, 4]).at_offset([-1, -1])).sum(0);
    store(out.select(0, 5).part([0], [3]).tile([4]).at([0]), far);
}

#[test]
fn parts_end_where_their_tensor_does() {
    let x: Vec<i32> = (1..=30).collect();
    let at = |row: i64, column: i64| x[(row * 6 + column) as usize];
    for (row, column, rows) in [
        (0, 0, 4),
        (1, 2, 2),
        (3, 4, 4),
        (4, 5, 9),
        (5, 0, 2),
        (-1, 0, 3),
        (0, 7, 2),
    ] {
        let inside = (0..=5).contains(&row) && (0..=6).contains(&column);
        let (high, wide) = (rows.min(5 - row), 3.min(6 - column));
        let number = |i: i64, j: i64| {
            let there = inside && (0..high).contains(&i) && (0..wide).contains(&j);
            if there { at(row + i, column + j) } else { 0 }
        };
        let mut want = vec![-1; 24];
        for i in 0..4 {
            for j in 0..4 {
                want[(i * 4 + j) as usize] = number(i, j);
            }
            want[16 + i as usize] = number(i, 1);
            if i < 3 {
                want[20 + i as usize] = (-1..3).map(|row| number(row, i - 1)).sum();
            }
        }
        for device in devices() {
            let input = upload(&device, &x);
            let mut out = upload(&device, &[-1; 24]);
            let views = (
                input.view([5, 6]).expect("fits"),
                out.view_mut([6, 4]).expect("fits"),
            );
            let run = middles().run(&device, 1, (views.0, views.1, row, column, rows as i32));
            run.expect("runs");
            assert_bits_equal(&out, &want);
        }
    }
}

/// A part that a branch chooses and that a loop makes smaller: each time without its first row and its first column.
#[kernel]
fn carried(x: Tensor<i32, 2>, out: TensorMut<i32, 2>, n: i32) {
    let mut rest = if n > 2 {
        x.part([1, 0], (n, 4))
    } else {
        x.part([0, 2], [2, 3])
    };
    let mut target = out;
    let mut left = n;
    while left > 0 {
        let tile = load(rest.tile([2, 4]).at([0, 0]));
        store(target.tile([2, 4]).at([0, 0]), tile);
        rest = rest.part([1, 1], [rest.extent(0), rest.extent(1)]);
        if left > 1 {
            target = target.part([2, 0], [target.extent(0), target.extent(1)]);
        }
        left -= 1;
    }
    store(
        target.tile([1, 4]).at_offset([1, 0]),
        rest.extent(0).to::<i32>(),
    );
}

#[test]
fn loops_and_branches_give_tensors() {
    let x: Vec<i32> = (1..=30).collect();
    for n in [1usize, 2, 3, 4] {
        let [mut row, mut column, mut rows, mut columns] = match n > 2 {
            true => [1, 0, n.min(4), 4],
            false => [0, 2, 2, 3],
        };
        let mut want = vec![-1; 4 * 2 * n];
        for left in 0..n {
            for (i, j) in (0..2).flat_map(|i| (0..4).map(move |j| (i, j))) {
                let there = i < rows && j < columns;
                let number = if there {
                    x[(row + i) * 6 + column + j]
                } else {
                    0
                };
                want[(2 * left + i) * 4 + j] = number;
            }
            (row, column) = (row + 1, column + 1);
            (rows, columns) = (rows.saturating_sub(1), columns.saturating_sub(1));
        }
        want[(2 * n - 1) * 4..].fill(rows as i32);
        for device in devices() {
            let input = upload(&device, &x);
            let mut out = upload(&device, &vec![-1; want.len()]);
            let views = (
                input.view([5, 6]).expect("fits"),
                out.view_mut([2 * n, 4]).expect("fits"),
            );
            carried()
                .run(&device, 1, (views.0, views.1, n as i32))
                .expect("runs");
            assert_eq!(out.to_vec().expect("reads"), want, "{n} on {device}");
        }
    }
}

/// Which array a tensor is of is known while tracing.
#[kernel]
fn of_either(x: Tensor<i32, 1>, y: Tensor<i32, 1>, out: TensorMut<i32, 1>, n: i32) {
    let either = if n > 0 { x } else { y };
    store(out.tile([4]).at([0]), load(either.tile([4]).at([0])));
}

#[test]
fn a_tensor_stays_one_of_its_array() {
    let errors = of_either().check().expect_err("is refused").to_string();
    let message = "the value of the `if` points into another argument in the second branch";
    assert!(errors.contains(message), "{errors}");
    assert!(
        errors.contains("access each argument in its own branch"),
        "{errors}"
    );
}

/// Tensors that branches make of the numbers that others have: the same one, seen from behind the branch.
#[kernel]
fn remade(x: Ptr<i32>, out: PtrMut<i32>, first: i64, count: i64, stride: i64, which: i32) {
    let rows = (x + first).tensor([count], [stride]);
    let mut chosen = rows;
    if which == 1 {
        chosen = (x + first).tensor([count], [stride]);
    }
    store(out + arange(0, 4), load(chosen.tile([4]).at([0])));
    let same = if which == 2 {
        (x + first).tensor([count], [stride])
    } else {
        (x + first).tensor([count], [stride])
    };
    store(out + (arange(0, 4) + 4), load(same.tile([4]).at([0])));
    for i in range(0, which) {
        chosen = (x + first).tensor([count], [stride]);
        store(
            out + (arange(0, 4) + 8),
            load(chosen.tile([4]).at([0])) + i.to::<i32>(),
        );
    }
    store(out + (arange(0, 4) + 12), load(chosen.tile([4]).at([0])));
}

#[test]
fn a_branch_may_make_the_tensor_that_another_has() {
    let numbers: Vec<i32> = (0..16).collect();
    for device in devices() {
        let x = upload(&device, &numbers);
        for which in 1..4 {
            let mut out = upload(&device, &[-1; 16]);
            let run = remade().run(&device, 1, (&x, &mut out, 2i64, 3i64, 4i64, which));
            run.expect("runs");
            let row = [2, 6, 10, 0];
            let last = row.map(|it| it + which - 1);
            let want = [row, row, last, row].concat();
            assert_eq!(out.to_vec().expect("reads"), want, "{device} {which}");
        }
    }
}
