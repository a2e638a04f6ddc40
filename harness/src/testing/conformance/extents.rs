//! Tiles of many extents: joined along any axis, turned, given other axes, and filled.

use exactile::prelude::*;
use exactile::{Comparable, Number, Result};

use super::each;
use super::judge::{Judge, expect};
use super::wide::numbers;

/// `A` to `D` are extents, of which the last `RANK` are those of the tiles.
#[kernel]
fn concatenated<
    T: Element,
    const A: usize,
    const B: usize,
    const C: usize,
    const D: usize,
    const RANK: usize,
    const AXIS: usize,
>(
    x: Ptr<T>,
    y: Ptr<T>,
    out: PtrMut<T>,
) {
    let shape: Vec<usize> = [A, B, C, D].into_iter().skip(4 - RANK).collect();
    let at = arange(0, A * B * C * D).reshape(&shape);
    let both = load(x + at).cat(load(y + at), AXIS);
    store(out + arange(0, 2 * A * B * C * D), both.ravel());
}

/// Two tiles behind each other along each axis, of rank 1 to 4.
pub(super) fn concatenations(judge: &mut Judge<'_>) -> Result<()> {
    each!(concatenations_on(judge): i16 i32 f16 bf16 f32);
    Ok(())
}

fn concatenations_on<T: Element + Number>(judge: &mut Judge<'_>) -> Result<()> {
    for (extents, rank) in [
        ([1, 1, 1, 128], 1),
        ([1, 1, 16, 32], 2),
        ([1, 8, 16, 4], 3),
        ([2, 4, 8, 16], 4),
    ] {
        for axis in 0..rank {
            concatenated_of::<T>(judge, extents, rank, axis)?;
        }
    }
    Ok(())
}

fn concatenated_of<T: Element + Number>(
    judge: &mut Judge<'_>,
    extents: [usize; 4],
    rank: usize,
    axis: usize,
) -> Result<()> {
    let [a, b, c, d] = extents;
    let count = a * b * c * d;
    let (x, y) = (numbers::<T>(count, 1), numbers::<T>(count, 2));
    let own = &extents[4 - rank..];
    let what = format!("{own:?} {} behind each other along axis {axis}", T::DTYPE);
    let found = judge.same(&what, &[1], |way| {
        let (left, right) = (way.given(&x)?, way.given(&y)?);
        let mut out = way.room::<T>(2 * count)?;
        let kernel = concatenated::<T>()
            .a(a)
            .b(b)
            .c(c)
            .d(d)
            .rank(rank)
            .axis(axis);
        let kernel = kernel.schedule(way.schedule);
        kernel.run(&way.device, 1, (&left, &right, &mut out))?;
        Ok(vec![out.to_array()?])
    })?;
    // What lies behind each other in memory, of either tile in turn.
    let run: usize = own[axis..].iter().product();
    let runs = x.chunks(run).zip(y.chunks(run));
    let want: Vec<T> = runs.flat_map(|(x, y)| [x, y].concat()).collect();
    expect(&what, &found[0], &want)
}

/// The axis that is turned, or all of them for 3.
#[kernel]
fn flipped<T: Element, const A: usize, const B: usize, const C: usize, const AXIS: usize>(
    x: Ptr<T>,
    out: PtrMut<T>,
) {
    let at = arange(0, A * B * C);
    let tile = load(x + at).reshape([A, B, C]);
    let found = match AXIS {
        3 => tile.flip(0).flip(1).flip(2),
        _ => tile.flip(AXIS),
    };
    store(out + at, found.ravel());
}

/// Each axis of tiles of three, and all of them.
pub(super) fn flips(judge: &mut Judge<'_>) -> Result<()> {
    each!(flips_on(judge): i32 f16 bf16 f32);
    Ok(())
}

