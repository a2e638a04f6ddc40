//! Values that a kernel computes with: numbers of the host beside those of the device, structures of
//! handles.

use exactile::prelude::*;

use super::language::{devices, upload};

#[kernel]
fn numbers_on_either_side<T: Float>(x: Ptr<T>, out: PtrMut<T>, counts: PtrMut<u32>) {
    let at = arange(0, 4);
    let v = load(x + at);
    let limits = maximum(0.0, minimum(v, 2.0)) + select(1.5 < v, 1.0, v) - select(v < 0.5, v, 0.0);
    store(out + at, 1.0 - limits / scalar::<T>(4.0));
    let unsigned = at.to::<u32>();
    let bits = (0xff00u32 | unsigned) ^ 1u32 << unsigned & 7u32;
    let third = 1u32 == unsigned;
    store(counts + at, select(third, 3, minimum(0xff04, bits)));
}

#[test]
fn numbers_of_the_host_stand_on_either_side() {
    for device in devices() {
        let v = [-1.0f32, 0.25, 1.0, 3.0];
        let x = upload(&device, &v);
        let mut out = upload(&device, &[0.0f32; 4]);
        let mut counts = upload(&device, &[0u32; 4]);
        numbers_on_either_side::<f32>()
            .run(&device, 1, (&x, &mut out, &mut counts))
            .expect("runs");
        let want = v.map(|v| {
            let chosen = if 1.5 < v { 1.0 } else { v };
            let small = if v < 0.5 { v } else { 0.0 };
            1.0 - (v.clamp(0.0, 2.0) + chosen - small) / 4.0
        });
        assert_eq!(out.to_vec().expect("reads"), want);
        let want = [0, 1, 2, 3u32].map(|at| match at {
            1 => 3,
            _ => 0xff04.min((0xff00u32 | at) ^ 1u32 << at & 7),
        });
        assert_eq!(counts.to_vec().expect("reads"), want);
    }
}

/// Mean and sum of squared distances so far.
#[derive(Clone, Copy, Carry)]
struct Moments<T: Float> {
    count: Scalar<T>,
    mean: Tile<T>,
    squares: Tile<T>,
}

#[derive(Clone, Copy, Carry)]
struct Ends(Scalar<i64>, (Scalar<i64>, [Scalar<i64>; 2]));

impl<T: Float> Moments<T> {
    fn new(lanes: usize) -> Self {
        Self {
            count: scalar(0.0),
            mean: zeros([lanes]),
            squares: zeros([lanes]),
        }
    }

    #[device]
    fn add(&mut self, x: Tile<T>, counts: Scalar<bool>) {
        if counts {
            self.count += 1.0;
            let before = x - self.mean;
            self.mean += before / self.count;
            self.squares += before * (x - self.mean);
        }
    }
}

#[device]
fn later<T: Float>(one: Moments<T>, other: Moments<T>) -> Moments<T> {
    if one.count > other.count {
        return one;
    }
    other
}

#[kernel(order = "tile")]
fn moments<T: Float>(x: Ptr<T>, out: PtrMut<T>, ends: PtrMut<i64>, n: i32) {
    let at = arange(0, 4);
    let mut moments = [Moments::<T>::new(4); 2];
    let mut found = Ends(scalar(-1), (scalar(0), [scalar(7); 2]));
    for row in 0..n {
        let tile = load(x + row * 4 + at);
        moments[0].add(tile, row % 3 != 0);
        moments[1].add(tile, row % 3 == 0);
        found = if row % 2 == 0 {
            Ends(row, (found.1.0 + row, found.1.1))
        } else {
            found
        };
    }
    let most = later(moments[0], moments[1]);
    store(out + at, most.mean);
    store(out + 4 + at, most.squares);
    store(ends, found.0);
    store(ends + 1, found.1.0 + found.1.1[1]);
}

#[test]
fn structures_are_carried_and_returned() {
    let rows: Vec<f32> = (0..28).map(|i| (i * i % 13) as f32).collect();
    for device in devices() {
        let x = upload(&device, &rows);
        let mut out = upload(&device, &[0.0f32; 8]);
        let mut ends = upload(&device, &[0i64; 2]);
        moments::<f32>()
            .run(&device, 1, (&x, &mut out, &mut ends, 7))
            .expect("runs");
        let mut want = [0.0f32; 8];
        for column in 0..4 {
            let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0);
            for row in [1, 2, 4, 5] {
                let x: f32 = rows[row * 4 + column];
                count += 1.0;
                let before = x - mean;
                mean += before / count;
                squares += before * (x - mean);
            }
            (want[column], want[column + 4]) = (mean, squares);
        }
        assert_eq!(out.to_vec().expect("reads"), want);
        assert_eq!(ends.to_vec().expect("reads"), [6, 12 + 7]);
    }
}

