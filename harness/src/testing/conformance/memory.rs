//! Loads, stores and atomics: masks, strides, tables of places.

use exactile::prelude::*;
use exactile::{Comparable, Determinism, Number, Result};

use super::each;
use super::judge::{Judge, expect, expect_near};
use super::wide::{Wide, modest, numbers, pair};

#[kernel]
fn masked<T: Element, const N: usize>(x: Ptr<T>, y: Ptr<T>, out: PtrMut<T>, count: i32) {
    let at = arange(0, N);
    let mask = at < count;
    store(out + at, load(x + at).mask(mask));
    store(out + N + at, load(x + at).mask(mask).other(load(y)));
    store(out + 2 * N + at, load(y + 1));
    store(out + 3 * N, load(x + N).mask(false).other(load(y)));
    store(out + 3 * N + 1, load(x).mask(count > 0));
    // Of stride 3 from the end, and by places from memory.
    store(out + 4 * N + at * 3, load(x + (N as i64 - 1 - at)));
    let place = (at * 7 + 1) % N as i64;
    store(out + 7 * N + place, load(x + place));
}

fn masked_on<T: Element + Number>(judge: &mut Judge<'_>) -> Result<()> {
    for (n, count) in [(128, 124), (128, 128), (512, 511), (512, 0)] {
        let (x, y) = (numbers::<T>(n, 1), numbers::<T>(2, 2));
        let what = format!("masked loads of {count} of {n} {}", T::DTYPE);
        let found = judge.same(&what, &[1], |way| {
            let (a, b) = (way.given(&x)?, way.given(&y)?);
            let mut out = Buffer::<T>::zeros(&way.device, 8 * n)?;
            let config = masked::Config::new(n).scheduled(way.schedule);
            masked::<T>(config).run(&way.device, 1, (&a, &b, &mut out, count as i32))?;
            Ok(vec![out.to_array()?])
        })?;
        let zero = T::default();
        let inside = |at: usize, other| if at < count { x[at] } else { other };
        let mut want: Vec<T> = (0..n).map(|at| inside(at, zero)).collect();
        want.extend((0..n).map(|at| inside(at, y[0])));
        want.extend(vec![y[1]; n]);
        want.resize(8 * n, zero);
        want[3 * n] = y[0];
        want[3 * n + 1] = inside(0, zero);
        for at in 0..n {
            want[4 * n + 3 * at] = x[n - 1 - at];
            want[7 * n + at] = x[at];
        }
        expect(&what, &found[0], &want)?;
    }
    Ok(())
}

/// Loads with masks and what stands beside them, strides and places, of every type.
pub(super) fn masks(judge: &mut Judge<'_>) -> Result<()> {
    each!(masked_on(judge): bool i8 i16 i32 i64 u8 u16 u32 u64 F8E4M3 F8E5M2 f16 bf16 f32 f64);
    Ok(())
}

#[kernel]
fn hinted<T: Element, const N: usize>(x: Ptr<T>, out: PtrMut<T>, n: i32) {
    let (at, total) = (program_id(0) * N + arange(0, N), num_programs(0) * N);
    let mask = at < n;
    let hints = [
        (Cache::SecondLevel, Cache::WriteThrough),
        (Cache::Streaming, Cache::Streaming),
        (Cache::Anew, Cache::SecondLevel),
        (Cache::EvictFirst, Cache::EvictLast),
        (Cache::EvictLast, Cache::EvictFirst),
        (Cache::NoAllocate, Cache::NoAllocate),
        (Cache::Volatile, Cache::Volatile),
    ];
    for (place, (of_load, of_store)) in hints.into_iter().enumerate() {
        let out = out + total * (2 * place) + at;
        store(out, load(x + at).cache(of_load)).cache(of_store);
        let some = load(x + at).mask(mask).other(load(x)).cache(of_load);
        store(out + total, some).cache(of_store).mask(mask);
    }
}

fn hinted_on<T: Element + Number>(judge: &mut Judge<'_>) -> Result<()> {
    let (n, all) = (101, 128);
    let x = numbers::<T>(all, 11);
    let what = format!("hints for caches of {}", T::DTYPE);
    let found = judge.same(&what, &[32, 128], |way| {
        let given = way.given(&x)?;
        let mut out = Buffer::<T>::zeros(&way.device, 14 * all)?;
        let config = hinted::Config::new(way.block).scheduled(way.schedule);
        let grid = all / way.block;
        hinted::<T>(config).run(&way.device, grid, (&given, &mut out, n as i32))?;
        Ok(vec![out.to_array()?])
    })?;
    let zeros = vec![T::default(); all - n];
    let want = [&x[..], &x[..n], &zeros].concat().repeat(7);
    expect(&what, &found[0], &want)
}

/// Every hint of a load and of a store, with masks and without.
pub(super) fn hints(judge: &mut Judge<'_>) -> Result<()> {
    each!(hinted_on(judge): f32 i8);
    Ok(())
}

#[kernel]
fn in_place<const BLOCK: usize>(x: PtrMut<f32>, n: i32) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let mask = at < n;
    let value = load(x + at).mask(mask);
    store(x + at, value + value).mask(mask);
}

