//! Operators and comparisons on every pair of types that has them, and choices.

use exactile::prelude::*;
use exactile::{Array, Comparable, DType, Number, Result};

use super::each;
use super::judge::{Judge, Way, expect};
use super::wide::{Wide, converted, least, most, numbers, pair, pairs};

/// Elements of each array: no multiple of a tile.
const N: usize = 333;
/// Elements of a tile.
const BLOCKS: &[usize] = &[128, 32];

const ARITHMETIC: usize = 9;

#[kernel]
fn arithmetic<T: Numeric, const BLOCK: usize>(
    x: Ptr<T>,
    y: Ptr<T>,
    out: PtrMut<T>,
    flags: PtrMut<bool>,
    n: i32,
) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let mask = at < n;
    let a = load(x + at).mask(mask);
    let b = load(y + at).mask(mask);
    let limit = abs(b);
    let found = [
        a + b,
        a - b,
        a * b,
        a / b,
        minimum(a, b),
        maximum(a, b),
        -a,
        abs(a),
        clamp(a, -limit, limit),
    ];
    for (place, found) in found.into_iter().enumerate() {
        store(out + at + n * place, found).mask(mask);
    }
    let compared = [a < b, a <= b, a > b, a >= b, a == b, a != b];
    for (place, compared) in compared.into_iter().enumerate() {
        store(flags + at + n * place, compared).mask(mask);
    }
}

fn quotient(a: i128, b: i128) -> i128 {
    if b == 0 { -1 } else { a / b }
}

fn arithmetic_of<T: Number>(a: Wide, b: Wide) -> [Wide; ARITHMETIC] {
    let zero = Wide::of(T::default());
    let size = |x: Wide| match x {
        Wide::Int(x) => Wide::Int(x.abs()),
        Wide::Float(x) => Wide::Float(x.abs()),
    };
    // Of the types of memory: the size of the least integer is itself.
    let limit = Wide::of(size(b).to::<T>());
    let low = match limit {
        Wide::Int(limit) => Wide::of(Wide::Int(-limit).to::<T>()),
        Wide::Float(limit) => Wide::Float(-limit),
    };
    let above = pair(a, low, i128::max, most);
    [
        pair(a, b, |a, b| a + b, |a, b| a + b),
        pair(a, b, |a, b| a - b, |a, b| a - b),
        pair(a, b, i128::wrapping_mul, |a, b| a * b),
        pair(a, b, quotient, |a, b| a / b),
        pair(a, b, i128::min, least),
        pair(a, b, i128::max, most),
        pair(zero, a, |_, a| -a, |_, a| -a),
        size(a),
        pair(above, limit, i128::min, least),
    ]
}

fn compared(a: Wide, b: Wide) -> [bool; 6] {
    match (a, b) {
        (Wide::Float(a), Wide::Float(b)) => [a < b, a <= b, a > b, a >= b, a == b, a != b],
        (Wide::Int(a), Wide::Int(b)) => [a < b, a <= b, a > b, a >= b, a == b, a != b],
        (Wide::Int(_), Wide::Float(_)) | (Wide::Float(_), Wide::Int(_)) => [false; 6],
    }
}

/// The results of `count` functions of two numbers, one function after another.
fn table<T: Number, R: Number + Copy, const COUNT: usize>(
    (x, y): &(Vec<T>, Vec<T>),
    functions: impl Fn(Wide, Wide) -> [R; COUNT],
) -> Vec<R> {
    let rows: Vec<[R; COUNT]> = x
        .iter()
        .zip(y)
        .map(|(&a, &b)| functions(Wide::of(a), Wide::of(b)))
        .collect();
    (0..COUNT)
        .flat_map(|function| rows.iter().map(move |row| row[function]))
        .collect()
}

fn programs(way: &Way) -> usize {
    N.div_ceil(way.block)
}

