//! Atomics: sums, extremes and exchanges in memory that programs share, at addresses and in tiles of tensors.

use exactile::prelude::*;
use exactile::{Comparable, Determinism, Number, Result};

use super::each;
use super::judge::{Judge, expect, expect_near};
use super::wide::{Wide, least, modest, most, numbers, pair};

#[kernel]
fn combined<T: AtomicInt, const N: usize>(x: Ptr<T>, out: PtrMut<T>) {
    let at = arange(0, N);
    let value = load(x + program_id(0) * N + at);
    let place = out + at / 4;
    atomic_add(place, value);
    atomic_max(place + N, value);
    atomic_min(place + 2 * N, value);
    atomic_and(place + 3 * N, value);
    atomic_or(place + 4 * N, value);
    atomic_xor(place + 5 * N, value).mask(at % 2 == 0);
    if program_id(0) % 2 == 1 {
        atomic_max(out + 6 * N, load(x + program_id(0) * N));
    }
}

fn combined_on<T: AtomicInt + Number>(judge: &mut Judge<'_>) -> Result<()> {
    combined_of::<T>(judge, "of both signs", |x| x)?;
    combined_of::<T>(judge, "all negative", |x| -x.abs())?;
    combined_of::<T>(judge, "all positive", i128::abs)
}

fn combined_of<T: AtomicInt + Number>(
    judge: &mut Judge<'_>,
    signs: &str,
    signed: fn(i128) -> i128,
) -> Result<()> {
    let (n, programs) = (64, 5);
    let of = |x: T| match Wide::of(x) {
        Wide::Int(x) => x,
        Wide::Float(x) => x as i128,
    };
    let given = |count, seed| -> Vec<T> {
        let all = numbers::<T>(count, seed).into_iter();
        all.map(|x| Wide::Int(signed(of(x))).to()).collect()
    };
    let (x, y) = (given(n * programs, 5), given(6 * n + 1, 7));
    let what = format!("atomics of {}, {signs}", T::DTYPE);
    let found = judge.same(&what, &[1], |way| {
        let (given, mut out) = (way.given(&x)?, way.given(&y)?);
        let kernel = combined::<T>().n(n).schedule(way.schedule);
        kernel.run(&way.device, programs, (&given, &mut out))?;
        Ok(vec![out.to_array()?])
    })?;
    let mut want: Vec<i128> = y.iter().map(|&y| of(y)).collect();
    for (at, &x) in x.iter().enumerate() {
        let (place, x) = (at % n / 4, of(x));
        want[place] += x;
        want[n + place] = want[n + place].max(x);
        want[2 * n + place] = want[2 * n + place].min(x);
        want[3 * n + place] &= x;
        want[4 * n + place] |= x;
        want[5 * n + place] ^= if at % 2 == 0 { x } else { 0 };
        if at / n % 2 == 1 && at % n == 0 {
            want[6 * n] = want[6 * n].max(x);
        }
    }
    let want: Vec<T> = want.into_iter().map(|x| Wide::Int(x).to()).collect();
    expect(&what, &found[0], &want)
}

#[kernel]
fn float_sums<T: Float + AtomicAdd, const N: usize>(x: Ptr<T>, out: PtrMut<T>) {
    let at = arange(0, N);
    atomic_add(out + at / 2, load(x + program_id(0) * N + at));
}

fn float_sums_on<T: Float + AtomicAdd + Number>(judge: &mut Judge<'_>) -> Result<()> {
    // Quarters, and of narrow floats small integers: no order of adding them rounds.
    let x: Vec<T> = modest::<T>(64 * 4, 6)
        .into_iter()
        .map(|x| match Wide::of(x) {
            Wide::Float(x) if T::DTYPE.bits() < 32 => Wide::Float(x.round().clamp(-3.0, 3.0)).to(),
            Wide::Float(x) => Wide::Float((x * 4.0).round() / 4.0).to(),
            Wide::Int(x) => Wide::Int(x).to(),
        })
        .collect();
    let what = format!("atomic sums of {}", T::DTYPE);
    let found = judge.same(&what, &[1], |way| {
        let given = way.given(&x)?;
        let mut out = Buffer::<T>::zeros(&way.device, 64)?;
        let kernel = float_sums::<T>().n(64).schedule(way.schedule);
        kernel
            .determinism(Determinism::NotGuaranteed)
            .run(&way.device, 4, (&given, &mut out))?;
        Ok(vec![out.to_array()?])
    })?;
    let mut want = [0.0; 64];
    for (at, &x) in x.iter().enumerate() {
        if let Wide::Float(x) = Wide::of(x) {
            want[at % 64 / 2] += x;
        }
    }
    let want: Vec<T> = want.into_iter().map(|x| Wide::Float(x).to()).collect();
    expect_near(&what, &found[0], &want, 0.0)
}

