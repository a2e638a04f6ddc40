//! Matrix products, sorts, functions and random numbers.

use exactile::prelude::*;
use exactile::{Comparable, DType, Number, Result};

use super::each;
use super::judge::{Judge, ensure, expect, expect_near};
use super::wide::{Wide, modest, numbers};

/// `FORM` is what follows the product: nothing, a matrix, a row, a column, or a transposition. `USUAL` takes what `dot` takes by itself,
/// else it is the chain.
#[kernel]
fn product<
    T: Numeric,
    A: Numeric,
    const M: usize,
    const N: usize,
    const K: usize,
    const FORM: usize,
    const USUAL: bool,
>(
    a: Tensor<T, 2>,
    b: Tensor<T, 2>,
    z: Tensor<A, 2>,
    out: TensorMut<A, 2>,
) {
    let left = a.tile([M, K]).at((0, 0)).load();
    let right = b.tile([K, N]).at((0, 0)).load();
    let found = match USUAL {
        true => dot(left, right, zeros::<A>([M, N])),
        false => dot_with(Precision::Ieee, left, right, zeros::<A>([M, N])),
    };
    let whole = z.tile([M, N]).at((0, 0)).load();
    let found = match FORM {
        0 => found,
        1 => found + whole,
        2 => found + whole.row(0).expand(0),
        4 => found.transpose(),
        _ => found + whole.pick(1, 0).expand(1),
    };
    out.tile([M, N]).at((0, 0)).store(found);
}

/// The chain of fused multiply-adds over ascending k, or of integers.
fn chain<T: Number, A: Number>(a: &[T], b: &[T], [m, n, k]: [usize; 3]) -> Vec<A> {
    let mut out = Vec::new();
    for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
        let term = |at: usize| (Wide::of(a[row * k + at]), Wide::of(b[at * n + column]));
        let sum = (0..k).fold(Wide::of(A::default()), |sum, at| match (sum, term(at)) {
            (Wide::Float(sum), (Wide::Float(a), Wide::Float(b))) if A::DTYPE.bits() == 64 => {
                Wide::Float(a.mul_add(b, sum))
            }
            (Wide::Float(sum), (Wide::Float(a), Wide::Float(b))) => {
                Wide::Float(f64::from((a as f32).mul_add(b as f32, sum as f32)))
            }
            (Wide::Int(sum), (Wide::Int(a), Wide::Int(b))) => Wide::Int(sum + a * b),
            (sum, _) => sum,
        });
        out.push(sum.to());
    }
    out
}

fn product_of<T: Numeric + Number, A: Numeric + Number>(
    judge: &mut Judge<'_>,
    usual: bool,
    shapes: &[[usize; 3]],
) -> Result<()> {
    for (form, &[m, n, k]) in shapes.iter().enumerate() {
        let form = form % 5;
        let (a, b) = (modest::<T>(m * k, 1), modest::<T>(k * n, 2));
        let z = modest::<A>(m * n, 3);
        let what = format!(
            "{m} x {n} x {k} of {} in {}, form {form}, usual: {usual}",
            T::DTYPE,
            A::DTYPE
        );
        let found = judge.same(&what, &[1], |way| {
            let (a, b, z) = (way.given(&a)?, way.given(&b)?, way.given(&z)?);
            let mut out = way.room::<A>(m * n)?;
            let kernel = product::<T, A>()
                .m(m)
                .n(n)
                .k(k)
                .form(form)
                .usual(usual)
                .schedule(way.schedule);
            // The second operand lies the other way round in memory every other time.
            let strides = if form % 2 == 1 { [1, k] } else { [n, 1] };
            let views = (
                a.view_strided([m, k], if form == 4 { [1, m] } else { [k, 1] })?,
                b.view_strided([k, n], strides)?,
                z.view([m, n])?,
                out.view_mut([m, n])?,
            );
            kernel.run(&way.device, 1, views)?;
            Ok(vec![out.to_array()?])
        })?;
        let turned: Vec<T> = (0..k * n).map(|at| b[at % n * k + at / n]).collect();
        let b = if form % 2 == 1 { turned } else { b };
        let turned: Vec<T> = (0..m * k).map(|at| a[at % k * m + at / k]).collect();
        let a = if form == 4 { turned } else { a };
        let added = |at: usize| match form {
            0 | 4 => Wide::of(A::default()),
            1 => Wide::of(z[at]),
            2 => Wide::of(z[at % n]),
            _ => Wide::of(z[at / n * n]),
        };
        let sums = chain::<T, A>(&a, &b, [m, n, k]);
        let sum = |(at, sum): (usize, &A)| {
            super::wide::pair(Wide::of(*sum), added(at), |a, b| a + b, |a, b| a + b).to()
        };
        let want: Vec<A> = sums.iter().enumerate().map(sum).collect();
        let want = match form {
            4 => (0..m * n).map(|at| want[at % m * n + at / m]).collect(),
            _ => want,
        };
        // Tensor cores cut toward zero what a chain rounds.
        match usual {
            true => expect_near(&what, &found[0], &want, k as f64 * 2.0_f64.powi(-22))?,
            false => expect(&what, &found[0], &want)?,
        }
    }
    Ok(())
}

