//! Branches, loops, functions and the grid.

use exactile::prelude::*;
use exactile::{Comparable, DeviceKind, Error, Result};

use super::judge::{Judge, ensure, expect};

#[device]
fn chosen(first: Scalar<bool>, second: Scalar<bool>, third: Scalar<bool>) -> Scalar<i32> {
    if first {
        if second {
            return scalar(1);
        }
        if third {
            return scalar(2);
        }
        return scalar(3);
    }
    if second && third {
        return scalar(4);
    }
    scalar(5)
}

/// A function that takes another one.
#[device]
fn twice(f: impl Fn(Tile<i32>) -> Tile<i32>, x: Tile<i32>) -> Tile<i32> {
    f(f(x))
}

#[device]
fn three(x: Tile<i32>) -> (Tile<i32>, Tile<i32>) {
    (x + 3, x * 3)
}

#[kernel(FLAG = 1)]
fn branches<const FLAG: usize>(flags: Ptr<bool>, out: PtrMut<i32>) {
    let program = program_id(0);
    let [first, second, third] = [0, 1, 2].map(|at| load(flags + program * 3 + at));
    let place = out + program * 8;
    store(place, chosen(first, second, third));
    let mut value = scalar::<i32>(7);
    if first && (second || !third) {
        value = scalar(8);
    } else if third {
        value += 2;
    }
    store(place + 1, value);
    store(place + 2, if first { value } else { -value });
    if FLAG == 1 {
        store(place + 3, 1);
    }
    let (sum, product) = three(twice(|x| x * 2 + 1, arange(0, 2).to::<i32>()));
    store(place + 4 + arange(0, 2), sum - product);
    let one = full::<i32>([1], 1).reshape([]).scalar();
    if one == 1 {
        store(place + 6, 11);
    }
    if !second {
        return;
    }
    store(place + 7, 12);
}

fn branch(first: bool, second: bool, third: bool) -> [i32; 8] {
    let chosen = match (first, second, third) {
        (true, true, _) => 1,
        (true, false, true) => 2,
        (true, false, false) => 3,
        (false, true, true) => 4,
        (false, _, _) => 5,
    };
    let value = match (first, second, third) {
        (true, true, _) | (true, _, false) => 8,
        (_, _, true) => 9,
        (false, _, false) => 7,
    };
    let signed = if first { value } else { -value };
    let three = |x: i32| {
        let x = (x * 2 + 1) * 2 + 1;
        x + 3 - x * 3
    };
    [
        chosen,
        value,
        signed,
        1,
        three(0),
        three(1),
        11,
        if second { 12 } else { 0 },
    ]
}

/// `if`, `else`, early returns, conditions of several flags, functions of functions.
pub(super) fn ifs(judge: &mut Judge<'_>) -> Result<()> {
    let all: Vec<[bool; 3]> = (0..8)
        .map(|at| [at & 4 != 0, at & 2 != 0, at & 1 != 0])
        .collect();
    let what = "branches by three flags";
    let found = judge.same(what, &[1], |way| {
        let flags = way.given(all.as_flattened())?;
        let mut out = Buffer::<i32>::zeros(&way.device, 64)?;
        let kernel = branches().schedule(way.schedule);
        kernel.run(&way.device, 8, (&flags, &mut out))?;
        Ok(vec![out.to_array()?])
    })?;
    let want: Vec<i32> = all.iter().flat_map(|&[a, b, c]| branch(a, b, c)).collect();
    expect(what, &found[0], &want)
}

/// `y = a x`, and stores of the first program alone on both sides of the sum, under conditions that always hold.
#[kernel]
fn predicated<const BLOCK: usize>(
    a: Ptr<f32>,
    x: Ptr<f32>,
    y: PtrMut<f32>,
    seen: PtrMut<f32>,
    n: i32,
) {
    let (program, at) = (program_id(0), arange(0, BLOCK));
    let row = load(a + program * n + at).mask(at < n);
    if n > 0 {
        store(seen, 1.0).mask(program == 0);
    }
    let x = load(x + at).mask(at < n);
    if n < 1000 {
        store(seen + 1, 2.0).mask(program == 0);
    }
    store(y + program, (row * x).sum(0));
}

