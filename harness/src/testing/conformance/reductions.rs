//! Reductions, scans and counts, of every type, along every axis.

use exactile::prelude::*;
use exactile::{Comparable, DType, Number, Result};

use super::each;
use super::judge::{Judge, ensure, expect, expect_near};
use super::wide::{Wide, least, modest, most, pair};

/// Combines by the balanced tree over the index, each node rounded by `node`.
pub(super) fn tree(x: &[Wide], node: &impl Fn(Wide, Wide) -> Wide) -> Wide {
    match x {
        [] => Wide::Float(0.0),
        [one] => *one,
        _ => {
            let half = x.len().next_power_of_two() / 2;
            node(tree(&x[..half], node), tree(&x[half..], node))
        }
    }
}

/// A node rounded to the type in which a sum of `T` is added.
fn rounded<T: Number>(value: Wide) -> Wide {
    match value {
        Wide::Float(value) if T::DTYPE == DType::F64 => Wide::Float(value),
        Wide::Float(value) => Wide::Float(f64::from(value as f32)),
        Wide::Int(_) => Wide::of(value.to::<T>()),
    }
}

fn sum<T: Number>(x: &[T]) -> T {
    let wide: Vec<Wide> = x.iter().map(|&x| Wide::of(x)).collect();
    let node = |a, b| rounded::<T>(pair(a, b, |a, b| a + b, |a, b| a + b));
    match tree(&wide, &node) {
        Wide::Float(value) => Wide::Float(value + 0.0).to(),
        value @ Wide::Int(_) => value.to(),
    }
}

fn product<T: Number>(x: &[T]) -> T {
    let wide: Vec<Wide> = x.iter().map(|&x| Wide::of(x)).collect();
    tree(&wide, &|a, b| {
        rounded::<T>(pair(a, b, i128::wrapping_mul, |a, b| a * b))
    })
    .to()
}

/// The greatest element, or the least, where there is no NaN.
fn extreme<T: Number>(x: &[T], greatest: bool) -> T {
    let wide: Vec<Wide> = x.iter().map(|&x| Wide::of(x)).collect();
    let node = |a, b| match greatest {
        true => pair(a, b, i128::max, most),
        false => pair(a, b, i128::min, least),
    };
    tree(&wide, &node).to()
}

fn first_of<T: Number>(x: &[T], wanted: T) -> i64 {
    let place = x.iter().position(|x| x.to_bits() == wanted.to_bits());
    place.map_or(-1, |place| place as i64)
}

#[kernel]
fn reduce_rows<T: Numeric, const N: usize>(
    x: Ptr<T>,
    out: PtrMut<T>,
    places: PtrMut<i64>,
    count: i32,
) {
    let at = arange(0, N);
    let mask = at < count;
    let row = load(x + program_id(0) * count + at).mask(mask);
    // Behind the end the last element stands once more.
    let whole = load(x + program_id(0) * count + minimum(at, count - 1));
    let place = program_id(0) * 6;
    store(out + place, row.sum(0));
    store(out + place + 1, whole.max(0));
    store(out + place + 2, whole.min(0));
    store(out + place + 3, reduce_masked(row, mask, 0, |a, b| a * b));
    store(
        out + place + 4,
        reduce_masked(row, mask, 0, |a, b| maximum(a, b)),
    );
    store(out + place + 5, reduce_masked(row, mask, 0, |a, _| a));
    store(places + program_id(0) * 2, whole.argmax(0));
    store(places + program_id(0) * 2 + 1, whole.argmin(0));
}