const SQUARES: &[[usize; 3]] = &[
    [16, 16, 16],
    [32, 32, 32],
    [16, 16, 16],
    [32, 16, 64],
    [32, 32, 16],
    [64, 64, 64],
];

/// Chains of products in every type, with what is added behind.
pub(super) fn products(judge: &mut Judge<'_>) -> Result<()> {
    product_of::<f32, f32>(judge, false, SQUARES)?;
    let wide = [
        [8, 8, 4],
        [8, 8, 16],
        [16, 8, 4],
        [32, 32, 32],
        [16, 16, 16],
        [64, 16, 16],
    ];
    product_of::<f64, f64>(judge, false, &wide)?;
    for usual in [false, true] {
        let halves = [[2, 4, 32], [64, 8, 16], [32, 32, 32], [32, 32, 32]];
        product_of::<f16, f32>(judge, usual, &halves)?;
        product_of::<bf16, f32>(judge, usual, SQUARES)?;
    }
    product_of::<F8E5M2, f32>(judge, false, &[[1, 2, 32], [16, 16, 32]])?;
    product_of::<F8E4M3, f32>(judge, false, &[[16, 16, 32], [16, 16, 32]])?;
    product_of::<i8, i32>(judge, false, SQUARES)
}

#[kernel]
fn sorted<T: Numeric, const M: usize, const N: usize, const K: usize>(
    x: Ptr<T>,
    out: PtrMut<T>,
    chosen: PtrMut<T>,
    places: PtrMut<i64>,
) {
    let at = arange(0, M).expand(1) * N + arange(0, N).expand(0);
    let tile = load(x + at);
    store(out + at, tile.sort(1));
    store(out + M * N + at, tile.sort_descending(1));
    store(places + at, tile.argsort(1));
    let few = arange(0, M).expand(1) * K + arange(0, K).expand(0);
    store(chosen + few, tile.topk(K, 1));
    store(chosen + M * K + few, tile.bottomk(K, 1));
}

/// The order of sorts: NaN last, -0 before +0.
fn before<T: Number>(a: &T, b: &T) -> std::cmp::Ordering {
    match (Wide::of(*a), Wide::of(*b)) {
        (Wide::Int(a), Wide::Int(b)) => a.cmp(&b),
        (Wide::Float(a), Wide::Float(b)) => match (a.is_nan(), b.is_nan()) {
            (false, false) => a.total_cmp(&b),
            (a, b) => a.cmp(&b),
        },
        (Wide::Int(_), Wide::Float(_)) | (Wide::Float(_), Wide::Int(_)) => {
            std::cmp::Ordering::Equal
        }
    }
}

