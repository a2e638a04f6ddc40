//! Functions of single numbers: two types in one kernel, methods beside functions, roundings, remainders, bits.

use exactile::prelude::*;
use exactile::{Comparable, Number, Result};

use super::each;
use super::judge::{Judge, expect};
use super::wide::{Wide, numbers, pair, pairs};

const N: usize = 64;

#[kernel]
fn sizes(x: Ptr<u32>, y: Ptr<i32>, out: PtrMut<u32>, other: PtrMut<i32>) {
    let at = arange(0, N);
    store(out + at, abs(load(x + at)));
    store(other + at, abs(-load(y + at)));
}

/// One function of two types that differ in their sign alone.
pub(super) fn mixed_types(judge: &mut Judge<'_>) -> Result<()> {
    let (x, y) = (numbers::<u32>(N, 31), numbers::<i32>(N, 32));
    let what = "sizes of u32 and of negated i32";
    let found = judge.same(what, &[1], |way| {
        let (a, b) = (way.given(&x)?, way.given(&y)?);
        let (mut out, mut other) = (way.room::<u32>(N)?, way.room::<i32>(N)?);
        let kernel = sizes().schedule(way.schedule);
        kernel.run(&way.device, 1, (&a, &b, &mut out, &mut other))?;
        Ok(vec![out.to_array()?, other.to_array()?])
    })?;
    expect(what, &found[0], &x)?;
    let want: Vec<i32> = y.iter().map(|y| y.wrapping_neg().wrapping_abs()).collect();
    expect(what, &found[1], &want)
}

#[kernel]
fn methods<T: Float>(x: Ptr<T>, out: PtrMut<T>, same: PtrMut<T>, of_one: PtrMut<T>) {
    let at = arange(0, N);
    let x = load(x + at);
    let by_method = [
        x.abs(),
        x.exp(),
        x.exp2(),
        x.log(),
        x.log2(),
        x.cos(),
        x.sin(),
        x.sqrt(),
        x.floor(),
        x.ceil(),
        x.erf(),
    ];
    let by_function = [
        abs(x),
        exp(x),
        exp2(x),
        log(x),
        log2(x),
        cos(x),
        sin(x),
        sqrt(x),
        floor(x),
        ceil(x),
        erf(x),
    ];
    let three = scalar::<f32>(3.0).to::<T>();
    let of_three = [
        exp(three),
        exp2(three),
        log(three),
        log2(three),
        cos(three),
        sin(three),
        sqrt(three),
        floor(three),
        ceil(three),
    ];
    for (place, found) in by_method.into_iter().enumerate() {
        store(out + at + N * place, found);
    }
    for (place, found) in by_function.into_iter().enumerate() {
        store(same + at + N * place, found);
    }
    for (place, found) in of_three.into_iter().enumerate() {
        store(of_one + place, found);
    }
}

/// Methods have the bits of functions, and those of a number are near plain Rust's.
pub(super) fn methods_and_functions(judge: &mut Judge<'_>) -> Result<()> {
    each!(methods_on(judge): f32 f64);
    Ok(())
}

fn methods_on<T: Float + Number>(judge: &mut Judge<'_>) -> Result<()> {
    let x = numbers::<T>(N, 33);
    let what = format!("methods and functions of {}", T::DTYPE);
    let found = judge.same(&what, &[1], |way| {
        let given = way.given(&x)?;
        let (mut out, mut same) = (way.room::<T>(11 * N)?, way.room::<T>(11 * N)?);
        let mut of_one = way.room::<T>(9)?;
        let kernel = methods::<T>().schedule(way.schedule);
        kernel.run(&way.device, 1, (&given, &mut out, &mut same, &mut of_one))?;
        Ok(vec![out.to_array()?, same.to_array()?, of_one.to_array()?])
    })?;
    expect(&what, &found[0], &found[1].to_vec::<T>()?)?;
    let functions: [fn(f64) -> f64; 9] = [
        f64::exp,
        f64::exp2,
        f64::ln,
        f64::log2,
        f64::cos,
        f64::sin,
        f64::sqrt,
        f64::floor,
        f64::ceil,
    ];
    let want: Vec<T> = functions
        .iter()
        .map(|function| Wide::Float(function(3.0)).to())
        .collect();
    super::judge::expect_near(&what, &found[2], &want, 1.2e-7)
}

#[kernel]
fn rounded<T: Float, const COUNT: usize>(x: Ptr<T>, out: PtrMut<T>) {
    let at = arange(0, COUNT);
    let x = load(x + at);
    for (place, found) in [round(x), floor(x), ceil(x), trunc(x)]
        .into_iter()
        .enumerate()
    {
        store(out + at + COUNT * place, found);
    }
}

/// Roundings to integers, halfway between them and where no fraction is left.
pub(super) fn roundings(judge: &mut Judge<'_>) -> Result<()> {
    each!(rounded_on(judge): f16 bf16 f32 f64);
    Ok(())
}