fn arithmetic_on<T: Numeric + Number>(judge: &mut Judge<'_>) -> Result<()> {
    let given = pairs::<T>(N);
    let what = format!("arithmetic and comparisons of {}", T::DTYPE);
    let found = judge.same(&what, BLOCKS, |way| {
        let (x, y) = (way.given(&given.0)?, way.given(&given.1)?);
        let mut out = way.room::<T>(N * ARITHMETIC)?;
        let mut flags = Buffer::<bool>::zeros(&way.device, N * 6)?;
        let kernel = arithmetic::<T>().block(way.block).schedule(way.schedule);
        let arguments = (&x, &y, &mut out, &mut flags, N as i32);
        kernel.run(&way.device, programs(way), arguments)?;
        Ok(vec![out.to_array()?, flags.to_array()?])
    })?;
    let want = table(&given, |a, b| arithmetic_of::<T>(a, b).map(Wide::to::<T>));
    expect(&what, &found[0], &want)?;
    expect(&what, &found[1], &table(&given, compared))
}

/// `+ - * /`, extrema, `-x`, sizes, limits and comparisons of all numbers.
pub(super) fn all_numbers(judge: &mut Judge<'_>) -> Result<()> {
    each!(arithmetic_on(judge): i8 i16 i32 i64 u8 u16 u32 u64 F8E4M3 F8E5M2 f16 bf16 f32 f64);
    Ok(())
}

const BITWISE: usize = 9;

#[kernel]
fn integers<T: Int, const BLOCK: usize>(x: Ptr<T>, y: Ptr<T>, out: PtrMut<T>, n: i32) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let mask = at < n;
    let a = load(x + at).mask(mask);
    let b = load(y + at).mask(mask);
    let high = mulhi(a, b);
    let found = [a % b, a & b, a | b, a ^ b, a << b, a >> b, !a, high, b];
    for (place, found) in found.into_iter().enumerate() {
        store(out + at + n * place, found).mask(mask);
    }
}

fn integers_of<T: Number>(a: Wide, b: Wide) -> [Wide; BITWISE] {
    let bits = T::DTYPE.bits() as i128;
    let amount = |b: i128| (b & ((1 << bits) - 1)).min(127) as u32;
    let none = |a: f64, _: f64| a;
    let high = |a: i128, b: i128| match a >= 0 && b >= 0 {
        true => ((a.unsigned_abs() * b.unsigned_abs()) >> bits) as i128,
        false => (a * b) >> bits,
    };
    let left = |a: i128, b: i128| {
        if i128::from(amount(b)) < bits {
            a << amount(b)
        } else {
            0
        }
    };
    [
        pair(a, b, |a, b| if b == 0 { a } else { a % b }, none),
        pair(a, b, |a, b| a & b, none),
        pair(a, b, |a, b| a | b, none),
        pair(a, b, |a, b| a ^ b, none),
        pair(a, b, left, none),
        pair(a, b, |a, b| a >> amount(b), none),
        pair(a, b, |a, _| !a, none),
        pair(a, b, high, none),
        // A shift leaves its amount as it was.
        b,
    ]
}

fn integers_on<T: Int + Number>(judge: &mut Judge<'_>) -> Result<()> {
    let given = pairs::<T>(N);
    let what = format!("integer operators of {}", T::DTYPE);
    let found = judge.same(&what, BLOCKS, |way| {
        let (x, y) = (way.given(&given.0)?, way.given(&given.1)?);
        let mut out = way.room::<T>(N * BITWISE)?;
        let kernel = integers::<T>().block(way.block).schedule(way.schedule);
        let arguments = (&x, &y, &mut out, N as i32);
        kernel.run(&way.device, programs(way), arguments)?;
        Ok(vec![out.to_array()?])
    })?;
    let want = table(&given, |a, b| integers_of::<T>(a, b).map(Wide::to::<T>));
    expect(&what, &found[0], &want)
}

/// `% & | ^ << >> !` and the upper half of products.
pub(super) fn all_integers(judge: &mut Judge<'_>) -> Result<()> {
    each!(integers_on(judge): i8 i16 i32 i64 u8 u16 u32 u64);
    Ok(())
}

const FLOATS: usize = 8;