/// Atomics without a result: shared places, masks, branches.
pub(super) fn atomics(judge: &mut Judge<'_>) -> Result<()> {
    each!(combined_on(judge): i32 u32 i64 u64);
    each!(float_sums_on(judge): f16 bf16 f32 f64);
    Ok(())
}

#[kernel]
fn fetched<T: AtomicInt, const N: usize>(x: Ptr<T>, y: PtrMut<T>, out: PtrMut<T>) {
    let at = program_id(0) * N + arange(0, N);
    let (value, own) = (load(x + at), y + at);
    let total = N * num_programs(0);
    store(out + at, atomic_fetch_add(own, value));
    store(out + total + at, atomic_fetch_max(own, value));
    store(out + total * 2 + at, atomic_exchange(own, value));
    let swapped = atomic_compare_exchange(own, value, value + value);
    store(out + total * 3 + at, swapped);
    // What an atomic gave is the place of the next access.
    let place = (swapped - value).to::<i64>() + at;
    store(out + total * 4 + place, load(own));
}

fn fetched_on<T: AtomicInt + Number>(judge: &mut Judge<'_>) -> Result<()> {
    for n in [4, 16, 128] {
        let (x, y) = (numbers::<T>(3 * n, 9), modest::<T>(3 * n, 10));
        let what = format!("atomics with results of {n} {}", T::DTYPE);
        let found = judge.same(&what, &[1], |way| {
            let (given, mut held) = (way.given(&x)?, way.given(&y)?);
            let mut out = way.room::<T>(15 * n)?;
            let kernel = fetched::<T>().n(n).schedule(way.schedule);
            kernel.determinism(Determinism::NotGuaranteed).run(
                &way.device,
                3,
                (&given, &mut held, &mut out),
            )?;
            Ok(vec![out.to_array()?, held.to_array()?])
        })?;
        let add = |a: T, b: T| -> T { pair(Wide::of(a), Wide::of(b), |a, b| a + b, |a, _| a).to() };
        let most = |a: T, b: T| -> T { pair(Wide::of(a), Wide::of(b), i128::max, |a, _| a).to() };
        let both = || x.iter().zip(&y).map(|(&x, &y)| (x, y));
        let mut want = y.clone();
        want.extend(both().map(|(x, y)| add(y, x)));
        want.extend(both().map(|(x, y)| most(add(y, x), x)));
        want.extend(&x);
        want.extend(x.iter().map(|&x| add(x, x)));
        expect(&what, &found[0], &want)?;
        expect(&what, &found[1], &want[12 * n..])?;
    }
    Ok(())
}

#[kernel]
fn fetched_floats<T: Float + AtomicNumber, const N: usize>(
    x: Ptr<T>,
    expected: Ptr<T>,
    y: PtrMut<T>,
    out: PtrMut<T>,
) {
    let at = program_id(0) * N + arange(0, N);
    let (value, own) = (load(x + at), y + at);
    let total = N * num_programs(0);
    store(out + at, atomic_fetch_max(own, value));
    store(out + total + at, atomic_exchange(own, value));
    let swapped = atomic_compare_exchange(own, load(expected + at), value + value);
    store(out + total * 2 + at, swapped);
    store(out + total * 3 + at, atomic_load(own));
}