/// Stores of one program around an exchange between lanes change nothing else.
pub(super) fn stores_of_one(judge: &mut Judge<'_>) -> Result<()> {
    let n = 100;
    let a: Vec<f32> = (0..n * n).map(|at| (at % 7) as f32).collect();
    let what = "rows times ones, with stores of the first program";
    let found = judge.same(what, &[128, 1024], |way| {
        let (a, x) = (way.given(&a)?, way.given(&vec![1.0f32; n])?);
        let (mut y, mut seen) = (way.room::<f32>(n)?, way.room::<f32>(2)?);
        let kernel = predicated().block(way.block).schedule(way.schedule);
        let arguments = (&a, &x, &mut y, &mut seen, n as i32);
        kernel.run(&way.device, n, arguments)?;
        Ok(vec![y.to_array()?, seen.to_array()?])
    })?;
    let want: Vec<f32> = a.chunks(n).map(|row| row.iter().sum()).collect();
    expect(what, &found[0], &want)?;
    expect(what, &found[1], &[1.0f32, 2.0])
}

#[kernel]
fn loops(bounds: Ptr<i64>, out: PtrMut<i64>) {
    let at = program_id(0);
    let (start, end, step) = (load(bounds), load(bounds + 1), load(bounds + 2));
    let mut sum = scalar::<i64>(0);
    for i in range(start, end).step(step) {
        let double = i * 2;
        sum += double - i;
    }
    store(out + at, sum);
    let (mut outer, mut pairs) = (scalar::<i64>(0), scalar::<i64>(0));
    while outer < 5 {
        let mut inner = scalar::<i64>(0);
        while inner < outer {
            pairs += inner * 10 + outer;
            inner += 1;
        }
        outer += 1;
    }
    store(out + 1 + at, pairs);
    let mut unrolled = scalar::<i64>(0);
    for i in (0..100).step_by(7) {
        unrolled += i;
    }
    store(out + 2 + at, unrolled);
    let mut found = scalar::<i64>(-1);
    for i in range(0, 50) {
        if i % 3 == 0 {
            continue;
        }
        if i * i > 200 {
            found = i;
            break;
        }
    }
    store(out + 3 + at, found);
}

/// Sums over ranges of 32 and 64 bits, empty ones, nests, `break` and `continue`.
pub(super) fn iterations(judge: &mut Judge<'_>) -> Result<()> {
    let ranges = [
        [1i64 << 30, (1 << 30) + 20, 1],
        [1 << 35, (1 << 35) + 20, 2],
        [1 << 35, (1 << 35) + 20, 3],
        [-18, -22, 1],
        [-22, -18, 1],
        [5, 5, 4],
        [i64::from(i32::MAX) - 3, i64::from(i32::MAX) + 3, 1],
    ];
    for bounds in ranges {
        let what = format!("loops over {bounds:?}");
        let found = judge.same(&what, &[1], |way| {
            let given = way.given(&bounds)?;
            let mut out = way.room::<i64>(4)?;
            let kernel = loops().schedule(way.schedule);
            kernel.run(&way.device, 1, (&given, &mut out))?;
            Ok(vec![out.to_array()?])
        })?;
        let [start, end, step] = bounds;
        let sum = (start..end).step_by(step as usize).sum();
        let pairs = (0..5)
            .flat_map(|outer| (0..outer).map(move |inner| inner * 10 + outer))
            .sum();
        expect(
            &what,
            &found[0],
            &[sum, pairs, (0..100).step_by(7).sum(), 16],
        )?;
    }
    Ok(())
}

#[kernel]
fn downward(bounds: Ptr<i64>, out: PtrMut<i64>) {
    let at = program_id(0);
    let (start, end) = (load(bounds), load(bounds + 1));
    let (mut sum, mut count) = (scalar::<i64>(0), scalar::<i64>(0));
    for i in range(start, end).step(-3).stages(2) {
        sum = sum * 5 + i;
        count += 1;
    }
    store(out + at, sum);
    store(out + 1 + at, count);
    let mut found = scalar::<i64>(-1);
    for i in range(start, end).step(-1) {
        if i % 7 == 3 {
            found = i;
            break;
        }
    }
    store(out + 2 + at, found);
    let mut few = scalar::<i64>(0);
    for i in range(i64::MAX, i64::MIN).step(i64::MIN) {
        few = few * 3 + i % 10;
    }
    store(out + 3 + at, few);
}

/// Loops from the greater bound to the smaller one.
pub(super) fn countdowns(judge: &mut Judge<'_>) -> Result<()> {
    for [start, end] in [
        [20i64, 0],
        [-18, -22],
        [0, 20],
        [5, 5],
        [1 << 35, (1 << 35) - 20],
    ] {
        let what = format!("loops from {start} down to {end}");
        let found = judge.same(&what, &[1], |way| {
            let given = way.given(&[start, end])?;
            let mut out = way.room::<i64>(4)?;
            let kernel = downward().schedule(way.schedule);
            kernel.run(&way.device, 1, (&given, &mut out))?;
            Ok(vec![out.to_array()?])
        })?;
        let down = |step: usize| (end + 1..=start).rev().step_by(step);
        let sum = down(3).fold(0i64, |sum, i| sum.wrapping_mul(5).wrapping_add(i));
        let first = down(1).find(|i| i % 7 == 3).unwrap_or(-1);
        // The greatest number, and -1 after it.
        let few = (i64::MAX % 10) * 3 - 1;
        expect(&what, &found[0], &[sum, down(3).count() as i64, first, few])?;
    }
    Ok(())
}

