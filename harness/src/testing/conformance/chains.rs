//! Reductions and scans behind each other, of other types than their results, and along loops.

use exactile::prelude::*;
use exactile::{Comparable, Number, Result};

use super::each;
use super::judge::{Judge, expect};
use super::wide::{Wide, modest, most, numbers, pair};

#[kernel]
fn sums(
    flags: Ptr<bool>,
    bytes: Ptr<i8>,
    halves: Ptr<bf16>,
    out: PtrMut<i32>,
    narrow: PtrMut<i8>,
    odd: PtrMut<bool>,
    wide: PtrMut<f32>,
    rounded: PtrMut<bf16>,
) {
    let at = arange(0, 32).expand(1) * 32 + arange(0, 32).expand(0);
    let (flags, bytes, halves) = (load(flags + at), load(bytes + at), load(halves + at));
    store(out, flags.to::<i32>().ravel().sum(0));
    store(out + 1, bytes.to::<i32>().ravel().sum(0));
    store(narrow, bytes.ravel().sum(0));
    store(odd + arange(0, 32), reduce(flags, 1, |a, b| a ^ b));
    store(odd + 32, reduce(flags.ravel(), 0, |a, b| a ^ b));
    store(wide, halves.to::<f32>().ravel().sum(0));
    store(rounded, halves.ravel().sum(0));
}

/// Sums of flags, of bytes and of halves, in wider types and in their own.
pub(super) fn sums_of_other_types(judge: &mut Judge<'_>) -> Result<()> {
    let all = 32 * 32;
    for odd in [false, true] {
        let flags: Vec<bool> = (0..all).map(|at| !odd || at % 7 == 3).collect();
        let bytes = vec![7i8; all];
        let halves = vec![bf16::from_f32(1.0); all];
        let what = format!("sums of flags, bytes and halves, odd: {odd}");
        let found = judge.same(&what, &[1], |way| {
            let (x, y, z) = (way.given(&flags)?, way.given(&bytes)?, way.given(&halves)?);
            let (mut out, mut narrow) = (way.room::<i32>(2)?, way.room::<i8>(1)?);
            let mut parity = Buffer::<bool>::zeros(&way.device, 33)?;
            let (mut wide, mut rounded) = (way.room::<f32>(1)?, way.room::<bf16>(1)?);
            let results = (&mut out, &mut narrow, &mut parity, &mut wide, &mut rounded);
            let (a, b, c, d, e) = results;
            let kernel = sums().schedule(way.schedule);
            kernel.run(&way.device, 1, (&x, &y, &z, a, b, c, d, e))?;
            Ok(vec![
                out.to_array()?,
                narrow.to_array()?,
                parity.to_array()?,
                wide.to_array()?,
                rounded.to_array()?,
            ])
        })?;
        let count = |flags: &[bool]| flags.iter().filter(|&&flag| flag).count();
        expect(&what, &found[0], &[count(&flags) as i32, 7 * all as i32])?;
        expect(&what, &found[1], &[(7 * all) as i8])?;
        let parities = flags.chunks(32).chain([&flags[..]]);
        let parities: Vec<bool> = parities.map(|flags| count(flags) % 2 == 1).collect();
        expect(&what, &found[2], &parities)?;
        expect(&what, &found[3], &[all as f32])?;
        expect(&what, &found[4], &[bf16::from_f32(all as f32)])?;
    }
    Ok(())
}

/// Extents, the order of their axes, and the axes that are reduced one after the other.
const CHAINS: [([usize; 5], [usize; 5], [usize; 3]); 2] = [
    ([4, 32, 32, 4, 2], [2, 1, 0, 3, 4], [3, 1, 0]),
    ([8, 2, 32, 4, 16], [4, 0, 1, 3, 2], [0, 2, 0]),
];

#[kernel]
fn reduced<const FORM: usize>(x: Ptr<i32>, out: PtrMut<i32>) {
    let (extents, order, axes) = CHAINS[FORM];
    let count = extents.into_iter().product::<usize>();
    let tile = load(x + arange(0, count).reshape(extents)).permute(order);
    let [first, second, third] = axes;
    let sums = tile.sum(first).sum(second).sum(third).ravel();
    store(out + arange(0, left_of(FORM)), sums);
}

/// How many sums are left.
fn left_of(form: usize) -> usize {
    let (extents, order, axes) = CHAINS[form];
    let left = axes.iter().fold(order.to_vec(), |mut left, &axis| {
        left.remove(axis);
        left
    });
    left.iter().map(|&axis| extents[axis]).product()
}