fn reduce_rows_on<T: Numeric + Number>(judge: &mut Judge<'_>) -> Result<()> {
    for count in [32, 64, 100, 128, 512] {
        let x = modest::<T>(2 * count, count as u64);
        let what = format!("reductions of {count} {}", T::DTYPE);
        let n = count.next_power_of_two();
        let found = judge.same(&what, &[n, 2 * n], |way| {
            let given = way.given(&x)?;
            let (mut out, mut places) = (way.room::<T>(12)?, way.room::<i64>(4)?);
            let kernel = reduce_rows::<T>().n(way.block).schedule(way.schedule);
            let arguments = (&given, &mut out, &mut places, count as i32);
            kernel.run(&way.device, 2, arguments)?;
            Ok(vec![out.to_array()?, places.to_array()?])
        })?;
        let (mut want, mut places) = (Vec::new(), Vec::new());
        for row in x.chunks(count) {
            let (high, low) = (extreme(row, true), extreme(row, false));
            // The closure rounds each node to `T`; `product` and `sum` do so in the end.
            want.extend([sum(row), high, low, stepwise(row), high, row[0]]);
            places.extend([first_of(row, high), first_of(row, low)]);
        }
        expect(&what, &found[0], &want)?;
        expect(&what, &found[1], &places)?;
    }
    Ok(())
}

/// The product with each node rounded to `T`.
fn stepwise<T: Number>(x: &[T]) -> T {
    let wide: Vec<Wide> = x.iter().map(|&x| Wide::of(x)).collect();
    let node = |a, b| Wide::of(pair(a, b, i128::wrapping_mul, |a, b| a * b).to::<T>());
    tree(&wide, &node).to()
}

/// Sums, extrema with their places, products and the first element, with tails.
pub(super) fn rows(judge: &mut Judge<'_>) -> Result<()> {
    each!(reduce_rows_on(judge): i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64);
    Ok(())
}

#[kernel]
fn reduce_axis<T: Numeric, const A: usize, const B: usize, const C: usize, const AXIS: usize>(
    x: Ptr<T>,
    out: PtrMut<T>,
    places: PtrMut<i64>,
) {
    let tile = load(x + arange(0, A * B * C)).reshape([A, B, C]);
    let left = A * B * C / [A, B, C][AXIS];
    let at = arange(0, left);
    store(out + at, tile.sum(AXIS).reshape([left]));
    store(out + left + at, tile.max(AXIS).reshape([left]));
    store(out + 2 * left + at, tile.min(AXIS).reshape([left]));
    let kept = tile.sum_keep(AXIS).broadcast_to([A, B, C]);
    store(out + 3 * left + arange(0, A * B * C), kept.ravel());
    store(places + at, tile.argmax(AXIS).reshape([left]));
    store(places + left + at, tile.argmin(AXIS).reshape([left]));
}

/// The elements along an axis, for each place of the others.
fn along<T: Number>(x: &[T], extents: [usize; 3], axis: usize) -> Vec<Vec<T>> {
    let [a, b, c] = extents;
    let mut rows = vec![Vec::new(); a * b * c / extents[axis]];
    for (at, &x) in x.iter().enumerate() {
        let (i, j, k) = (at / (b * c), at / c % b, at % c);
        rows[[j * c + k, i * c + k, i * b + j][axis]].push(x);
    }
    rows
}

/// Reductions along each axis of tiles of rank 2 and 3.
pub(super) fn axes(judge: &mut Judge<'_>) -> Result<()> {
    each!(axes_on(judge): i8 f16 bf16 f32);
    Ok(())
}

fn axes_on<T: Numeric + Number>(judge: &mut Judge<'_>) -> Result<()> {
    let shapes = [
        [1, 2, 32],
        [1, 4, 128],
        [1, 1, 1024],
        [2, 32, 16],
        [32, 2, 16],
        [32, 16, 2],
    ];
    for extents @ [a, b, c] in shapes {
        for axis in 0..3 {
            let (count, left) = (a * b * c, a * b * c / extents[axis]);
            let x = modest::<T>(count, 9);
            let what = format!("reductions of {extents:?} {} along axis {axis}", T::DTYPE);
            let found = judge.same(&what, &[1], |way| {
                let given = way.given(&x)?;
                let mut out = way.room::<T>(3 * left + count)?;
                let mut places = way.room::<i64>(2 * left)?;
                let kernel = reduce_axis::<T>()
                    .a(a)
                    .b(b)
                    .c(c)
                    .axis(axis)
                    .schedule(way.schedule);
                kernel.run(&way.device, 1, (&given, &mut out, &mut places))?;
                Ok(vec![out.to_array()?, places.to_array()?])
            })?;
            let rows = along(&x, extents, axis);
            let all = |f: Fold<T>| rows.iter().map(move |row| f(row));
            let mut want: Vec<T> = all(sum).collect();
            want.extend(all(|row| extreme(row, true)));
            want.extend(all(|row| extreme(row, false)));
            let (b, c) = (extents[1], extents[2]);
            let place = |at: usize| {
                let (i, j, k) = (at / (b * c), at / c % b, at % c);
                [j * c + k, i * c + k, i * b + j][axis]
            };
            let kept: Vec<T> = (0..count).map(|at| want[place(at)]).collect();
            want.extend(kept);
            expect(&what, &found[0], &want)?;
            let place = |greatest| move |row: &Vec<T>| first_of(row, extreme(row, greatest));
            let places: Vec<i64> = rows
                .iter()
                .map(place(true))
                .chain(rows.iter().map(place(false)))
                .collect();
            expect(&what, &found[1], &places)?;
        }
    }
    Ok(())
}