fn sorted_on<T: Numeric + Number>(judge: &mut Judge<'_>) -> Result<()> {
    for [m, n, k] in [
        [1, 1, 1],
        [1, 512, 8],
        [8, 64, 8],
        [64, 8, 1],
        [256, 16, 8],
        [512, 8, 8],
    ] {
        let x = numbers::<T>(m * n, 7);
        let what = format!("sorts of {m} x {n} {}", T::DTYPE);
        let found = judge.same(&what, &[1], |way| {
            let given = way.given(&x)?;
            let (mut out, mut chosen) = (way.room::<T>(2 * m * n)?, way.room::<T>(2 * m * k)?);
            let mut places = way.room::<i64>(m * n)?;
            let kernel = sorted::<T>().m(m).n(n).k(k).schedule(way.schedule);
            let arguments = (&given, &mut out, &mut chosen, &mut places);
            kernel.run(&way.device, 1, arguments)?;
            Ok(vec![
                out.to_array()?,
                chosen.to_array()?,
                places.to_array()?,
            ])
        })?;
        let [mut up, mut down, mut most, mut least] = [(); 4].map(|()| Vec::<T>::new());
        let mut places = Vec::new();
        for row in x.chunks(n) {
            let mut order: Vec<usize> = (0..n).collect();
            order.sort_by(|&a, &b| before(&row[a], &row[b]));
            places.extend(order.iter().map(|&at| at as i64));
            let rising: Vec<T> = order.iter().map(|&at| row[at]).collect();
            least.extend(&rising[..k]);
            most.extend(rising.iter().rev().take(k));
            down.extend(rising.iter().rev());
            up.extend(rising);
        }
        expect(&what, &found[0], &[up, down].concat())?;
        expect(&what, &found[1], &[most, least].concat())?;
        expect(&what, &found[2], &places)?;
    }
    Ok(())
}

/// Sorts both ways, with places, and the greatest and least elements.
pub(super) fn sorts(judge: &mut Judge<'_>) -> Result<()> {
    each!(sorted_on(judge): i32 u8 f16 bf16 f32);
    Ok(())
}

#[kernel]
fn functions<T: Float, const BLOCK: usize>(x: Ptr<T>, out: PtrMut<T>, n: i32) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let mask = at < n;
    let x = load(x + at).mask(mask);
    let found = [
        exp(x),
        exp2(x),
        log(x),
        log2(x),
        sqrt(x),
        rsqrt(x),
        tanh(x),
        round(x),
        erf(x),
    ];
    for (place, found) in found.into_iter().enumerate() {
        store(out + at + n * place, found).mask(mask);
    }
}

#[kernel]
fn single_functions<const BLOCK: usize>(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let mask = at < n;
    let x = load(x + at).mask(mask);
    let found = [
        x.sin(),
        x.cos(),
        x.tan(),
        x.atan(),
        x.sinh(),
        x.cosh(),
        x.asinh(),
        x.cbrt(),
    ];
    for (place, found) in found.into_iter().enumerate() {
        store(out + at + n * place, found).mask(mask);
    }
}

const SPECIAL: usize = 300;

/// What the kernel's functions are in plain Rust, but for `erf`, which it lacks.
const FUNCTIONS: [fn(f64) -> f64; 8] = [
    f64::exp,
    f64::exp2,
    f64::ln,
    f64::log2,
    f64::sqrt,
    |x| 1.0 / x.sqrt(),
    f64::tanh,
    f64::round_ties_even,
];