/// Sums of sums of sums, of permuted tiles of five axes.
pub(super) fn chained_reductions(judge: &mut Judge<'_>) -> Result<()> {
    for (form, (extents, order, axes)) in CHAINS.into_iter().enumerate() {
        let count = extents.iter().product();
        let x = modest::<i32>(count, 17);
        let left = left_of(form);
        let what = format!("{extents:?} by {order:?}, added up along {axes:?}");
        let found = judge.same(&what, &[1], |way| {
            let (given, mut out) = (way.given(&x)?, way.room::<i32>(left)?);
            // The fewest warps whose lanes have 256 registers for a tile of as many numbers.
            let least = count.div_ceil(256 * 32) as u32;
            let mut schedule = way.schedule;
            schedule.warps = schedule.warps.map(|warps| warps.max(least));
            let kernel = reduced().form(form).schedule(schedule);
            kernel.run(&way.device, 1, (&given, &mut out))?;
            Ok(vec![out.to_array()?])
        })?;
        expect(&what, &found[0], &added_up(&x, extents, order, axes))?;
    }
    Ok(())
}

fn added_up(x: &[i32], extents: [usize; 5], order: [usize; 5], axes: [usize; 3]) -> Vec<i32> {
    let mut kept = order.to_vec();
    for axis in axes {
        kept.remove(axis);
    }
    let mut sums = vec![0i32; kept.iter().map(|&axis| extents[axis]).product()];
    for (at, x) in x.iter().enumerate() {
        let index = |axis: usize| {
            let behind: usize = extents[axis + 1..].iter().product();
            at / behind % extents[axis]
        };
        let place = kept
            .iter()
            .fold(0, |place, &axis| place * extents[axis] + index(axis));
        sums[place] += x;
    }
    sums
}

#[kernel]
fn grown<const M: usize, const N: usize>(x: Ptr<i32>, out: PtrMut<i32>) {
    let sums = load(x + arange(0, M)).cumsum(0);
    let at = arange(0, M).expand(1) * N + arange(0, N).expand(0);
    store(out + at, sums.expand(1).broadcast_to([M, N]));
}

#[kernel]
fn counted_flags(x: Ptr<bool>, out: PtrMut<i32>) {
    let at = arange(0, 4);
    store(out + at, load(x + at).to::<i32>().cumsum(0));
}

/// Prefixes that a broadcast repeats, and those of flags.
pub(super) fn prefixes_that_grow(judge: &mut Judge<'_>) -> Result<()> {
    for m in [1, 2, 4, 8, 16, 32, 64] {
        let n = 64 / m;
        let x = modest::<i32>(m, 19);
        let what = format!("prefixes of {m} numbers, {n} times");
        let found = judge.same(&what, &[1], |way| {
            let (given, mut out) = (way.given(&x)?, way.room::<i32>(64)?);
            let kernel = grown().m(m).n(n).schedule(way.schedule);
            kernel.run(&way.device, 1, (&given, &mut out))?;
            Ok(vec![out.to_array()?])
        })?;
        let want: Vec<i32> = (0..64).map(|at| x[..=at / n].iter().sum()).collect();
        expect(&what, &found[0], &want)?;
    }
    let found = judge.same("prefixes of flags that hold", &[1], |way| {
        let (given, mut out) = (way.given(&[true; 4])?, way.room::<i32>(4)?);
        let kernel = counted_flags().schedule(way.schedule);
        kernel.run(&way.device, 1, (&given, &mut out))?;
        Ok(vec![out.to_array()?])
    })?;
    expect("prefixes of flags that hold", &found[0], &[1, 2, 3, 4])
}

/// Linear recurrences, the element before each one, and the last element seen from either end.
#[kernel]
fn recurrences<const M: usize, const N: usize, const AXIS: usize>(
    x: Ptr<i32>,
    y: Ptr<i32>,
    out: PtrMut<i32>,
) {
    let at = arange(0, M).expand(1) * N + arange(0, N).expand(0);
    let (a, b) = (load(x + at), load(y + at));
    let (_, forward) = scan((a, b), AXIS, |a, b| (a.0 * b.0, a.1 * b.0 + b.1));
    let (_, backward) = reverse_scan((a, b), AXIS, |a, b| (a.0 * b.0, a.1 * b.0 + b.1));
    let ones = full::<i32>([M, N], 1);
    let (_, rolled, _) = scan((ones, zeros::<i32>([M, N]), a), AXIS, |a, b| {
        let last = select(b.0 == 1, a.2, 0);
        (a.0 + b.0, last + b.1, b.2)
    });
    let found = [
        forward,
        backward,
        rolled,
        reverse_scan(a, AXIS, |a, _| a),
        a.cumsum(AXIS),
        a.reverse_cumsum(AXIS),
    ];
    for (place, found) in found.into_iter().enumerate() {
        store(out + M * N * place + at, found);
    }
}