#[kernel]
fn special(x: Ptr<f32>, out: PtrMut<f32>, places: PtrMut<i64>) {
    let row = load(x + program_id(0) * 4 + arange(0, 4));
    let at = program_id(0) * 4;
    store(out + at, row.max(0));
    store(out + at + 1, row.min(0));
    store(out + at + 2, row.maximum(0));
    store(out + at + 3, row.sum(0));
    store(places + program_id(0) * 2, row.argmax(0));
    store(places + program_id(0) * 2 + 1, row.argmin(0));
}

/// NaN, infinities and zeros of both signs in reductions.
pub(super) fn specials(judge: &mut Judge<'_>) -> Result<()> {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let rows = [
        [nan, -inf, inf, 0.0],
        [nan, 6.0, 8.0, 7.0],
        [3.0, 5.0, nan, 4.0],
        [3.0, nan, 1.0, 1.0],
        [0.0; 4],
        [-0.0; 4],
        [-0.0, 0.0, -0.0, 0.0],
        [nan; 4],
    ];
    let what = "reductions of special values";
    let found = judge.same(what, &[1], |way| {
        let given = way.given(rows.as_flattened())?;
        let (mut out, mut places) = (way.room::<f32>(32)?, way.room::<i64>(16)?);
        let kernel = special().schedule(way.schedule);
        kernel.run(&way.device, 8, (&given, &mut out, &mut places))?;
        Ok(vec![out.to_array()?, places.to_array()?])
    })?;
    let want = [
        [inf, -inf, nan, nan],
        [8.0, 6.0, nan, nan],
        [5.0, 3.0, nan, nan],
        [3.0, 1.0, nan, nan],
        [0.0, 0.0, 0.0, 0.0],
        [-0.0, -0.0, -0.0, 0.0],
        [0.0, -0.0, 0.0, 0.0],
        [nan; 4],
    ];
    expect(what, &found[0], want.as_flattened())?;
    expect(
        what,
        &found[1],
        &[2, 1, 2, 1, 1, 0, 0, 2, 0, 0, 0, 0, 1, 0, 0, 0i64],
    )
}

#[kernel]
fn scans<T: Numeric, const M: usize, const N: usize, const AXIS: usize>(
    x: Ptr<T>,
    out: PtrMut<T>,
    places: PtrMut<i64>,
) {
    let at = arange(0, M).expand(1) * N + arange(0, N).expand(0);
    let tile = load(x + at);
    let index = at + zeros::<i64>([M, N]);
    let (high, from) = scan((tile, index), AXIS, |a, b| {
        let first = a.0 >= b.0;
        (select(first, a.0, b.0), select(first, a.1, b.1))
    });
    let found = [
        tile.cumsum(AXIS),
        tile.reverse_cumsum(AXIS),
        tile.cumprod(AXIS),
        tile.reverse_cumprod(AXIS),
        tile.cummax(AXIS),
        tile.reverse_cummin(AXIS),
        scan(tile, AXIS, |a, _| a),
        high,
    ];
    for (place, found) in found.into_iter().enumerate() {
        store(out + M * N * place + at, found);
    }
    store(places + at, from);
}

