//! Scans, executed on every device of the host: each element is the reduction of its prefix, also
//! across the tiles of a loop.

use exactile::prelude::*;

use super::language::{devices, noise, upload};

/// Every prefix sum next to the sum of the same prefix, and the other scans of a row.
#[kernel]
fn prefixes<T: Numeric, const BLOCK: usize>(
    x: Ptr<T>,
    sums: PtrMut<T>,
    want: PtrMut<T>,
    others: PtrMut<T>,
) {
    let at = arange(0, BLOCK);
    let row = load(x + at);
    store(sums + at, row.cumsum(0));
    store(sums + BLOCK + at, row.reverse_cumsum(0));
    let square = row.expand(0) + zeros::<T>([BLOCK, BLOCK]);
    let (i, j) = (at.expand(1), at.expand(0));
    let zero = zeros::<T>([BLOCK, BLOCK]);
    store(want + at, select(j <= i, square, zero).sum(1));
    // The tree over a reversed suffix: element `j` of it is element `BLOCK - 1 - j` of the row.
    let backwards = load(x + (BLOCK as i64 - 1 - at)).expand(0) + zero;
    store(
        want + BLOCK + at,
        select(j < BLOCK - i, backwards, zero).sum(1),
    );
    store(others + at, row.cummax(0));
    store(others + BLOCK + at, row.reverse_cummin(0));
    store(others + 2 * BLOCK + at, row.cumprod(0));
    let (_, from) = reverse_scan((row, at), 0, |a, b| if b.0 < a.0 { b } else { a });
    store(others + 3 * BLOCK + at, from.to::<T>());
}

#[test]
fn scans_are_the_reductions_of_their_prefixes() {
    for device in devices() {
        for block in [1, 2, 8, 64, 256] {
            let x: Vec<f32> = (0..block)
                .map(|at| ((at * 37 % 64) as f32 - 31.0) * 1.1f32.powi((at % 50) as i32))
                .collect();
            let x = if block == 8 { vec![-0.0; 8] } else { x };
            let input = upload(&device, &x);
            let mut sums = upload(&device, &vec![1.0f32; 2 * block]);
            let mut want = upload(&device, &vec![2.0f32; 2 * block]);
            let mut others = upload(&device, &vec![3.0f32; 4 * block]);
            prefixes::<f32>()
                .block(block)
                .run(&device, 1, (&input, &mut sums, &mut want, &mut others))
                .expect("runs");
            let bits = |buffer: &Buffer<f32>| -> Vec<u32> {
                let numbers = buffer.to_vec().expect("reads");
                numbers.iter().map(|number| number.to_bits()).collect()
            };
            assert_eq!(bits(&sums), bits(&want), "{block}");
            let others = others.to_vec().expect("reads");
            for at in 0..block {
                let (before, after) = (&x[..=at], &x[at..]);
                assert_eq!(others[at], before.iter().copied().fold(f32::MIN, f32::max));
                let least = after.iter().copied().fold(f32::MAX, f32::min);
                assert_eq!(others[block + at], least);
                let last = after
                    .iter()
                    .rposition(|&value| value == least)
                    .expect("one");
                assert_eq!(others[3 * block + at], (at + last) as f32);
            }
            if block >= 8 {
                let products = &others[2 * block..];
                let four = (x[0] * x[1]) * (x[2] * x[3]);
                assert_eq!(products[6], four * ((x[4] * x[5]) * x[6]));
            }
        }
    }
}

/// The prefix sums of a row over tiles of `BLOCK`, and the sum that is left.
#[kernel]
fn looped<T: Float, const BLOCK: usize, const TILES: usize>(
    x: Ptr<T>,
    out: PtrMut<T>,
    total: PtrMut<T>,
    n: i32,
) {
    let mut sum = sum_accumulator::<T>([]).at_most(TILES);
    for start in range(0, n).step(BLOCK) {
        let offsets = start + arange(0, BLOCK);
        let mask = offsets < n;
        let sums = sum.cumsum(load(x + offsets).mask(mask), 0);
        store(out + offsets, sums).mask(mask);
    }
    store(total, sum.finish());
}

/// The same down the columns of a matrix, four at a time.
#[kernel]
fn looped_columns<const ROWS: usize>(x: Tensor<f32, 2>, out: TensorMut<f32, 2>) {
    let mut sum = sum_accumulator::<f32>([4]).at_most(64);
    for row in range(0, x.extent(0)).step(ROWS) {
        let tile = load(x.tile([ROWS, 4]).at_offset((row, 0)));
        store(out.tile([ROWS, 4]).at_offset((row, 0)), sum.cumsum(tile, 0));
    }
}

/// The complete aligned subtrees of a prefix, the largest on the left.
fn tree(x: &[f32]) -> f32 {
    match x {
        [] => 0.0,
        [one] => *one,
        _ => {
            let half = x.len().next_power_of_two() / 2;
            tree(&x[..half]) + tree(&x[half..])
        }
    }
}

fn bits(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|number| number.to_bits()).collect()
}