#[kernel]
fn shapes(x: Ptr<f32>, out: PtrMut<f32>) {
    let at = arange(0, 32);
    let tile = load(x + at).reshape([4, 8]);
    let shares = tile / tile.sum_keep(1) - tile.max_keep(0) * tile.min_keep(1);
    store(out + at, shares.ravel());
    let [left, right] = [tile.pick(1, 2), tile.pick(1, 7)];
    let rows = cat([tile.row(3), tile.row(0), tile.row(2), tile.row(1)], 0);
    store(out + 32 + at, rows);
    let columns = left.expand(1).cat(right.expand(1), 1);
    store(out + 64 + arange(0, 8), columns.ravel());
    let below = tile.cat(-tile, 0).pick(1, 0);
    store(out + 72 + arange(0, 8), below);
    store(
        out + 80,
        tile.cumsum(1).pick(1, 7).max_keep(0).squeeze(0).scalar(),
    );
}

#[test]
fn axes_stay_go_and_follow_each_other() {
    let numbers: Vec<f32> = (0..32).map(|i| (i * 7 % 11 + 1) as f32).collect();
    let row = |i: usize| &numbers[8 * i..8 * i + 8];
    let mut want = Vec::new();
    for i in 0..4 {
        let sum: f32 = row(i).iter().sum();
        let least = row(i).iter().copied().fold(f32::MAX, f32::min);
        for (j, x) in row(i).iter().enumerate() {
            let greatest = (0..4).map(|i| row(i)[j]).fold(0.0, f32::max);
            want.push(x / sum - greatest * least);
        }
    }
    want.extend([3, 0, 2, 1].into_iter().flat_map(row));
    want.extend((0..4).flat_map(|i| [row(i)[2], row(i)[7]]));
    want.extend((0..4).map(|i| row(i)[0]));
    want.extend((0..4).map(|i| -row(i)[0]));
    want.push((0..4).map(|i| row(i).iter().sum()).fold(0.0, f32::max));
    for device in devices() {
        let x = upload(&device, &numbers);
        let mut out = upload(&device, &[0.0f32; 81]);
        shapes().run(&device, 1, (&x, &mut out)).expect("runs");
        assert_eq!(out.to_vec().expect("reads"), want, "{device}");
    }
}

#[kernel]
fn both_of_the_host(out: PtrMut<f32>, counts: PtrMut<i32>, flags: PtrMut<bool>, n: i32) {
    let at = arange(0, 8);
    store(out + at, select(at < n, 1.0, 0.25));
    store(counts + at, select(at < n, 7, -3));
    let even = at % 2 == 0;
    let odd = true ^ even;
    store(flags + at, select(at < n, true, odd) & true | false & even);
    store(
        counts + 8,
        cdiv(n, 4) + cdiv(100, n) + cdiv(n, -2) * 1000 + select(n > 3, 10_000, 0),
    );
    store(counts + 9, cdiv(cdiv(1000, 300), 3) as i32);
    let wide = cdiv(at * 3 - 9, n);
    store(counts + 10 + at, wide.to::<i32>());
    let unsigned = cdiv(at.to::<u32>() + u32::MAX - 7, 2u32);
    store(counts + 18 + at, (unsigned - 0x7fff_fff0).to::<i32>());
}

#[test]
fn two_numbers_of_the_host_have_a_type() {
    for device in devices() {
        let mut out = upload(&device, &[9.0f32; 8]);
        let mut counts = upload(&device, &[9i32; 26]);
        let mut flags = upload(&device, &[false; 8]);
        both_of_the_host()
            .run(&device, 1, (&mut out, &mut counts, &mut flags, 5))
            .expect("runs");
        let [x, y] = [1.0, 0.25];
        assert_eq!(out.to_vec().expect("reads"), [x, x, x, x, x, y, y, y]);
        let flags = flags.to_vec().expect("reads");
        assert_eq!(flags, [true, true, true, true, true, true, false, true]);
        let mut want = vec![7, 7, 7, 7, 7, -3, -3, -3, 2 + 20 - 2000 + 10_000, 2];
        want.extend((0..8).map(|i| (f64::from(i * 3 - 9) / 5.0).ceil() as i32));
        let sums = (0..8).map(|i| u32::MAX - 7 + i);
        want.extend(sums.map(|sum| (sum.div_ceil(2) - 0x7fff_fff0) as i32));
        assert_eq!(counts.to_vec().expect("reads"), want, "{device}");
    }
}