type Fold<T> = fn(&[T]) -> T;

fn scans_on<T: Numeric + Number>(judge: &mut Judge<'_>) -> Result<()> {
    for [m, n] in [[8, 32], [32, 16], [2, 256], [1, 64]] {
        for axis in 0..2 {
            scans_of::<T>(judge, [m, n], axis)?;
        }
    }
    Ok(())
}

fn scans_of<T: Numeric + Number>(
    judge: &mut Judge<'_>,
    [m, n]: [usize; 2],
    axis: usize,
) -> Result<()> {
    let x = modest::<T>(m * n, 11);
    let what = format!("scans of {m} x {n} {} along axis {axis}", T::DTYPE);
    let found = judge.same(&what, &[1], |way| {
        let given = way.given(&x)?;
        let (mut out, mut places) = (way.room::<T>(8 * m * n)?, way.room::<i64>(m * n)?);
        let kernel = scans::<T>().m(m).n(n).axis(axis).schedule(way.schedule);
        kernel.run(&way.device, 1, (&given, &mut out, &mut places))?;
        Ok(vec![out.to_array()?, places.to_array()?])
    })?;
    let before = |at: usize| -> Vec<T> {
        match axis {
            0 => (0..=at / n).map(|i| x[i * n + at % n]).collect(),
            _ => x[at / n * n..=at].to_vec(),
        }
    };
    let after = |at: usize| -> Vec<T> {
        match axis {
            0 => (at / n..m).rev().map(|i| x[i * n + at % n]).collect(),
            _ => x[at..(at / n + 1) * n].iter().rev().copied().collect(),
        }
    };
    let high: Fold<T> = |x| extreme(x, true);
    let low: Fold<T> = |x| extreme(x, false);
    let folds: [(bool, Fold<T>); 8] = [
        (true, sum),
        (false, sum),
        (true, product),
        (false, product),
        (true, high),
        (false, low),
        (true, |x| x[0]),
        (true, high),
    ];
    let mut want = Vec::new();
    for (forward, fold) in folds {
        want.extend((0..m * n).map(|at| fold(&if forward { before(at) } else { after(at) })));
    }
    expect(&what, &found[0], &want)?;
    let step = if axis == 0 { n } else { 1 };
    let start = |at: usize| if axis == 0 { at % n } else { at / n * n };
    let place = |at: usize| {
        let row = before(at);
        (start(at) + step * first_of(&row, extreme(&row, true)) as usize) as i64
    };
    expect(&what, &found[1], &(0..m * n).map(place).collect::<Vec<_>>())
}

/// Prefix sums, products, extrema with places, both ways, and a combine that does not commute.
pub(super) fn prefixes(judge: &mut Judge<'_>) -> Result<()> {
    each!(scans_on(judge): i32 i64 u8 f16 bf16 f32 f64);
    Ok(())
}

#[kernel]
fn welford<const BLOCK: usize>(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let moments = accumulator::<(Tile<f32>, Tile<f32>, Tile<f32>)>([], |a, b| {
        let weight = a.2 + b.2;
        let share = select(weight == 0.0, 0.0, b.2 / weight);
        let distance = b.0 - a.0;
        (
            a.0 + distance * share,
            a.1 + b.1 + distance * distance * a.2 * share,
            weight,
        )
    });
    let mut moments = moments;
    for start in range(0, n).step(BLOCK) {
        let at = start + arange(0, BLOCK);
        let one = full::<f32>([BLOCK], 1.0);
        moments.add_masked(
            (load(x + at).mask(at < n), zeros::<f32>([BLOCK]), one),
            at < n,
            0,
        );
    }
    let (mean, squares, weight) = moments.finish();
    store(out, mean);
    store(out + 1, squares);
    store(out + 2, weight);
}