/// Buffers that a kernel reads and writes, and tensors with strides.
pub(super) fn places(judge: &mut Judge<'_>) -> Result<()> {
    let x = numbers::<f32>(1000, 3);
    let what = "numbers doubled in place";
    let found = judge.same(what, &[64, 16], |way| {
        let mut given = way.given(&x)?;
        let config = in_place::Config::new(way.block).scheduled(way.schedule);
        in_place(config).run(
            &way.device,
            1000_usize.div_ceil(way.block),
            (&mut given, 1000),
        )?;
        Ok(vec![given.to_array()?])
    })?;
    expect(
        what,
        &found[0],
        &x.iter().map(|x| x + x).collect::<Vec<_>>(),
    )?;
    strided(judge)?;
    five(judge)
}

#[kernel]
fn copied<T: Element, const M: usize, const N: usize>(x: Tensor<T, 3>, out: TensorMut<T, 3>) {
    let at = (program_id(0), program_id(1), program_id(2));
    out.tile([1, M, N])
        .at(at)
        .store(x.tile([1, M, N]).at(at).load());
}

/// A transposed copy, a repeated row, and extents that no tile divides.
fn strided(judge: &mut Judge<'_>) -> Result<()> {
    let extents = [3, 21, 10];
    let x = numbers::<i16>(700, 4);
    for strides in [[210, 10, 1], [1, 3, 70], [0, 10, 1], [200, 1, 25]] {
        let what = format!("a tensor with strides {strides:?}");
        let found = judge.same(&what, &[8, 16], |way| {
            let given = way.given(&x)?;
            let mut out = way.room::<i16>(630)?;
            let config = copied::Config::new(way.block, 4).scheduled(way.schedule);
            let grid = (3, 21_usize.div_ceil(way.block), 3);
            let views = (
                given.view_strided(extents, strides)?,
                out.view_mut(extents)?,
            );
            copied::<i16>(config).run(&way.device, grid, views)?;
            Ok(vec![out.to_array()?])
        })?;
        let place =
            |at: usize| at / 210 * strides[0] + at / 10 % 21 * strides[1] + at % 10 * strides[2];
        expect(
            &what,
            &found[0],
            &(0..630).map(|at| x[place(at)]).collect::<Vec<_>>(),
        )?;
    }
    Ok(())
}

#[kernel]
fn copied_in_five<const N: usize>(x: Tensor<u16, 5>, out: TensorMut<u16, 5>) {
    let at = (program_id(0), 0, 0, program_id(1), 0);
    out.tile([1, 2, 2, 4, N])
        .at(at)
        .store(x.tile([1, 2, 2, 4, N]).at(at).load());
}

/// A tensor of rank 5 whose extents no tile divides.
fn five(judge: &mut Judge<'_>) -> Result<()> {
    let extents = [2, 2, 1, 5, 11];
    let x = numbers::<u16>(220, 8);
    let what = "a tensor of rank 5";
    let found = judge.same(what, &[16, 32], |way| {
        let given = way.given(&x)?;
        let mut out = way.room::<u16>(220)?;
        let config = copied_in_five::Config::new(way.block).scheduled(way.schedule);
        let views = (given.view(extents)?, out.view_mut(extents)?);
        copied_in_five(config).run(&way.device, (2, 2), views)?;
        Ok(vec![out.to_array()?])
    })?;
    expect(what, &found[0], &x)
}

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
    let (n, programs) = (64, 5);
    let x = numbers::<T>(n * programs, 5);
    let what = format!("atomics of {}", T::DTYPE);
    let found = judge.same(&what, &[1], |way| {
        let given = way.given(&x)?;
        let mut out = Buffer::<T>::zeros(&way.device, 6 * n + 1)?;
        let config = combined::Config::new(n).scheduled(way.schedule);
        combined::<T>(config).run(&way.device, programs, (&given, &mut out))?;
        Ok(vec![out.to_array()?])
    })?;
    let of = |x: T| match Wide::of(x) {
        Wide::Int(x) => x,
        Wide::Float(x) => x as i128,
    };
    let mut want = vec![0i128; 6 * n + 1];
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
    // Quarters: no order of adding them rounds.
    let x: Vec<T> = modest::<T>(64 * 4, 6)
        .into_iter()
        .map(|x| match Wide::of(x) {
            Wide::Float(x) => Wide::Float((x * 4.0).round() / 4.0).to(),
            Wide::Int(x) => Wide::Int(x).to(),
        })
        .collect();
    let what = format!("atomic sums of {}", T::DTYPE);
    let found = judge.same(&what, &[1], |way| {
        let given = way.given(&x)?;
        let mut out = Buffer::<T>::zeros(&way.device, 64)?;
        let config = float_sums::Config::new(64).scheduled(way.schedule);
        float_sums::<T>(config)
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
    each!(float_sums_on(judge): f32 f64);
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
            let config = fetched::Config::new(n).scheduled(way.schedule);
            fetched::<T>(config)
                .determinism(Determinism::NotGuaranteed)
                .run(&way.device, 3, (&given, &mut held, &mut out))?;
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

/// Atomics that give what memory held, an address for each element.
pub(super) fn fetches(judge: &mut Judge<'_>) -> Result<()> {
    each!(fetched_on(judge): i32 u32 i64 u64);
    Ok(())
}