#[test]
fn prefix_sums_over_tiles_do_not_depend_on_their_size() {
    let n = 200;
    let mut numbers = noise(n);
    numbers[..3].fill(-0.0);
    let want: Vec<f32> = (0..n).map(|at| tree(&numbers[..=at]) + 0.0).collect();
    for device in devices() {
        let x = upload(&device, &numbers);
        for (block, tiles) in [(1, 200), (4, 64), (16, 13), (64, 4), (256, 1), (8, 65536)] {
            let mut out = upload(&device, &vec![f32::NAN; n]);
            let mut total = upload(&device, &[f32::NAN]);
            looped::<f32>()
                .block(block)
                .tiles(tiles)
                .run(&device, 1, (&x, &mut out, &mut total, n as i32))
                .expect("runs");
            let found = out.to_vec().expect("reads");
            assert_eq!(bits(&found), bits(&want), "block {block}");
            let total = total.to_vec().expect("reads");
            assert_eq!(bits(&total), bits(&want[n - 1..]), "block {block}");
        }
    }
}

#[test]
fn prefix_sums_go_down_columns() {
    let (rows, columns) = (50, 4);
    let numbers = noise(rows * columns);
    for device in devices() {
        let x = upload(&device, &numbers);
        for block in [1, 8, 64] {
            let mut out = upload(&device, &vec![f32::NAN; rows * columns]);
            let views = (
                x.view([rows, columns]).expect("fits"),
                out.view_mut([rows, columns]).expect("fits"),
            );
            looped_columns()
                .rows(block)
                .run(&device, 1, views)
                .expect("runs");
            let found = out.to_vec().expect("reads");
            for column in 0..columns {
                let column: Vec<usize> = (column..found.len()).step_by(columns).collect();
                let own: Vec<f32> = column.iter().map(|&at| numbers[at]).collect();
                for (row, &at) in column.iter().enumerate() {
                    let want = tree(&own[..=row]) + 0.0;
                    assert_eq!(found[at].to_bits(), want.to_bits(), "block {block}, {at}");
                }
            }
        }
    }
}

/// `f16` adds in `f32` and rounds each prefix once.
#[test]
fn half_prefix_sums_round_once() {
    for device in devices() {
        let ones = vec![f16::from_f32(1.0); 64];
        let mut numbers = vec![f16::from_f32(2048.0)];
        numbers.extend(&ones[1..]);
        let x = upload(&device, &numbers);
        let mut out = upload(&device, &ones);
        let mut total = upload(&device, &ones[..1]);
        looped::<f16>()
            .block(16)
            .tiles(4)
            .run(&device, 1, (&x, &mut out, &mut total, 64))
            .expect("runs");
        let want: Vec<f16> = (0..64)
            .map(|at| f16::from_f32(2048.0 + at as f32))
            .collect();
        assert_eq!(out.to_vec().expect("reads"), want);
    }
}

/// The greatest shown element up to each position with its place, and how their sums go on: no element is neutral.
#[kernel]
fn shown_prefixes<const BLOCK: usize>(x: Ptr<f32>, out: PtrMut<f32>, places: PtrMut<i64>, n: i32) {
    let mut all = accumulator::<(Tile<f32>, Tile<i64>, Tile<f32>)>([], |a, b| {
        let greater = b.0 > a.0;
        let (value, place) = (select(greater, b.0, a.0), select(greater, b.1, a.1));
        (value, place, a.2 + b.2)
    });
    for start in range(0, n).step(BLOCK) {
        let at = start + arange(0, BLOCK);
        let tile = load(x + at).mask(at < n);
        let (values, own, sums) = all.scan_masked((tile, at, tile), (at < n) & (tile < 0.5), 0);
        store(out + at, values).mask(at < n);
        store(out + n + at, sums).mask(at < n);
        store(places + at, own).mask(at < n);
    }
    let (value, place, sum) = all.finish();
    store(out + 2 * n, value);
    store(out + 2 * n + 1, sum);
    store(places + n, place);
}

#[test]
fn masked_scans_have_the_bits_of_one_tile() {
    let numbers = noise(99);
    let n = numbers.len();
    for device in devices() {
        let x = upload(&device, &numbers);
        let run = |block: usize| {
            let mut out = upload(&device, &vec![0.0f32; 2 * n + 2]);
            let mut places = upload(&device, &vec![0i64; n + 1]);
            let kernel = shown_prefixes().block(block);
            kernel
                .run(&device, 1, (&x, &mut out, &mut places, n as i32))
                .expect("runs");
            (
                out.to_vec().expect("is read"),
                places.to_vec().expect("is read"),
            )
        };
        let (one, places) = run(128);
        let mut best: Option<(f32, i64)> = None;
        for (at, &number) in numbers.iter().enumerate() {
            if number < 0.5 && best.is_none_or(|(greatest, _)| number > greatest) {
                best = Some((number, at as i64));
            }
            let (value, place) = best.unwrap_or_default();
            assert_eq!((one[at], places[at]), (value, place), "{at} on {device}");
        }
        assert_eq!(
            (one[n - 1], one[2 * n - 1], places[n - 1]),
            (one[2 * n], one[2 * n + 1], places[n])
        );
        for block in [1, 4, 32] {
            let (tiles, own) = run(block);
            exactile::assert_bits_equal(&tiles, &one);
            assert_eq!(own, places, "{block} on {device}");
        }
    }
}
