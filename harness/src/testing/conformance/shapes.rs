//! What moves elements and computes nothing.

use exactile::prelude::*;
use exactile::{Comparable, Number, Result};

use super::each;
use super::judge::{Judge, expect};
use super::wide::numbers;

#[kernel]
fn joined<T: Element, const N: usize>(x: Ptr<T>, y: Ptr<T>, out: PtrMut<T>) {
    let at = arange(0, N);
    let (a, b) = (load(x + at), load(y + at));
    let twice = arange(0, 2 * N);
    store(out + twice, a.cat(b, 0));
    store(out + 2 * N + twice, a.join(b).ravel());
    store(out + 4 * N + twice, a.interleave(b));
    let (left, right) = load(out + 2 * N + twice).reshape([N, 2]).split();
    store(out + 6 * N + at, left);
    store(out + 7 * N + at, right);
    store(out + 8 * N + at, a.flip(0));
    let first = load(x).tile().join(load(y).tile());
    let two = arange(0, 2);
    store(out + 9 * N + two, first);
    let turns = load(y).tile().interleave(load(x).tile());
    store(out + 9 * N + 2 + two, turns);
    let (left, right) = load(y + two).split();
    store(out + 9 * N + 4, left.scalar());
    store(out + 9 * N + 5, right.scalar());
}

fn joined_on<T: Element + Number>(judge: &mut Judge<'_>) -> Result<()> {
    for n in [8, 128] {
        joined_of::<T>(judge, n)?;
    }
    Ok(())
}

fn joined_of<T: Element + Number>(judge: &mut Judge<'_>, n: usize) -> Result<()> {
    let (x, y) = (numbers::<T>(n, 1), numbers::<T>(n, 2));
    let what = format!("cat, join, interleave, split and flip of {n} {}", T::DTYPE);
    let found = judge.same(&what, &[n], |way| {
        let (a, b) = (way.given(&x)?, way.given(&y)?);
        let mut out = Buffer::<T>::zeros(&way.device, 9 * n + 6)?;
        let kernel = joined::<T>().n(n).schedule(way.schedule);
        kernel.run(&way.device, 1, (&a, &b, &mut out))?;
        Ok(vec![out.to_array()?])
    })?;
    let turns: Vec<T> = x.iter().zip(&y).flat_map(|(&a, &b)| [a, b]).collect();
    let mut want = [&x[..], &y, &turns, &turns, &x, &y].concat();
    want.extend(x.iter().rev());
    want.extend([x[0], y[0], y[0], x[0], y[0], y[1]]);
    expect(&what, &found[0], &want)
}

/// `cat`, `join`, `interleave`, `split` and `flip` along one axis, of every type.
pub(super) fn joins(judge: &mut Judge<'_>) -> Result<()> {
    each!(joined_on(judge): bool i8 i16 i32 i64 u8 u16 u32 u64 F8E4M3 F8E5M2 f16 bf16 f32 f64);
    Ok(())
}

/// A broadcast, a transposition and constants, of every type.
#[kernel]
fn square<T: Element, const M: usize, const N: usize>(x: Ptr<T>, out: PtrMut<T>) {
    let (i, j) = (arange(0, M).expand(1), arange(0, N).expand(0));
    let column = load(x + i);
    store(out + i * N + j, column.broadcast_to([M, N]));
    let tile = load(x + i * N + j);
    let turned = arange(0, N).expand(1) * M + arange(0, M).expand(0);
    store(out + M * N + turned, tile.transpose());
    let row = tile.reshape([N, M]).ravel().reshape([M / 2, 2 * N]);
    let whole = arange(0, M / 2).expand(1) * (2 * N) + arange(0, 2 * N).expand(0);
    store(out + 2 * M * N + whole, row);
    let one = load(x + 1);
    store(out + 3 * M * N + i * N + j, full([M, N], one));
    store(out + 4 * M * N + i * N + j, zeros::<T>([M, N]));
}

fn square_on<T: Element + Number>(judge: &mut Judge<'_>) -> Result<()> {
    let (m, n) = (32, 16);
    let x = numbers::<T>(m * n, 3);
    let what = format!("broadcast, transpose, reshape and full of {}", T::DTYPE);
    let found = judge.same(&what, &[1], |way| {
        let given = way.given(&x)?;
        let mut out = way.room::<T>(5 * m * n)?;
        let kernel = square::<T>().m(m).n(n).schedule(way.schedule);
        kernel.run(&way.device, 1, (&given, &mut out))?;
        Ok(vec![out.to_array()?])
    })?;
    let mut want: Vec<T> = (0..m * n).map(|at| x[at / n]).collect();
    want.extend((0..m * n).map(|at| x[at % m * n + at / m]));
    want.extend(&x);
    want.extend(vec![x[1]; m * n]);
    want.extend(vec![T::default(); m * n]);
    expect(&what, &found[0], &want)
}