fn fetched_floats_on<T: Float + AtomicNumber + Number>(judge: &mut Judge<'_>) -> Result<()> {
    for n in [4, 16, 128] {
        let (x, y) = (numbers::<T>(3 * n, 9), numbers::<T>(3 * n, 10));
        let mut expected = x.clone();
        for (at, it) in expected.iter_mut().enumerate() {
            // Another zero, and another number.
            if at % 3 == 1 {
                *it = Wide::Float(-float(*it)).to();
            }
        }
        let what = format!("atomics with results of {n} {}", T::DTYPE);
        let found = judge.same(&what, &[1], |way| {
            let (given, wanted) = (way.given(&x)?, way.given(&expected)?);
            let (mut held, mut out) = (way.given(&y)?, way.room::<T>(12 * n)?);
            let kernel = fetched_floats::<T>().n(n).schedule(way.schedule);
            kernel.determinism(Determinism::NotGuaranteed).run(
                &way.device,
                3,
                (&given, &wanted, &mut held, &mut out),
            )?;
            Ok(vec![out.to_array()?, held.to_array()?])
        })?;
        let last = x.iter().zip(&expected).map(|(&x, &expected)| {
            let same =
                x.to_bits() == expected.to_bits() || float(x).is_nan() && float(expected).is_nan();
            let sum = pair(Wide::of(x), Wide::of(x), |a, _| a, |a, b| a + b).to();
            if same { sum } else { x }
        });
        let last: Vec<T> = last.collect();
        let mut want = y.clone();
        want.extend(x.iter().zip(&y).map(|(&x, &y)| number_of(y, x, most)));
        want.extend(&x);
        want.extend(&last);
        expect(&what, &found[0], &want)?;
        expect(&what, &found[1], &last)?;
    }
    Ok(())
}

#[kernel]
fn exchanged<T: AtomicExchange, const N: usize>(
    x: Ptr<T>,
    expected: Ptr<T>,
    y: PtrMut<T>,
    out: PtrMut<T>,
) {
    let at = program_id(0) * N + arange(0, N);
    let own = y + at;
    let total = N * num_programs(0);
    store(out + at, atomic_exchange(own, load(x + at)));
    let swapped = atomic_compare_exchange(own, load(expected + at), load(out + at));
    store(out + total + at, swapped);
    store(out + total * 2 + at, atomic_load(own));
}

/// Numbers of 16 bits, of which a word holds two that programs change.
fn exchanged_on<T: AtomicExchange + Number>(judge: &mut Judge<'_>) -> Result<()> {
    for n in [4, 16, 128] {
        let (x, y) = (numbers::<T>(3 * n, 9), numbers::<T>(3 * n, 10));
        let others = x.iter().skip(1).chain([&x[0]]);
        let each = x.iter().zip(others).enumerate();
        let expected = each.map(|(at, (&x, &other))| if at % 3 == 1 { other } else { x });
        let expected: Vec<T> = expected.collect();
        let what = format!("atomics with results of {n} {}", T::DTYPE);
        let found = judge.same(&what, &[1], |way| {
            let (given, wanted) = (way.given(&x)?, way.given(&expected)?);
            let (mut held, mut out) = (way.given(&y)?, way.room::<T>(9 * n)?);
            let kernel = exchanged::<T>().n(n).schedule(way.schedule);
            kernel.determinism(Determinism::NotGuaranteed).run(
                &way.device,
                3,
                (&given, &wanted, &mut held, &mut out),
            )?;
            Ok(vec![out.to_array()?, held.to_array()?])
        })?;
        let is_same = |a: T, b: T| a.to_bits() == b.to_bits();
        let last = (0..3 * n).map(|at| match is_same(x[at], expected[at]) {
            true => y[at],
            false => x[at],
        });
        let last: Vec<T> = last.collect();
        expect(&what, &found[0], &[&y[..], &x, &last].concat())?;
        expect(&what, &found[1], &last)?;
    }
    Ok(())
}

/// Atomics that give what memory held, an address for each element.
pub(super) fn fetches(judge: &mut Judge<'_>) -> Result<()> {
    each!(fetched_on(judge): i32 u32 i64 u64);
    each!(fetched_floats_on(judge): f32 f64);
    each!(exchanged_on(judge): i16 u16 f16 bf16);
    Ok(())
}

fn float<T: Number>(x: T) -> f64 {
    match Wide::of(x) {
        Wide::Int(x) => x as f64,
        Wide::Float(x) => x,
    }
}

/// The smaller or the larger number of two, of which a NaN is none.
fn number_of<T: Number>(a: T, b: T, of_numbers: fn(f64, f64) -> f64) -> T {
    match (float(a).is_nan(), float(b).is_nan()) {
        (true, _) => b,
        (false, true) => a,
        (false, false) => Wide::Float(of_numbers(float(a), float(b))).to(),
    }
}

#[kernel]
fn extremes<T: AtomicNumber, const N: usize>(x: Ptr<T>, out: PtrMut<T>) {
    let at = arange(0, N);
    let value = load(x + program_id(0) * N + at);
    atomic_min(out + at / 4, value);
    atomic_max(out + N + at / 4, value).mask(at % 3 != 0);
    if program_id(0) % 2 == 1 {
        atomic_max(out + 2 * N, load(x + program_id(0) * N));
    }
}