#[kernel]
fn keeps(x: Ptr<i32>, out: PtrMut<i32>) {
    let at = arange(0, 32);
    let tile = load(x + at).reshape([4, 8]);
    let flags = tile > 5;
    let both = reduce_keep((tile, tile * 2), 1, |a, b| (a.0 + b.0, maximum(a.1, b.1)));
    let rows = [
        tile.product_keep(1),
        tile.maximum_keep(1),
        tile.minimum_keep(1),
        tile.argmax_keep(1).to::<i32>(),
        tile.argmin_keep(1).to::<i32>(),
        tile.and_keep(1),
        tile.or_keep(1),
        tile.xor_keep(1),
        flags.any_keep(1).to::<i32>(),
        flags.all_keep(1).to::<i32>(),
        both.0,
        both.1,
        tile.max_with_index(1).0.expand(1),
        tile.min_with_index(1).1.to::<i32>().expand(1),
    ];
    for (row, found) in rows.into_iter().enumerate() {
        let repeated = found + 0 * tile;
        store(out + row * 32 + at, repeated.ravel());
    }
    let whole = load(x + arange(0, 8)).broadcast_to([2, 2, 8]);
    store(out + 14 * 32 + at, whole.ravel());
    let changed = tile.with_slice(1, 4, tile.slice(1, 0, 2) * 100);
    let changed = changed
        .with_slice(0, 1, tile.slice(0, 3, 1))
        .with_slice(1, 7, -1);
    store(
        out + 15 * 32 + at,
        changed.with_slice(0, 0, changed).ravel(),
    );
}

#[test]
fn reductions_keep_axes_and_parts_are_replaced() {
    let x: Vec<i32> = (0..32).map(|i| i * 7 % 11 + 1).collect();
    let mut want = Vec::new();
    let of_rows: [fn(&[i32]) -> i32; 14] = [
        |row| row.iter().fold(1, |a, &b| a.wrapping_mul(b)),
        |row| row.iter().copied().fold(i32::MIN, i32::max),
        |row| row.iter().copied().fold(i32::MAX, i32::min),
        |row| {
            row.iter()
                .position(|x| row.iter().all(|y| y <= x))
                .map_or(-1, |at| at as i32)
        },
        |row| {
            row.iter()
                .position(|x| row.iter().all(|y| y >= x))
                .map_or(-1, |at| at as i32)
        },
        |row| row.iter().fold(-1, |a, b| a & b),
        |row| row.iter().fold(0, |a, b| a | b),
        |row| row.iter().fold(0, |a, b| a ^ b),
        |row| i32::from(row.iter().any(|&x| x > 5)),
        |row| i32::from(row.iter().all(|&x| x > 5)),
        |row| row.iter().sum(),
        |row| row.iter().map(|x| 2 * x).fold(i32::MIN, i32::max),
        |row| row.iter().copied().fold(i32::MIN, i32::max),
        |row| {
            row.iter()
                .position(|x| row.iter().all(|y| y >= x))
                .map_or(-1, |at| at as i32)
        },
    ];
    for function in of_rows {
        want.extend(x.chunks(8).flat_map(|row| [function(row); 8]));
    }
    want.extend([&x[..8]; 4].concat());
    let mut rows: Vec<Vec<i32>> = x.chunks(8).map(<[i32]>::to_vec).collect();
    for row in &mut rows {
        (row[4], row[5]) = (row[0] * 100, row[1] * 100);
    }
    rows[1] = x[24..].to_vec();
    rows.iter_mut().for_each(|row| row[7] = -1);
    want.extend(rows.concat());
    for device in devices() {
        let x = upload(&device, &x);
        let mut out = upload(&device, &vec![0i32; 16 * 32]);
        keeps().run(&device, 1, (&x, &mut out)).expect("runs");
        assert_eq!(out.to_vec().expect("reads"), want, "{device}");
    }
}

#[kernel]
fn picks<T: Numeric, const EXTENT: usize>(x: Ptr<T>, out: PtrMut<T>, flags: PtrMut<bool>) {
    let tile = load(x + arange(0, 2 * EXTENT)).reshape([2, EXTENT]);
    let at = arange(0, 2);
    store(out + at, tile.pick(1, EXTENT - 1));
    store(out + 2 + at, tile.pick(1, 77));
    store(out + 4, tile.row(1).cumsum(0).pick(0, EXTENT - 1));
    store(flags + at, (tile == tile.pick(1, 5).expand(1)).pick(1, 5));
}