/// Broadcasts, transpositions, reshapes and constants of every type.
pub(super) fn squares(judge: &mut Judge<'_>) -> Result<()> {
    each!(square_on(judge): bool i8 i16 i32 i64 u8 u16 u32 u64 F8E4M3 F8E5M2 f16 bf16 f32 f64);
    Ok(())
}

/// `A` to `D` are extents, `ORDER` a permutation by the digits of a number.
#[kernel]
fn permuted<
    T: Element,
    const A: usize,
    const B: usize,
    const C: usize,
    const D: usize,
    const ORDER: usize,
>(
    x: Ptr<T>,
    out: PtrMut<T>,
) {
    let at = arange(0, A * B * C * D);
    let order = [ORDER / 1000, ORDER / 100 % 10, ORDER / 10 % 10, ORDER % 10];
    let tile = load(x + at).reshape([A, B, C, D]);
    store(out + at, tile.permute(order).ravel());
    store(out + A * B * C * D + at, tile.flip(1).ravel());
    let both = arange(0, 2 * A * B * C * D);
    store(
        out + 2 * A * B * C * D + both,
        tile.cat(tile.flip(1), 2).ravel(),
    );
}

fn permuted_by<T: Element + Number>(
    judge: &mut Judge<'_>,
    extents: [usize; 4],
    order: [usize; 4],
) -> Result<()> {
    let [a, b, c, d] = extents;
    let count = a * b * c * d;
    let x = numbers::<T>(count, 4);
    let digits = order.iter().fold(0, |number, digit| number * 10 + digit);
    let what = format!("{extents:?} {} permuted by {order:?}", T::DTYPE);
    let found = judge.same(&what, &[1], |way| {
        let given = way.given(&x)?;
        let mut out = way.room::<T>(4 * count)?;
        let kernel = permuted::<T>()
            .a(a)
            .b(b)
            .c(c)
            .d(d)
            .order(digits)
            .schedule(way.schedule);
        kernel.run(&way.device, 1, (&given, &mut out))?;
        Ok(vec![out.to_array()?])
    })?;
    let strides = [b * c * d, c * d, d, 1];
    let new = order.map(|axis| extents[axis]);
    let place = |at: usize| {
        let index = [
            at / (new[1] * new[2] * new[3]),
            at / (new[2] * new[3]) % new[1],
            at / new[3] % new[2],
            at % new[3],
        ];
        (0..4)
            .map(|axis| index[axis] * strides[order[axis]])
            .sum::<usize>()
    };
    let mut want: Vec<T> = (0..count).map(|at| x[place(at)]).collect();
    let turned = |at: usize| {
        let second = at / (c * d) % b;
        at - second * c * d + (b - 1 - second) * c * d
    };
    want.extend((0..count).map(|at| x[turned(at)]));
    want.extend((0..2 * count).map(|at| {
        let (outer, third, inner) = (at / (2 * c * d), at / d % (2 * c), at % d);
        let place = (outer * c + third % c) * d + inner;
        x[if third < c { place } else { turned(place) }]
    }));
    expect(&what, &found[0], &want)
}

/// Permutations of two and of four axes, of which two types have all.
pub(super) fn permutations(judge: &mut Judge<'_>) -> Result<()> {
    each!(permutations_on(judge): i8 i32 f16 bf16 f32);
    each!(all_permutations_on(judge): i8 i32);
    Ok(())
}

fn all_permutations_on<T: Element + Number>(judge: &mut Judge<'_>) -> Result<()> {
    for order in (0..256).map(|at| [at & 3, at >> 2 & 3, at >> 4 & 3, at >> 6]) {
        if (0..4).all(|axis| order.contains(&axis)) {
            permuted_by::<T>(judge, [2, 2, 8, 64], order)?;
            permuted_by::<T>(judge, [4, 4, 4, 16], order)?;
        }
    }
    Ok(())
}

fn permutations_on<T: Element + Number>(judge: &mut Judge<'_>) -> Result<()> {
    for extents in [[1, 1, 2, 4], [1, 1, 16, 16], [1, 1, 64, 64]] {
        permuted_by::<T>(judge, extents, [0, 1, 3, 2])?;
    }
    for order in [
        [3, 2, 1, 0],
        [1, 0, 3, 2],
        [2, 3, 0, 1],
        [0, 2, 1, 3],
        [1, 2, 3, 0],
    ] {
        permuted_by::<T>(judge, [2, 2, 8, 64], order)?;
    }
    permuted_by::<T>(judge, [4, 4, 4, 16], [3, 0, 2, 1])
}