/// Welford's moments in one tile and over tiles of a loop.
pub(super) fn moments(judge: &mut Judge<'_>) -> Result<()> {
    let x = modest::<f32>(500, 13);
    let what = "Welford's moments of 500 numbers";
    let found = judge.same(what, &[512, 64], |way| {
        let given = way.given(&x)?;
        let mut out = way.room::<f32>(3)?;
        let kernel = welford().block(way.block).schedule(way.schedule);
        kernel.run(&way.device, 1, (&given, &mut out, 500))?;
        Ok(vec![out.to_array()?])
    })?;
    let mean = x.iter().map(|&x| f64::from(x)).sum::<f64>() / 500.0;
    let squares: f64 = x.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum();
    expect_near(what, &found[0], &[mean as f32, squares as f32, 500.0], 1e-4)
}

#[kernel]
fn counted<const N: usize, const BINS: usize>(x: Ptr<i32>, out: PtrMut<i32>, kept: i32) {
    let at = arange(0, N);
    let x = load(x + at);
    let bins = arange(0, BINS);
    store(out + bins, histogram(x, BINS) + zeros::<i32>([BINS]));
    store(out + BINS + bins, histogram_masked(x, at < kept, BINS));
}

/// Counts, with numbers out of range and masks.
pub(super) fn counts(judge: &mut Judge<'_>) -> Result<()> {
    let sizes = [
        (2048, 2),
        (1024, 8),
        (1024, 128),
        (256, 512),
        (32, 512),
        (8, 512),
        (8, 2),
        (8, 4),
        (8, 1),
        (1, 1),
    ];
    for (n, bins) in sizes {
        let x: Vec<i32> = (0..n as i32)
            .map(|at| at * 31 % (bins as i32 + 3) - 1)
            .collect();
        let what = format!("{n} numbers in {bins} bins");
        let kept = n / 2 + 1;
        let found = judge.same(&what, &[1], |way| {
            let given = way.given(&x)?;
            let mut out = way.room::<i32>(2 * bins)?;
            let kernel = counted().n(n).bins(bins).schedule(way.schedule);
            kernel.run(&way.device, 1, (&given, &mut out, kept as i32))?;
            Ok(vec![out.to_array()?])
        })?;
        let count = |x: &[i32], bin: usize| x.iter().filter(|&&x| x == bin as i32).count() as i32;
        let all = (0..bins).map(|bin| count(&x, bin));
        let want: Vec<i32> = all
            .chain((0..bins).map(|bin| count(&x[..kept], bin)))
            .collect();
        expect(&what, &found[0], &want)?;
    }
    ensure(!judge.cases.is_empty(), "some devices run")
}

#[kernel]
fn flag_prefixes<const M: usize, const N: usize>(x: Ptr<bool>, out: PtrMut<bool>) {
    let at = arange(0, M).expand(1) * N + arange(0, N).expand(0);
    let x = load(x + at);
    store(out + at, x.cummax(1));
    store(out + M * N + at, x.reverse_cummax(1));
    store(out + 2 * M * N + at, x.cummin(1));
    store(out + 3 * M * N + at, x.reverse_cummin(1));
}

/// Whether any or all of the flags before a place, and from it on, hold.
pub(super) fn flags(judge: &mut Judge<'_>) -> Result<()> {
    let (rows, columns) = (4, 64);
    let of = |at: usize| match at / columns {
        0 => at % columns == 17,
        1 => at % columns != 17,
        row => row == 2,
    };
    let x: Vec<bool> = (0..rows * columns).map(of).collect();
    let what = "prefixes of flags";
    let found = judge.same(what, &[1], |way| {
        let given = way.given(&x)?;
        let mut out = way.room::<bool>(4 * x.len())?;
        let kernel = flag_prefixes().m(rows).n(columns).schedule(way.schedule);
        kernel.run(&way.device, 1, (&given, &mut out))?;
        Ok(vec![out.to_array()?])
    })?;
    let each = |holds: fn(&[bool], usize) -> bool| -> Vec<bool> {
        let rows = x.chunks(columns);
        rows.flat_map(|row| (0..columns).map(move |at| holds(row, at)))
            .collect()
    };
    let want = [
        each(|row, at| row[..=at].contains(&true)),
        each(|row, at| row[at..].contains(&true)),
        each(|row, at| !row[..=at].contains(&false)),
        each(|row, at| !row[at..].contains(&false)),
    ];
    expect(what, &found[0], &want.concat())
}