#[kernel]
fn floats<T: Float, const BLOCK: usize>(x: Ptr<T>, y: Ptr<T>, out: PtrMut<T>, n: i32) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let mask = at < n;
    let a = load(x + at).mask(mask);
    let b = load(y + at).mask(mask);
    let found = [
        minnum(a, b),
        maxnum(a, b),
        sqrt(a),
        floor(a),
        ceil(a),
        trunc(a),
        round(a),
        fma(a, b, a),
    ];
    for (place, found) in found.into_iter().enumerate() {
        store(out + at + n * place, found).mask(mask);
    }
}

fn floats_of<T: Number>(a: Wide, b: Wide) -> [Wide; FLOATS] {
    let unless = |a: f64, b: f64, both: fn(f64, f64) -> f64| match (a.is_nan(), b.is_nan()) {
        (true, _) => b,
        (_, true) => a,
        (false, false) => both(a, b),
    };
    let none = |a: i128, _: i128| a;
    let fused = |a: f64, b: f64| {
        if T::DTYPE == DType::F64 {
            return a.mul_add(b, a);
        }
        f64::from((a as f32).mul_add(b as f32, a as f32))
    };
    [
        pair(a, b, none, |a, b| unless(a, b, least)),
        pair(a, b, none, |a, b| unless(a, b, most)),
        pair(a, b, none, |a, _| a.sqrt()),
        pair(a, b, none, |a, _| a.floor()),
        pair(a, b, none, |a, _| a.ceil()),
        pair(a, b, none, |a, _| a.trunc()),
        pair(a, b, none, |a, _| a.round_ties_even()),
        pair(a, b, none, fused),
    ]
}

fn floats_on<T: Float + Number>(judge: &mut Judge<'_>) -> Result<()> {
    let given = pairs::<T>(N);
    let what = format!("float operators of {}", T::DTYPE);
    let found = judge.same(&what, BLOCKS, |way| {
        let (x, y) = (way.given(&given.0)?, way.given(&given.1)?);
        let mut out = way.room::<T>(N * FLOATS)?;
        let kernel = floats::<T>().block(way.block).schedule(way.schedule);
        let arguments = (&x, &y, &mut out, N as i32);
        kernel.run(&way.device, programs(way), arguments)?;
        Ok(vec![out.to_array()?])
    })?;
    let want = table(&given, |a, b| floats_of::<T>(a, b).map(Wide::to::<T>));
    expect(&what, &found[0], &want)
}

/// Extrema that ignore NaN, roots, roundings and fused multiply-adds.
pub(super) fn all_floats(judge: &mut Judge<'_>) -> Result<()> {
    each!(floats_on(judge): F8E4M3 F8E5M2 f16 bf16 f32 f64);
    Ok(())
}

#[kernel]
fn choose<T: Element, const BLOCK: usize>(
    condition: Ptr<bool>,
    x: Ptr<T>,
    y: Ptr<T>,
    out: PtrMut<T>,
    n: i32,
) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let mask = at < n;
    let chosen = load(condition + at).mask(mask);
    let (a, b) = (load(x + at).mask(mask), load(y + at).mask(mask));
    store(out + at, select(chosen, a, b)).mask(mask);
    let first = load(condition).to::<bool>();
    store(out + at + n, select(first, a, b)).mask(mask);
    let rows = load(condition + arange(0, 4)).expand(1);
    let [a, b] = [x, y].map(|p| load(p + arange(0, 4)).expand(0));
    let square = select(rows, a, b);
    let place = arange(0, 4).expand(1) * 4 + arange(0, 4).expand(0);
    if program_id(0) == 0 {
        store(out + 2 * n + place, square);
    }
}