/// Beyond a thousand positions, where the lanes of a GPU do not hold the whole axis.
#[test]
fn one_of_many_positions_is_picked() {
    let numbers: Vec<f32> = (0..8192).map(|i| (i % 7) as f32 - 2.5).collect();
    for device in devices() {
        let x = upload(&device, &numbers);
        let mut out = upload(&device, &[0.0f32; 5]);
        let mut flags = upload(&device, &[false; 2]);
        picks::<f32>()
            .extent(4096)
            .run(&device, 1, (&x, &mut out, &mut flags))
            .expect("runs");
        let sum: f32 = numbers[4096..].iter().sum();
        let want = [
            numbers[4095],
            numbers[8191],
            numbers[77],
            numbers[4173],
            sum,
        ];
        assert_eq!(out.to_vec().expect("reads"), want, "{device}");
        assert_eq!(flags.to_vec().expect("reads"), [true; 2]);
    }
}

#[kernel]
fn parts_that_do_not_fit(out: PtrMut<i64>) {
    let tile = arange(0, 32).reshape([4, 8]);
    let wrongs = [
        tile.with_slice(1, 3, tile.slice(1, 0, 2)),
        tile.with_slice(1, 8, 0),
        tile.with_slice(2, 0, 0),
        tile.with_slice(0, 0, arange(0, 8)),
        tile.broadcast_to([8]),
        arange(0, 4).broadcast_to([4, 8]),
        tile.slice(1, 4, 8),
        tile.pick(1, 8).expand(1),
    ];
    for wrong in wrongs {
        store(out + tile, wrong);
    }
}

#[test]
fn parts_that_do_not_fit_are_errors() {
    let errors = parts_that_do_not_fit().trace();
    let text = errors.expect_err("is wrong").to_string();
    let found = text.lines().filter_map(|line| line.strip_prefix("error: "));
    let want = [
        "`with_slice` cannot put `tile<4x2xi64>` into `tile<4x8xi64>` from 3 on along axis 1",
        "`with_slice` cannot put `i64` into `tile<4x8xi64>` from 8 on along axis 1",
        "`with_slice` cannot put `i64` into `tile<4x8xi64>` from 0 on along axis 2",
        "`with_slice` cannot put `tile<8xi64>` into `tile<4x8xi64>` from 0 on along axis 0",
        "`broadcast_to`: shape [4, 8] does not broadcast to [8]",
        "`broadcast_to`: shape [1, 4] does not broadcast to [4, 8]",
        "`slice` cannot take 8 elements from 4 on along axis 1 of `tile<4x8xi64>`",
        "`pick` cannot take position 8 along axis 1 of `tile<4x8xi64>`",
    ];
    assert_eq!(found.collect::<Vec<_>>(), want);
}

#[kernel]
fn new_axes(out: PtrMut<i64>) {
    let x = arange(0, 4) * 3;
    let one = x.expand([0, 2]);
    let same = x.expand(1).expand(0);
    let other = arange(0, 2).expand([2, 1]);
    let sum = one + same * 10 + other.squeeze(2).expand([0]).reshape([1, 1, 2]) * 100;
    store(out + arange(0, 8), sum.ravel());
}

#[kernel]
fn wrong_axes<const CASE: usize>(out: PtrMut<i64>) {
    let x = arange(0, 4);
    let x = if CASE == 0 {
        x.expand([1, 1])
    } else {
        x.expand([0, 4])
    };
    store(out + arange(0, 4), x.ravel());
}

#[test]
fn several_axes_are_inserted_where_the_result_has_them() {
    for device in devices() {
        let mut out = upload(&device, &[0_i64; 8]);
        new_axes().run(&device, 1, (&mut out,)).expect("runs");
        let want: Vec<i64> = (0..4).flat_map(|x| [x * 33, x * 33 + 100]).collect();
        assert_eq!(out.to_vec().expect("reads"), want);
    }
    let refusal = |case| {
        wrong_axes()
            .case(case)
            .check()
            .expect_err("is refused")
            .to_string()
    };
    let (twice, beyond) = (refusal(0), refusal(1));
    assert!(
        twice.contains("`expand`: axis 1 is inserted twice"),
        "{twice}"
    );
    assert!(
        beyond.contains("`expand_dims` cannot insert axis 4"),
        "{beyond}"
    );
}