fn functions_on<T: Float + Number>(judge: &mut Judge<'_>) -> Result<()> {
    let x = numbers::<T>(SPECIAL, 8);
    let what = format!("functions of {}", T::DTYPE);
    let found = judge.same(&what, &[64, 128], |way| {
        let given = way.given(&x)?;
        let mut out = way.room::<T>(9 * SPECIAL)?;
        let kernel = functions::<T>().block(way.block).schedule(way.schedule);
        let grid = SPECIAL.div_ceil(way.block);
        kernel.run(&way.device, grid, (&given, &mut out, SPECIAL as i32))?;
        Ok(vec![out.to_array()?])
    })?;
    // A unit in the last place, and the least number above zero.
    let bounds = [
        (DType::F64, 3e-16, 5e-324),
        (DType::F32, 1.3e-7, 1.5e-45),
        (DType::F16, 1e-3, 6e-8),
        (DType::BF16, 8e-3, 1e-40),
    ];
    let bound = bounds.iter().find(|(dtype, ..)| *dtype == T::DTYPE);
    let &(_, relative, least) = bound.expect("a float of this check");
    let got: Vec<T> = found[0].to_vec()?;
    for (place, function) in FUNCTIONS.iter().enumerate() {
        for (at, &x) in x.iter().enumerate() {
            let got = Wide::of(got[place * SPECIAL + at]);
            let (Wide::Float(x), Wide::Float(got)) = (Wide::of(x), got) else {
                continue;
            };
            let Wide::Float(want) = Wide::of(Wide::Float(function(x)).to::<T>()) else {
                continue;
            };
            let near = (got - want).abs() <= relative * want.abs() + least;
            let alike = got == want || got.is_nan() && want.is_nan();
            ensure(
                near || alike,
                &format!("{what}: {place} of {x} is {got}, not {want}"),
            )?;
        }
    }
    Ok(())
}

/// The functions of the maths library, beside plain Rust's.
pub(super) fn maths(judge: &mut Judge<'_>) -> Result<()> {
    each!(functions_on(judge): f16 bf16 f32 f64);
    let x = modest::<f32>(SPECIAL, 9);
    let what = "trigonometric and hyperbolic functions of f32";
    let found = judge.same(what, &[64, 128], |way| {
        let given = way.given(&x)?;
        let mut out = way.room::<f32>(8 * SPECIAL)?;
        let kernel = single_functions().block(way.block).schedule(way.schedule);
        let grid = SPECIAL.div_ceil(way.block);
        kernel.run(&way.device, grid, (&given, &mut out, SPECIAL as i32))?;
        Ok(vec![out.to_array()?])
    })?;
    let all: [fn(f64) -> f64; 8] = [
        f64::sin,
        f64::cos,
        f64::tan,
        f64::atan,
        f64::sinh,
        f64::cosh,
        f64::asinh,
        f64::cbrt,
    ];
    let want: Vec<f32> = all
        .iter()
        .flat_map(|f| x.iter().map(move |&x| f(f64::from(x)) as f32))
        .collect();
    expect_near(what, &found[0], &want, 3e-7)
}

#[kernel]
fn drawn<const BLOCK: usize>(
    words: PtrMut<u32>,
    flat: PtrMut<f32>,
    normal: PtrMut<f32>,
    seed: u64,
    first: i64,
) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    store(words + at, randint(seed, at + first));
    store(flat + at, rand(seed, at + first));
    store(normal + at, randn(seed, at + first));
}

/// The four words of Philox 4x32-10 for a seed and an offset, by the paper (Salmon et al., "Parallel random numbers: as
/// easy as 1, 2, 3", 2011).
pub fn philox(seed: u64, offset: u64) -> [u32; 4] {
    let mut key = [seed as u32, (seed >> 32) as u32];
    let mut next = [offset as u32, (offset >> 32) as u32, 0, 0];
    for _ in 0..10 {
        let first = u64::from(next[0]) * 0xd251_1f53;
        let third = u64::from(next[2]) * 0xcd9e_8d57;
        next = [
            (third >> 32) as u32 ^ next[1] ^ key[0],
            third as u32,
            (first >> 32) as u32 ^ next[3] ^ key[1],
            first as u32,
        ];
        key = [
            key[0].wrapping_add(0x9e37_79b9),
            key[1].wrapping_add(0xbb67_ae85),
        ];
    }
    next
}