fn extremes_on<T: AtomicNumber + Number>(judge: &mut Judge<'_>) -> Result<()> {
    let (n, programs) = (64, 5);
    let x = numbers::<T>(n * programs, 5);
    let held = [f64::NAN, 0.0, -0.0, f64::INFINITY, -f64::NAN, -1.0];
    let held: Vec<T> = (0..=2 * n)
        .map(|at| Wide::Float(held[at % 6]).to())
        .collect();
    let what = format!("atomic extremes of {}", T::DTYPE);
    let found = judge.same(&what, &[1], |way| {
        let (given, mut out) = (way.given(&x)?, way.given(&held)?);
        let kernel = extremes::<T>().n(n).schedule(way.schedule);
        kernel.run(&way.device, programs, (&given, &mut out))?;
        Ok(vec![out.to_array()?])
    })?;
    let mut want = held;
    for (at, &x) in x.iter().enumerate() {
        let place = at % n / 4;
        want[place] = number_of(want[place], x, least);
        if at % n % 3 != 0 {
            want[n + place] = number_of(want[n + place], x, most);
        }
        if at / n % 2 == 1 && at % n == 0 {
            want[2 * n] = number_of(want[2 * n], x, most);
        }
    }
    expect(&what, &found[0], &want)
}

#[kernel]
fn least_program(out: PtrMut<f32>, zeros: PtrMut<f32>) {
    let at = arange(0, 8).expand(1) * 8 + arange(0, 8).expand(0);
    atomic_min(out + at, program_id(0).to::<f32>());
    atomic_max(zeros, -0.0);
    atomic_min(zeros + 1, -0.0);
}

/// Extremes of floats by atomics: NaN, zeros of both signs, a tile at once.
pub(super) fn float_extremes(judge: &mut Judge<'_>) -> Result<()> {
    each!(extremes_on(judge): f32 f64);
    let what = "the least of two programs, and zeros";
    let found = judge.same(what, &[1], |way| {
        let mut out = way.given(&[f32::INFINITY; 64])?;
        let mut zeros = way.given(&[-1.0_f32, 0.0])?;
        let kernel = least_program().schedule(way.schedule);
        kernel.run(&way.device, 2, (&mut out, &mut zeros))?;
        Ok(vec![out.to_array()?, zeros.to_array()?])
    })?;
    expect(what, &found[0], &[0.0_f32; 64])?;
    expect(what, &found[1], &[-0.0_f32; 2])
}

/// How many tensors lie behind each other, and the extents of each, which no tile divides.
const EXTENTS: [usize; 3] = [6, 13, 21];
const ELEMENTS: usize = EXTENTS[1] * EXTENTS[2];

#[kernel]
fn combined_tiles<T: AtomicInt, const M: usize, const N: usize>(
    x: Tensor<T, 2>,
    out: TensorMut<T, 3>,
) {
    let at = (program_id(0), program_id(1));
    let value = load(x.tile([M, N]).at(at));
    let place = |op: i64| out.select(0, op).tile([M, N]).at(at);
    atomic_add(place(0), value);
    atomic_min(place(1), value);
    atomic_max(place(2), value);
    atomic_and(place(3), value);
    atomic_or(place(4), value);
    atomic_xor(place(5), value).mask(arange(0, N).expand(0) % 2 == 0);
}

#[kernel]
fn extreme_tiles<T: AtomicNumber, const M: usize, const N: usize>(
    x: Tensor<T, 2>,
    out: TensorMut<T, 3>,
) {
    let at = (program_id(0), program_id(1));
    let value = load(x.tile([M, N]).at(at));
    atomic_min(out.select(0, 1).tile([M, N]).at(at), value);
    atomic_max(out.select(0, 2).tile([M, N]).at(at), value);
}

#[kernel]
fn fetched_tiles<T: AtomicAdd, const M: usize, const N: usize>(
    x: Tensor<T, 2>,
    sums: TensorMut<T, 2>,
    old: TensorMut<T, 2>,
) {
    let at = (program_id(0), program_id(1));
    let value = load(x.tile([M, N]).at(at));
    let found = atomic_fetch_add(sums.tile([M, N]).at(at), value);
    store(old.tile([M, N]).at(at), found);
}

/// Tiles that cover a tensor, by so many programs each.
fn covering(tile: usize, programs: usize) -> (usize, usize, usize) {
    let [_, rows, columns] = EXTENTS;
    (rows.div_ceil(tile), columns.div_ceil(8), programs)
}

