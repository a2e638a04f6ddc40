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
        numbers_on_either_side::<f32>(Default::default())
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
        moments::<f32>(Default::default())
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
        shapes(Default::default())
            .run(&device, 1, (&x, &mut out))
            .expect("runs");
        assert_eq!(out.to_vec().expect("reads"), want, "{device}");
    }
}