fn rounded_on<T: Float + Number>(judge: &mut Judge<'_>) -> Result<()> {
    const COUNT: usize = 128;
    let halves = (-40..40).map(|at| f64::from(at) * 0.5);
    let powers = [10, 22, 23, 24, 31, 51, 52, 53, 62, 63];
    let large = powers.into_iter().flat_map(|power| {
        let power = 2f64.powi(power);
        [
            power,
            -power,
            power - 0.5,
            power * (1.0 + f64::from(f32::EPSILON)),
        ]
    });
    let special = [f64::INFINITY, -f64::INFINITY, f64::NAN, -0.0];
    let all = halves.chain(large).chain(special).cycle().take(COUNT);
    let x: Vec<T> = all.map(|x| Wide::Float(x).to()).collect();
    let what = format!("roundings of {}", T::DTYPE);
    let found = judge.same(&what, &[1], |way| {
        let (given, mut out) = (way.given(&x)?, way.room::<T>(4 * COUNT)?);
        let kernel = rounded::<T>().count(COUNT).schedule(way.schedule);
        kernel.run(&way.device, 1, (&given, &mut out))?;
        Ok(vec![out.to_array()?])
    })?;
    let functions: [fn(f64) -> f64; 4] = [f64::round_ties_even, f64::floor, f64::ceil, f64::trunc];
    let of = |x: T, function: &fn(f64) -> f64| match Wide::of(x) {
        Wide::Float(x) => Wide::Float(function(x)).to(),
        Wide::Int(_) => x,
    };
    let all = functions
        .iter()
        .flat_map(|f| x.iter().map(move |&x| of(x, f)));
    expect(&what, &found[0], &all.collect::<Vec<T>>())
}

/// Elements of the arrays of remainders: no multiple of a tile.
const MANY: usize = 333;

#[kernel]
fn remainders<T: Float, const BLOCK: usize>(x: Ptr<T>, y: Ptr<T>, out: PtrMut<T>, n: i32) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let mask = at < n;
    let (a, b) = (load(x + at).mask(mask), load(y + at).mask(mask));
    store(out + at, fmod(a, b)).mask(mask);
    store(out + at + n, a % b).mask(mask);
}

/// Remainders of floats with the sign of what is divided.
pub(super) fn remainders_of_floats(judge: &mut Judge<'_>) -> Result<()> {
    each!(remainders_on(judge): F8E4M3 F8E5M2 f16 bf16 f32 f64);
    Ok(())
}

fn remainders_on<T: Float + Number>(judge: &mut Judge<'_>) -> Result<()> {
    let (x, y) = pairs::<T>(MANY);
    let what = format!("remainders of {}", T::DTYPE);
    let found = judge.same(&what, &[64, 128], |way| {
        let (a, b) = (way.given(&x)?, way.given(&y)?);
        let mut out = way.room::<T>(2 * MANY)?;
        let kernel = remainders::<T>().block(way.block).schedule(way.schedule);
        let grid = MANY.div_ceil(way.block);
        kernel.run(&way.device, grid, (&a, &b, &mut out, MANY as i32))?;
        Ok(vec![out.to_array()?])
    })?;
    let of = |(&x, &y): (&T, &T)| pair(Wide::of(x), Wide::of(y), |x, _| x, |x, y| x % y).to();
    let want: Vec<T> = x.iter().zip(&y).map(of).collect();
    expect(&what, &found[0], &want.repeat(2))
}

#[kernel]
fn reread<A: Element, B: Element>(x: Ptr<A>, out: PtrMut<B>, back: PtrMut<A>) {
    let at = arange(0, N);
    let bits = load(x + at).bitcast::<B>();
    store(out + at, bits);
    store(back + at, bits.bitcast::<A>());
}

/// The bits of numbers as other numbers of their width, and back.
pub(super) fn bits(judge: &mut Judge<'_>) -> Result<()> {
    bits_of::<f32, i32>(judge)?;
    bits_of::<f32, u32>(judge)?;
    bits_of::<f64, i64>(judge)?;
    bits_of::<f16, i16>(judge)?;
    bits_of::<bf16, u16>(judge)?;
    bits_of::<F8E4M3, u8>(judge)?;
    bits_of::<F8E5M2, i8>(judge)?;
    bits_of::<i8, u8>(judge)?;
    bits_of::<u16, i16>(judge)?;
    bits_of::<i32, u32>(judge)?;
    bits_of::<u64, i64>(judge)
}

fn bits_of<A: Element + Number, B: Element + Number>(judge: &mut Judge<'_>) -> Result<()> {
    let x = numbers::<A>(N, 34);
    let what = format!("bits of {} as {}", A::DTYPE, B::DTYPE);
    let found = judge.same(&what, &[1], |way| {
        let given = way.given(&x)?;
        let (mut out, mut back) = (way.room::<B>(N)?, way.room::<A>(N)?);
        let kernel = reread::<A, B>().schedule(way.schedule);
        kernel.run(&way.device, 1, (&given, &mut out, &mut back))?;
        Ok(vec![out.to_array()?, back.to_array()?])
    })?;
    let want: Vec<B> = x.iter().map(|x| B::from_bits(x.to_bits())).collect();
    expect(&what, &found[0], &want)?;
    expect(&what, &found[1], &x)
}