fn choose_on<T: Element + Number>(judge: &mut Judge<'_>) -> Result<()> {
    let (x, y) = pairs::<T>(N);
    let condition: Vec<bool> = (0..N).map(|at| at % 3 == 1).collect();
    let what = format!("choices of {}", T::DTYPE);
    let found = judge.same(&what, BLOCKS, |way| {
        let (x, y) = (way.given(&x)?, way.given(&y)?);
        let condition = way.given(&condition)?;
        let mut out = way.room::<T>(2 * N + 16)?;
        let kernel = choose::<T>().block(way.block).schedule(way.schedule);
        let arguments = (&condition, &x, &y, &mut out, N as i32);
        kernel.run(&way.device, programs(way), arguments)?;
        Ok(vec![out.to_array()?])
    })?;
    let mut want: Vec<T> = (0..N)
        .map(|at| if condition[at] { x[at] } else { y[at] })
        .collect();
    want.extend(&y);
    want.extend((0..16).map(|at| {
        if condition[at / 4] {
            x[at % 4]
        } else {
            y[at % 4]
        }
    }));
    expect(&what, &found[0], &want)
}

/// `select` by tiles and scalars, with broadcasts.
pub(super) fn choices(judge: &mut Judge<'_>) -> Result<()> {
    each!(choose_on(judge): bool i8 i16 i32 i64 u8 u16 u32 u64 F8E4M3 F8E5M2 f16 bf16 f32 f64);
    Ok(())
}

#[kernel]
fn literals(x: Ptr<i32>, y: Ptr<f32>, out: PtrMut<i32>, reals: PtrMut<f32>) {
    let at = arange(0, 64);
    let (a, b) = (load(x + at), load(y + at));
    let (one, real) = (load(x), load(y));
    let found = [
        a & 6,
        6 | a,
        a ^ 6,
        1 << (a & 7),
        a >> 2,
        a % 7,
        one + a,
        a - one,
        9 - a,
    ];
    for (place, found) in found.into_iter().enumerate() {
        store(out + at + 64 * place, found);
    }
    let found = [b + 1.5, 1.5 - b, b * 2.0, 1.0 / b, real * b, b / real];
    for (place, found) in found.into_iter().enumerate() {
        store(reals + at + 64 * place, found);
    }
}

/// Numbers of the host and loaded scalars on either side of an operator.
pub(super) fn operands(judge: &mut Judge<'_>) -> Result<()> {
    let x = numbers::<i32>(64, 3);
    let y = numbers::<f32>(64, 4);
    let found = judge.same("literals and scalars as operands", &[1], |way| {
        let (x, y) = (way.given(&x)?, way.given(&y)?);
        let (mut out, mut reals) = (way.room::<i32>(64 * 9)?, way.room::<f32>(64 * 6)?);
        let kernel = literals().schedule(way.schedule);
        kernel.run(&way.device, 1, (&x, &y, &mut out, &mut reals))?;
        Ok(vec![out.to_array()?, reals.to_array()?])
    })?;
    let functions: [fn(i32, i32) -> i32; 9] = [
        |a, _| a & 6,
        |a, _| 6 | a,
        |a, _| a ^ 6,
        |a, _| 1 << (a & 7),
        |a, _| a >> 2,
        |a, _| a % 7,
        |a, one| one.wrapping_add(a),
        |a, one| a.wrapping_sub(one),
        |a, _| 9i32.wrapping_sub(a),
    ];
    let all = |f: &fn(i32, i32) -> i32| x.iter().map(|&a| f(a, x[0])).collect::<Vec<_>>();
    let want: Vec<i32> = functions.iter().flat_map(all).collect();
    expect("literals beside integers", &found[0], &want)?;
    let functions: [fn(f32, f32) -> f32; 6] = [
        |b, _| b + 1.5,
        |b, _| 1.5 - b,
        |b, _| b * 2.0,
        |b, _| 1.0 / b,
        |b, real| real * b,
        |b, real| b / real,
    ];
    let all = |f: &fn(f32, f32) -> f32| y.iter().map(|&b| f(b, y[0])).collect::<Vec<_>>();
    let want: Vec<f32> = functions.iter().flat_map(all).collect();
    expect("literals beside floats", &found[1], &want)
}