fn tiles_on<T: AtomicInt + Number>(judge: &mut Judge<'_>) -> Result<()> {
    let (x, y) = (numbers::<T>(ELEMENTS, 5), numbers::<T>(6 * ELEMENTS, 6));
    let what = format!("atomics on tiles of {}", T::DTYPE);
    let found = judge.same(&what, &[4, 16], |way| {
        let (given, mut out) = (way.given(&x)?, way.given(&y)?);
        let kernel = combined_tiles::<T>()
            .m(way.block)
            .n(8)
            .schedule(way.schedule);
        let views = (
            given.view([EXTENTS[1], EXTENTS[2]])?,
            out.view_mut(EXTENTS)?,
        );
        kernel.run(&way.device, covering(way.block, 3), views)?;
        Ok(vec![out.to_array()?])
    })?;
    let of = |x: T| match Wide::of(x) {
        Wide::Int(x) => x,
        Wide::Float(x) => x as i128,
    };
    let want = y.iter().enumerate().map(|(at, &held)| {
        let (held, x) = (of(held), of(x[at % ELEMENTS]));
        Wide::Int(match at / ELEMENTS {
            0 => held + 3 * x,
            1 => held.min(x),
            2 => held.max(x),
            3 => held & x,
            4 => held | x,
            _ if (at % ELEMENTS % EXTENTS[2]).is_multiple_of(2) => held ^ x,
            _ => held,
        })
        .to()
    });
    expect(&what, &found[0], &want.collect::<Vec<T>>())
}

fn extreme_tiles_on<T: AtomicNumber + Number>(judge: &mut Judge<'_>) -> Result<()> {
    let (x, y) = (numbers::<T>(ELEMENTS, 5), numbers::<T>(6 * ELEMENTS, 6));
    let what = format!("atomic extremes on tiles of {}", T::DTYPE);
    let found = judge.same(&what, &[4, 16], |way| {
        let (given, mut out) = (way.given(&x)?, way.given(&y)?);
        let kernel = extreme_tiles::<T>()
            .m(way.block)
            .n(8)
            .schedule(way.schedule);
        let views = (
            given.view([EXTENTS[1], EXTENTS[2]])?,
            out.view_mut(EXTENTS)?,
        );
        kernel.run(&way.device, covering(way.block, 2), views)?;
        Ok(vec![out.to_array()?])
    })?;
    let want = y.iter().enumerate().map(|(at, &held)| match at / ELEMENTS {
        1 => number_of(held, x[at % ELEMENTS], least),
        2 => number_of(held, x[at % ELEMENTS], most),
        _ => held,
    });
    expect(&what, &found[0], &want.collect::<Vec<T>>())
}

fn fetched_tiles_on<T: AtomicAdd + Number>(judge: &mut Judge<'_>) -> Result<()> {
    let (x, y) = (modest::<T>(ELEMENTS, 5), modest::<T>(ELEMENTS, 6));
    let what = format!("atomics with results on tiles of {}", T::DTYPE);
    let found = judge.same(&what, &[4, 16], |way| {
        let (given, mut out) = (way.given(&x)?, way.given(&y)?);
        let mut old = way.room::<T>(ELEMENTS)?;
        let kernel = fetched_tiles::<T>()
            .m(way.block)
            .n(8)
            .schedule(way.schedule);
        let extents = [EXTENTS[1], EXTENTS[2]];
        let views = (
            given.view(extents)?,
            out.view_mut(extents)?,
            old.view_mut(extents)?,
        );
        kernel.determinism(Determinism::NotGuaranteed).run(
            &way.device,
            covering(way.block, 1),
            views,
        )?;
        Ok(vec![out.to_array()?, old.to_array()?])
    })?;
    let sum = |(&x, &y)| pair(Wide::of(y), Wide::of(x), |a, b| a + b, |a, b| a + b).to();
    let want: Vec<T> = x.iter().zip(&y).map(sum).collect();
    expect(&what, &found[0], &want)?;
    expect(&what, &found[1], &y)
}

/// Atomics on tiles of tensors, whose elements outside of the tensor are left out.
pub(super) fn tiles(judge: &mut Judge<'_>) -> Result<()> {
    each!(tiles_on(judge): i32 u32 i64 u64);
    each!(extreme_tiles_on(judge): f32 f64);
    each!(fetched_tiles_on(judge): i32 u64 f16 bf16 f32 f64);
    Ok(())
}
