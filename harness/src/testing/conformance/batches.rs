//! Products of many matrices, of constants, and of loads with masks.

use exactile::prelude::*;
use exactile::{Comparable, Number, Result};

use super::judge::{Judge, expect};
use super::wide::Wide;

#[kernel]
fn batch<T: Numeric, A: Numeric, const B: usize, const M: usize, const N: usize, const K: usize>(
    a: Ptr<T>,
    b: Ptr<T>,
    out: PtrMut<A>,
) {
    let of =
        |rows: usize, columns: usize| arange(0, B * rows * columns).reshape([B, rows, columns]);
    let (left, right) = (load(a + of(M, K)), load(b + of(K, N)));
    let sums = dot_with(Precision::Ieee, left, right, zeros::<A>([B, M, N]));
    store(out + of(M, N), sums);
}

/// Integers from -4 to 4, other ones for each turn: no order of adding their products rounds.
fn small<T: Number>(count: usize, turn: usize) -> Vec<T> {
    let number = |at: usize| (at * 7 + at / 5 + turn * 3) % 9;
    let of = |number: usize| match T::DTYPE.is_float() {
        true => Wide::Float(number as f64 - 4.0).to(),
        false => Wide::Int(number as i128 - 4).to(),
    };
    (0..count).map(|at| of(number(at))).collect()
}

fn float<T: Number>(x: T) -> f64 {
    match Wide::of(x) {
        Wide::Int(x) => x as f64,
        Wide::Float(x) => x,
    }
}

/// `[m, k]` times `[k, n]`.
fn multiplied<T: Number, A: Number>(a: &[T], b: &[T], [m, n, k]: [usize; 3]) -> Vec<A> {
    let sum = |row: usize, column: usize| -> f64 {
        (0..k)
            .map(|at| float(a[row * k + at]) * float(b[at * n + column]))
            .sum()
    };
    let value = |sum: f64| match A::DTYPE.is_float() {
        true => Wide::Float(sum).to(),
        false => Wide::Int(sum as i128).to(),
    };
    let places = (0..m).flat_map(|row| (0..n).map(move |column| (row, column)));
    places
        .map(|(row, column)| value(sum(row, column)))
        .collect()
}

fn batches_of<T: Numeric + Number, A: Numeric + Number>(judge: &mut Judge<'_>) -> Result<()> {
    for [count, m, n, k] in [
        [1, 32, 32, 32],
        [2, 16, 32, 16],
        [4, 32, 16, 32],
        [8, 16, 16, 16],
        [2, 64, 64, 32],
        [1, 128, 64, 64],
    ] {
        let (a, b) = (small::<T>(count * m * k, 1), small::<T>(count * k * n, 2));
        let what = format!(
            "{count} products {m} x {n} x {k} of {} in {}",
            T::DTYPE,
            A::DTYPE
        );
        let found = judge.same(&what, &[1], |way| {
            let (left, right) = (way.given(&a)?, way.given(&b)?);
            let mut out = way.room::<A>(count * m * n)?;
            let kernel = batch::<T, A>().b(count).m(m).n(n).k(k);
            let kernel = kernel.schedule(way.schedule);
            kernel.run(&way.device, 1, (&left, &right, &mut out))?;
            Ok(vec![out.to_array()?])
        })?;
        let each = a.chunks(m * k).zip(b.chunks(k * n));
        let want: Vec<A> = each
            .flat_map(|(a, b)| multiplied::<T, A>(a, b, [m, n, k]))
            .collect();
        expect(&what, &found[0], &want)?;
    }
    Ok(())
}

/// Products of one to eight matrices at once.
pub(super) fn batches(judge: &mut Judge<'_>) -> Result<()> {
    batches_of::<i8, i32>(judge)?;
    batches_of::<f16, f32>(judge)?;
    batches_of::<bf16, f32>(judge)?;
    batches_of::<f32, f32>(judge)?;
    batches_of::<f64, f64>(judge)
}

#[kernel]
fn constant<T: Numeric>(x: Ptr<T>, out: PtrMut<f32>) {
    let left = full::<T>([32, 32], load(x));
    let right = full::<T>([32, 32], load(x + 1));
    let at = arange(0, 32).expand(1) * 32 + arange(0, 32).expand(0);
    store(out + at, dot(left, right, zeros::<f32>([32, 32])));
}

/// Rows and products end before their tiles do.
#[kernel]
fn cut<T: Numeric>(a: Ptr<T>, b: Ptr<T>, out: PtrMut<f32>, m: i32, n: i32, k: i32) {
    let (rows, along) = (arange(0, 32), arange(0, 16));
    let left = load(a + rows.expand(1) * k + along.expand(0))
        .mask((rows < m).expand(1) & (along < k).expand(0));
    let right = load(b + along.expand(1) * n + rows.expand(0))
        .mask((along < k).expand(1) & (rows < n).expand(0));
    let sums = dot(left, right, zeros::<f32>([32, 32]));
    store(out + rows.expand(1) * n + rows.expand(0), sums)
        .mask((rows < m).expand(1) & (rows < n).expand(0));
}

fn cut_on<T: Numeric + Number>(judge: &mut Judge<'_>) -> Result<()> {
    let x = small::<T>(2, 5);
    let what = format!("a product of constants of {}", T::DTYPE);
    let found = judge.same(&what, &[1], |way| {
        let (given, mut out) = (way.given(&x)?, way.room::<f32>(32 * 32)?);
        let kernel = constant::<T>().schedule(way.schedule);
        kernel.run(&way.device, 1, (&given, &mut out))?;
        Ok(vec![out.to_array()?])
    })?;
    let product = (32.0 * float(x[0]) * float(x[1])) as f32;
    expect(&what, &found[0], &[product; 32 * 32])?;
    let [m, n, k] = [27, 19, 13];
    let (a, b) = (small::<T>(m * k, 3), small::<T>(k * n, 4));
    let what = format!("a product of masked loads of {}", T::DTYPE);
    let found = judge.same(&what, &[1], |way| {
        let (left, right) = (way.given(&a)?, way.given(&b)?);
        let mut out = way.room::<f32>(m * n)?;
        let kernel = cut::<T>().schedule(way.schedule);
        let arguments = (&left, &right, &mut out, m as i32, n as i32, k as i32);
        kernel.run(&way.device, 1, arguments)?;
        Ok(vec![out.to_array()?])
    })?;
    expect(&what, &found[0], &multiplied::<T, f32>(&a, &b, [m, n, k]))
}

/// Products of constants, and of loads that end before their tiles do.
pub(super) fn without_whole_loads(judge: &mut Judge<'_>) -> Result<()> {
    cut_on::<f16>(judge)?;
    cut_on::<bf16>(judge)?;
    cut_on::<f32>(judge)
}