macro_rules! casts {
    ($($name:ident $T:ident)*) => {
        /// A type to all others.
        #[kernel]
        fn cast<A: Element, const BLOCK: usize>(x: Ptr<A>, $($name: PtrMut<$T>,)* n: i32) {
            let at = program_id(0) * BLOCK + arange(0, BLOCK);
            let mask = at < n;
            let a = load(x + at).mask(mask).to::<A>();
            $(store($name + at, a.to::<$T>()).mask(mask);)*
        }

        fn cast_from<A: Element + Number>(judge: &mut Judge<'_>) -> Result<()> {
            let x = numbers::<A>(N, 5);
            let what = format!("casts from {}", A::DTYPE);
            let found = judge.same(&what, BLOCKS, |way| {
                let given = way.given(&x)?;
                $(let mut $name = Buffer::<$T>::zeros(&way.device, N)?;)*
                let kernel = cast::<A>().block(way.block).schedule(way.schedule);
                let arguments = (&given, $(&mut $name,)* N as i32);
                kernel.run(&way.device, programs(way), arguments)?;
                Ok(vec![$($name.to_array()?),*])
            })?;
            let mut found = found.iter();
            $(expect_next::<A, $T>(&what, &mut found, &x)?;)*
            Ok(())
        }
    };
}
casts! {
    to_bool bool to_i8 i8 to_i16 i16 to_i32 i32 to_i64 i64 to_u8 u8 to_u16 u16 to_u32 u32 to_u64 u64
    to_e4m3 F8E4M3 to_e5m2 F8E5M2 to_f16 f16 to_bf16 bf16 to_f32 f32 to_f64 f64
}

fn expect_next<'a, A: Number, T: Number>(
    what: &str,
    found: &mut impl Iterator<Item = &'a Array>,
    x: &[A],
) -> Result<()> {
    let what = format!("{what} to {}", T::DTYPE);
    match found.next() {
        Some(found) => expect(&what, found, &converted::<A, T>(x)),
        None => super::judge::ensure(false, &what),
    }
}

/// Every type to every other one.
pub(super) fn casts(judge: &mut Judge<'_>) -> Result<()> {
    each!(cast_from(judge): bool i8 i16 i32 i64 u8 u16 u32 u64 F8E4M3 F8E5M2 f16 bf16 f32 f64);
    Ok(())
}

#[kernel]
fn widen<A: Float, const BLOCK: usize>(
    x: Ptr<A>,
    out: PtrMut<f32>,
    halves: PtrMut<f16>,
    brains: PtrMut<bf16>,
    sizes: PtrMut<A>,
) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let x = load(x + at);
    store(out + at, x.to::<f32>());
    store(halves + at, x.to::<f16>());
    store(brains + at, x.to::<bf16>());
    store(sizes + at, abs(x));
}

fn widen_from<A: Float + Number>(judge: &mut Judge<'_>) -> Result<()> {
    let codes = 1u64 << A::DTYPE.bits();
    let x: Vec<A> = (0..codes).map(A::from_bits).collect();
    let len = x.len();
    let what = format!("every code of {} in wider floats, and its size", A::DTYPE);
    let found = judge.same(&what, &[256, 128], |way| {
        let given = way.given(&x)?;
        let (mut out, mut sizes) = (way.room::<f32>(len)?, way.room::<A>(len)?);
        let (mut halves, mut brains) = (way.room::<f16>(len)?, way.room::<bf16>(len)?);
        let kernel = widen::<A>().block(way.block).schedule(way.schedule);
        let arguments = (&given, &mut out, &mut halves, &mut brains, &mut sizes);
        kernel.run(&way.device, len / way.block, arguments)?;
        Ok(vec![
            out.to_array()?,
            halves.to_array()?,
            brains.to_array()?,
            sizes.to_array()?,
        ])
    })?;
    expect(&what, &found[0], &converted::<A, f32>(&x))?;
    expect(&what, &found[1], &converted::<A, f16>(&x))?;
    expect(&what, &found[2], &converted::<A, bf16>(&x))?;
    let size = |&x: &A| pair(Wide::of(x), Wide::of(x), |x, _| x, |x, _| x.abs()).to();
    expect(&what, &found[3], &x.iter().map(size).collect::<Vec<A>>())
}

/// Every code of the narrow floats.
pub(super) fn codes(judge: &mut Judge<'_>) -> Result<()> {
    each!(widen_from(judge): F8E4M3 F8E5M2 f16 bf16);
    Ok(())
}