#[kernel]
fn pipelined<const BLOCK: usize, const STAGES: usize>(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let mut sum = zeros::<f32>([BLOCK]);
    for start in range(0, n).step(BLOCK).stages(STAGES) {
        let at = start + arange(0, BLOCK);
        let tile = load(x + at).mask(at < n);
        sum += tile;
        if start % (2 * BLOCK) == 0 {
            store(out + BLOCK + at, tile * 2.0).mask(at < n);
        }
    }
    store(out + arange(0, BLOCK), sum);
}

/// Loops that are shorter than their pipeline, with stores in branches.
pub(super) fn pipelines(judge: &mut Judge<'_>) -> Result<()> {
    const BLOCK: usize = 64;
    for trips in [0, 1, 2, 3, 5] {
        let n = (trips * BLOCK).saturating_sub(5);
        let x: Vec<f32> = (0..n).map(|at| (at % 17) as f32 - 3.5).collect();
        for stages in [1, 3, 5] {
            let what = format!("{trips} iterations in {stages} stages");
            let found = judge.same(&what, &[1], |way| {
                let given = way.given(&x)?;
                let mut out = Buffer::<f32>::zeros(&way.device, BLOCK * (trips + 1))?;
                let kernel = pipelined()
                    .block(BLOCK)
                    .stages(stages)
                    .schedule(way.schedule);
                kernel.run(&way.device, 1, (&given, &mut out, n as i32))?;
                Ok(vec![out.to_array()?])
            })?;
            let mut want = vec![0.0f32; BLOCK * (trips + 1)];
            for (at, &x) in x.iter().enumerate() {
                want[at % BLOCK] += x;
                if (at / BLOCK).is_multiple_of(2) {
                    want[BLOCK + at] = x * 2.0;
                }
            }
            expect(&what, &found[0], &want)?;
        }
    }
    Ok(())
}

#[kernel]
fn extents(out: PtrMut<i32>) {
    let [x, y, z] = [0, 1, 2].map(program_id);
    let [a, b, c] = [0, 1, 2].map(num_programs);
    let place = (z * b + y) * a + x;
    store(out + place, (a * 10000 + b * 100 + c + place).to::<i32>());
}

/// The extents of a grid, and where each program is.
pub(super) fn grids(judge: &mut Judge<'_>) -> Result<()> {
    let [a, b, c] = [11, 21, 5usize];
    let found = judge.same("a grid of three axes", &[1], |way| {
        let mut out = way.room::<i32>(a * b * c)?;
        let kernel = extents().schedule(way.schedule);
        kernel.run(&way.device, (a, b, c), (&mut out,))?;
        Ok(vec![out.to_array()?])
    })?;
    let want = (0..a * b * c).map(|at| (a * 10000 + b * 100 + c + at) as i32);
    expect("a grid of three axes", &found[0], &want.collect::<Vec<_>>())
}

#[kernel]
fn one(out: PtrMut<i32>) {
    store(out, 1);
}

/// On a GPU a buffer of the host, and for GPUs a number of warps that is no power of two, are errors.
pub(super) fn refusals(judge: &mut Judge<'_>) -> Result<()> {
    judge.same("wrong launches", &[1], |way| {
        // The devices of the host share its memory.
        if matches!(way.device.kind(), DeviceKind::Cuda(_)) {
            let mut elsewhere = Buffer::<i32>::zeros(&Device::cpu(), 1)?;
            let refused = one().run(&way.device, 1, (&mut elsewhere,));
            let placed = matches!(refused, Err(Error::Placement { index: 0, .. }));
            ensure(placed, "a wrong device")?;
        }
        let mut here = Buffer::<i32>::zeros(&way.device, 1)?;
        if way.schedule.warps.is_some() {
            let kernel = one().warps(3);
            let refused = kernel.run(&way.device, 1, (&mut here,));
            ensure(refused.is_err(), "three warps")?;
        }
        one().run(&way.device, 1, (&mut here,))?;
        Ok(vec![here.to_array()?])
    })?;
    Ok(())
}