/// What the kernel gives of one row.
fn recurred(row: &[(i32, i32)]) -> [Vec<i32>; 6] {
    let step = |sum: &mut i32, &(a, b): &(i32, i32)| {
        *sum = sum.wrapping_mul(a).wrapping_add(b);
        Some(*sum)
    };
    let added = |sum: &mut i32, &(a, _): &(i32, i32)| {
        *sum = sum.wrapping_add(a);
        Some(*sum)
    };
    let reversed = |mut row: Vec<i32>| {
        row.reverse();
        row
    };
    let before = [0].into_iter().chain(row.iter().map(|it| it.0));
    let last = row.last().map_or(0, |it| it.0);
    [
        row.iter().scan(0, step).collect(),
        reversed(row.iter().rev().scan(0, step).collect()),
        before.take(row.len()).collect(),
        vec![last; row.len()],
        row.iter().scan(0, added).collect(),
        reversed(row.iter().rev().scan(0, added).collect()),
    ]
}

/// Scans by combines that do not commute, from either end, of long and of narrow tiles.
pub(super) fn recurrences_of_integers(judge: &mut Judge<'_>) -> Result<()> {
    for [m, n] in [[8, 32], [32, 32], [2, 1024], [1024, 2], [1, 1024]] {
        for axis in 0..2 {
            let (x, y) = (numbers::<i32>(m * n, 21), numbers::<i32>(m * n, 22));
            let what = format!("recurrences of {m} x {n} along axis {axis}");
            let found = judge.same(&what, &[1], |way| {
                let (a, b) = (way.given(&x)?, way.given(&y)?);
                let mut out = way.room::<i32>(6 * m * n)?;
                let kernel = recurrences().m(m).n(n).axis(axis).schedule(way.schedule);
                kernel.run(&way.device, 1, (&a, &b, &mut out))?;
                Ok(vec![out.to_array()?])
            })?;
            let (rows, columns) = if axis == 0 { (n, m) } else { (m, n) };
            let place = |row: usize, at: usize| match axis {
                0 => at * n + row,
                _ => row * n + at,
            };
            let mut want = vec![0; 6 * m * n];
            for row in 0..rows {
                let own = (0..columns)
                    .map(|at| place(row, at))
                    .map(|at| (x[at], y[at]));
                let own = recurred(&own.collect::<Vec<_>>());
                for (function, values) in own.iter().enumerate() {
                    for (at, &value) in values.iter().enumerate() {
                        want[function * m * n + place(row, at)] = value;
                    }
                }
            }
            expect(&what, &found[0], &want)?;
        }
    }
    Ok(())
}

#[kernel]
fn running<T: Numeric, const BLOCK: usize>(x: Ptr<T>, out: PtrMut<T>, n: i32) {
    let row = x + program_id(0) * n;
    let first = load(row);
    let mut best = full::<T>([BLOCK], first);
    for start in range(0, n).step(BLOCK) {
        let at = start + arange(0, BLOCK);
        let next = load(row + at).mask(at < n).other(first);
        best = maximum(best, next);
    }
    store(out + program_id(0), best.max(0));
}

/// The greatest number of rows that no tile divides, kept along a loop of masked loads.
pub(super) fn running_maxima(judge: &mut Judge<'_>) -> Result<()> {
    each!(running_on(judge): i16 f16);
    Ok(())
}

fn running_on<T: Numeric + Number>(judge: &mut Judge<'_>) -> Result<()> {
    let (rows, n) = (64, 197);
    let x = modest::<T>(rows * n, 23);
    let what = format!("running maxima of {}", T::DTYPE);
    let found = judge.same(&what, &[32, 128], |way| {
        let (given, mut out) = (way.given(&x)?, way.room::<T>(rows)?);
        let kernel = running::<T>().block(way.block).schedule(way.schedule);
        kernel.run(&way.device, rows, (&given, &mut out, n as i32))?;
        Ok(vec![out.to_array()?])
    })?;
    let greater = |a: Wide, &b: &T| pair(a, Wide::of(b), i128::max, most);
    let greatest = |row: &[T]| row.iter().fold(Wide::of(row[0]), greater).to();
    let want: Vec<T> = x.chunks(n).map(greatest).collect();
    expect(&what, &found[0], &want)
}