#[kernel]
fn looked_up<const M: usize, const N: usize, const K: usize, const AXIS: usize>(
    x: Ptr<f32>,
    indices: Ptr<i32>,
    out: PtrMut<f32>,
) {
    let (rows, columns) = if AXIS == 0 { (K, N) } else { (M, K) };
    let source = load(x + arange(0, M).expand(1) * N + arange(0, N).expand(0));
    let at = arange(0, rows).expand(1) * columns + arange(0, columns).expand(0);
    store(out + at, gather(source, load(indices + at), AXIS));
}

/// Lookups along either axis.
pub(super) fn gathers(judge: &mut Judge<'_>) -> Result<()> {
    for (m, n, k, axis) in [
        (8, 4, 4, 0),
        (1, 64, 32, 1),
        (256, 64, 128, 0),
        (64, 128, 64, 1),
        (4096, 4, 4, 0),
        (128, 128, 64, 1),
    ] {
        let x = numbers::<f32>(m * n, 5);
        let (rows, columns, extent) = if axis == 0 { (k, n, m) } else { (m, k, n) };
        let indices: Vec<i32> = (0..rows * columns)
            .map(|at| (at * 7919 % extent) as i32)
            .collect();
        let what = format!("{rows} x {columns} of {m} x {n} along axis {axis}");
        let found = judge.same(&what, &[1], |way| {
            let (given, places) = (way.given(&x)?, way.given(&indices)?);
            let mut out = way.room::<f32>(rows * columns)?;
            // The fewest warps whose lanes have 256 registers for a tile of as many numbers.
            let least = (m * n).div_ceil(256 * 32) as u32;
            let mut schedule = way.schedule;
            schedule.warps = schedule.warps.map(|warps| warps.max(least));
            let kernel = looked_up().m(m).n(n).k(k).axis(axis).schedule(schedule);
            kernel.run(&way.device, 1, (&given, &places, &mut out))?;
            Ok(vec![out.to_array()?])
        })?;
        let element = |at: usize| match axis {
            0 => x[indices[at] as usize * n + at % columns],
            _ => x[at / columns * n + indices[at] as usize],
        };
        let want: Vec<f32> = (0..rows * columns).map(element).collect();
        expect(&what, &found[0], &want)?;
    }
    Ok(())
}

#[kernel]
fn axes(x: Ptr<i32>, out: PtrMut<i32>, order: PtrMut<i64>) {
    let at = arange(0, 8);
    if program_id(0) + program_id(1) == 0 {
        let tile = load(x + at);
        let first = tile.reshape([1, 2, 4]).squeeze(0);
        let second = tile.reshape([2, 1, 4]).squeeze(1);
        let third = tile.reshape([2, 4, 1]).squeeze(2);
        let sums = first + second + third;
        store(out + at, sums.expand(1).squeeze(1).ravel());
        for (place, start) in [0usize, 1, 7, 16].into_iter().enumerate() {
            store(
                out + 8 + place * 128 + arange(0, 128),
                arange(start, start + 128).to::<i32>(),
            );
        }
    }
    let (row, column) = (program_id(0), program_id(1));
    let tile = swizzle_2d(row, column, num_programs(0), num_programs(1), 3);
    store(order + (row * 7 + column), tile.0 * 7 + tile.1);
}

/// Axes that go and come, ranges, and the order of programs in groups.
pub(super) fn places(judge: &mut Judge<'_>) -> Result<()> {
    let x = numbers::<i32>(8, 6);
    let what = "squeeze, arange and swizzle_2d";
    let found = judge.same(what, &[1], |way| {
        let given = way.given(&x)?;
        let mut out = way.room::<i32>(8 + 4 * 128)?;
        let mut order = way.room::<i64>(35)?;
        let kernel = axes().schedule(way.schedule);
        kernel.run(&way.device, (5, 7), (&given, &mut out, &mut order))?;
        Ok(vec![out.to_array()?, order.to_array()?])
    })?;
    let mut want: Vec<i32> = x.iter().map(|x| x.wrapping_mul(3)).collect();
    want.extend(
        [0, 1, 7, 16]
            .into_iter()
            .flat_map(|start| start..start + 128),
    );
    expect(what, &found[0], &want)?;
    let order = |at: usize| {
        let (group, within) = (at / 21, at % 21);
        let rows = (5 - 3 * group).min(3);
        ((group * 3 + within % rows) * 7 + within / rows) as i64
    };
    expect(what, &found[1], &(0..35).map(order).collect::<Vec<_>>())
}