/// Random words by seed and offset, and what the numbers made of them are like.
pub(super) fn randoms(judge: &mut Judge<'_>) -> Result<()> {
    const COUNT: usize = 2048;
    let seeds = [0, 42, 124, 54, 0xffff_ffff, 67_830_198_458];
    for (seed, first) in seeds
        .into_iter()
        .zip([0, 0, 1 << 33, -3, i64::MAX - 5000, i64::MIN])
    {
        let what = format!("random numbers of seed {seed} from {first}");
        let found = judge.same(&what, &[128, 256], |way| {
            let mut words = way.room::<u32>(COUNT)?;
            let (mut flat, mut normal) = (way.room::<f32>(COUNT)?, way.room::<f32>(COUNT)?);
            let kernel = drawn().block(way.block).schedule(way.schedule);
            let arguments = (&mut words, &mut flat, &mut normal, seed, first);
            kernel.run(&way.device, COUNT / way.block, arguments)?;
            Ok(vec![
                words.to_array()?,
                flat.to_array()?,
                normal.to_array()?,
            ])
        })?;
        let offset = |at: usize| first.wrapping_add(at as i64).cast_unsigned();
        let want: Vec<u32> = (0..COUNT).map(|at| philox(seed, offset(at))[0]).collect();
        expect(&what, &found[0], &want)?;
        let flat: Vec<f32> = found[1].to_vec()?;
        ensure(flat.iter().all(|x| (0.0..1.0).contains(x)), &what)?;
        let mean = |x: &[f32]| x.iter().map(|&x| f64::from(x)).sum::<f64>() / COUNT as f64;
        ensure((mean(&flat) - 0.5).abs() < 0.03, &what)?;
        let mut rising = flat.clone();
        rising.sort_by(f32::total_cmp);
        let off = |(at, &x): (usize, &f32)| (f64::from(x) - at as f64 / COUNT as f64).abs();
        let worst = rising.iter().enumerate().map(off).fold(0.0, f64::max);
        ensure(
            worst < 0.05,
            &format!("{what}: {worst} off an equal distribution"),
        )?;
        let normal: Vec<f32> = found[2].to_vec()?;
        let squares: Vec<f32> = normal.iter().map(|x| x * x).collect();
        ensure(
            mean(&normal).abs() < 0.1 && (mean(&squares) - 1.0).abs() < 0.15,
            &what,
        )?;
    }
    limits(judge)
}

#[kernel]
fn made_floats(x: Ptr<u32>, out: PtrMut<f32>) {
    let at = arange(0, 8);
    store(out + at, word_to_uniform(load(x + at)));
}

/// Words beside each other in their signed order, the extreme ones among them, as floats from 0 to below 1.
fn limits(judge: &mut Judge<'_>) -> Result<()> {
    let half = 1u32 << 31;
    let words = [
        0,
        1,
        half - 2,
        half - 1,
        half,
        half + 1,
        u32::MAX - 1,
        u32::MAX,
    ];
    let what = "extreme words as floats below 1";
    let found = judge.same(what, &[1], |way| {
        let (given, mut out) = (way.given(&words)?, way.room::<f32>(8)?);
        let kernel = made_floats().schedule(way.schedule);
        kernel.run(&way.device, 1, (&given, &mut out))?;
        Ok(vec![out.to_array()?])
    })?;
    let floats: Vec<f32> = found[0].to_vec()?;
    ensure(floats.iter().all(|x| (0.0..1.0).contains(x)), what)?;
    ensure(floats[0] == 0.0 && floats[7] == 0.0, what)?;
    let nearly = 1.0 - f32::EPSILON;
    ensure(floats[3] == floats[4] && floats[3] >= nearly, what)
}
