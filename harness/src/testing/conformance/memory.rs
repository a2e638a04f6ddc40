//! Loads and stores: masks, strides, tables of places.

use exactile::prelude::*;
use exactile::{Comparable, Number, Result};

use super::each;
use super::judge::{Judge, expect};
use super::wide::numbers;

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
            let kernel = masked::<T>().n(n).schedule(way.schedule);
            kernel.run(&way.device, 1, (&a, &b, &mut out, count as i32))?;
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
        let kernel = hinted::<T>().n(way.block).schedule(way.schedule);
        let grid = all / way.block;
        kernel.run(&way.device, grid, (&given, &mut out, n as i32))?;
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
        let kernel = in_place().block(way.block).schedule(way.schedule);
        kernel.run(
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
    each!(strided(judge): i16);
    backwards(judge)?;
    five(judge)
}

#[kernel]
fn copied<T: Element, const M: usize, const N: usize>(x: Tensor<T, 3>, out: TensorMut<T, 3>) {
    let at = (program_id(0), program_id(1), program_id(2));
    out.tile([1, M, N])
        .at(at)
        .store(x.tile([1, M, N]).at(at).load());
}

/// Copies of tensors of every type with other strides.
pub(super) fn tensors(judge: &mut Judge<'_>) -> Result<()> {
    each!(strided(judge): bool i8 i32 i64 u8 u16 u32 u64 F8E4M3 F8E5M2 f16 bf16 f32 f64);
    Ok(())
}

/// A copy along axes that run backwards in memory.
fn backwards(judge: &mut Judge<'_>) -> Result<()> {
    let extents = [3, 21, 10];
    let x = numbers::<f32>(630, 5);
    for axis in 0..3 {
        let what = format!("a tensor whose axis {axis} runs backwards");
        let found = judge.same(&what, &[8, 16], |way| {
            let given = way.given(&x)?;
            let mut out = way.room::<f32>(630)?;
            let kernel = copied::<f32>().m(way.block).n(4).schedule(way.schedule);
            let grid = (3, 21_usize.div_ceil(way.block), 3);
            let views = (given.view(extents)?.flip(axis)?, out.view_mut(extents)?);
            kernel.run(&way.device, grid, views)?;
            Ok(vec![out.to_array()?])
        })?;
        let place = |at: usize| {
            let mut index = [at / 210, at / 10 % 21, at % 10];
            index[axis] = extents[axis] - 1 - index[axis];
            index[0] * 210 + index[1] * 10 + index[2]
        };
        let want: Vec<f32> = (0..630).map(|at| x[place(at)]).collect();
        expect(&what, &found[0], &want)?;
    }
    Ok(())
}

/// A transposed copy, a repeated row, and extents that no tile divides.
fn strided<T: Element + Number>(judge: &mut Judge<'_>) -> Result<()> {
    let extents = [3, 21, 10];
    let x = numbers::<T>(700, 4);
    for strides in [[210, 10, 1], [1, 3, 70], [0, 10, 1], [200, 1, 25]] {
        let what = format!("a tensor of {} with strides {strides:?}", T::DTYPE);
        let found = judge.same(&what, &[8, 16], |way| {
            let given = way.given(&x)?;
            let mut out = way.room::<T>(630)?;
            let kernel = copied::<T>().m(way.block).n(4).schedule(way.schedule);
            let grid = (3, 21_usize.div_ceil(way.block), 3);
            let views = (
                given.view_strided(extents, strides)?,
                out.view_mut(extents)?,
            );
            kernel.run(&way.device, grid, views)?;
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
        let kernel = copied_in_five().n(way.block).schedule(way.schedule);
        let views = (given.view(extents)?, out.view_mut(extents)?);
        kernel.run(&way.device, (2, 2), views)?;
        Ok(vec![out.to_array()?])
    })?;
    expect(what, &found[0], &x)
}