fn flips_on<T: Element + Number>(judge: &mut Judge<'_>) -> Result<()> {
    for [a, b, c] in [[1, 16, 64], [8, 2, 256], [32, 1, 2], [128, 8, 1]] {
        for axis in 0..4 {
            let count = a * b * c;
            let x = numbers::<T>(count, 3);
            let what = format!("{a} x {b} x {c} {} turned along axis {axis}", T::DTYPE);
            let found = judge.same(&what, &[1], |way| {
                let (given, mut out) = (way.given(&x)?, way.room::<T>(count)?);
                let kernel = flipped::<T>().a(a).b(b).c(c).axis(axis);
                let kernel = kernel.schedule(way.schedule);
                kernel.run(&way.device, 1, (&given, &mut out))?;
                Ok(vec![out.to_array()?])
            })?;
            let turn = |own: usize, extent: usize, at: usize| match axis == own || axis == 3 {
                true => extent - 1 - at,
                false => at,
            };
            let place = |at: usize| {
                let (i, j, k) = (at / (b * c), at / c % b, at % c);
                (turn(0, a, i) * b + turn(1, b, j)) * c + turn(2, c, k)
            };
            let want: Vec<T> = (0..count).map(|at| x[place(at)]).collect();
            expect(&what, &found[0], &want)?;
        }
    }
    Ok(())
}

#[kernel]
fn filled<T: Element, const N: usize>(x: Ptr<T>, out: PtrMut<T>) {
    let value = load(x);
    store(out, full::<T>([], value).scalar());
    store(out + 1 + arange(0, 1), full::<T>([1], value));
    store(out + 2 + arange(0, N), full::<T>([N], value));
    let rest = out + 2 + N;
    store(rest + arange(0, N), value).mask(true);
    store(rest + N + arange(0, N), value).mask(false);
    store(rest + 2 * N, zeros::<T>([]).scalar());
}

/// Tiles of one number, of rank 0 and 1, and stores whose mask is a constant.
pub(super) fn constants(judge: &mut Judge<'_>) -> Result<()> {
    each!(constants_on(judge): bool i8 i16 i32 i64 u8 u16 u32 u64 F8E4M3 F8E5M2 f16 bf16 f32 f64);
    Ok(())
}

fn constants_on<T: Element + Number>(judge: &mut Judge<'_>) -> Result<()> {
    const N: usize = 128;
    for value in numbers::<T>(8, 4) {
        let what = format!("constants of {}: {:#x}", T::DTYPE, value.to_bits());
        let found = judge.same(&what, &[1], |way| {
            let given = way.given(&[value])?;
            let mut out = Buffer::<T>::zeros(&way.device, 3 + 3 * N)?;
            let kernel = filled::<T>().n(N).schedule(way.schedule);
            kernel.run(&way.device, 1, (&given, &mut out))?;
            Ok(vec![out.to_array()?])
        })?;
        let mut want = vec![value; 2 + 2 * N];
        want.resize(3 + 3 * N, T::default());
        expect(&what, &found[0], &want)?;
    }
    Ok(())
}

/// Extents before and after; a tile has at most six axes.
const SHAPES: [(&[usize], &[usize]); 4] = [
    (&[64], &[8, 8]),
    (&[2, 32], &[16, 4]),
    (&[512], &[2, 2, 2, 2, 2, 16]),
    (&[64, 32], &[16, 8, 16]),
];

#[kernel]
fn reshaped<const FORM: usize>(x: Ptr<i32>, out: PtrMut<i32>) {
    let (from, to) = SHAPES[FORM];
    let count = from.iter().product::<usize>();
    let backwards: Vec<usize> = (0..to.len()).rev().collect();
    let tile = load(x + arange(0, count).reshape(from)).reshape(to);
    store(out + arange(0, count), tile.permute(&backwards).ravel());
}

/// Other axes, seen by reversing their order.
pub(super) fn reshapes(judge: &mut Judge<'_>) -> Result<()> {
    for (form, (from, to)) in SHAPES.into_iter().enumerate() {
        let count = from.iter().product();
        let x = numbers::<i32>(count, 5);
        let what = format!("{from:?} as {to:?}");
        let found = judge.same(&what, &[1], |way| {
            let (given, mut out) = (way.given(&x)?, way.room::<i32>(count)?);
            let kernel = reshaped().form(form).schedule(way.schedule);
            kernel.run(&way.device, 1, (&given, &mut out))?;
            Ok(vec![out.to_array()?])
        })?;
        // The first axis is the fastest one now.
        let place = |at: usize| {
            let mut left = at;
            let mut stride = count;
            to.iter().fold(0, |place, &extent| {
                stride /= extent;
                let index = left % extent;
                left /= extent;
                place + index * stride
            })
        };
        let want: Vec<i32> = (0..count).map(|at| x[place(at)]).collect();
        expect(&what, &found[0], &want)?;
    }
    Ok(())
}
