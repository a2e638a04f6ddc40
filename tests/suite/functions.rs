//! Functions of numbers that the language composes, beside plain Rust and values of known accuracy.

use exactile::prelude::*;
use exactile_core::ir::Function;
use exactile_core::random::Random;
use exactile_core::semantics::oracle::reference;
use half::f16;

use super::language::{devices, upload};

const COUNT: usize = 1024;

#[kernel]
fn classes<T: Float>(
    x: Ptr<T>,
    flags: PtrMut<bool>,
    exponents: PtrMut<i32>,
    out: PtrMut<T>,
    n: i32,
) {
    let at = arange(0, COUNT);
    let x = load(x + at);
    let rows = [is_nan(x), is_infinite(x), is_finite(x), sign_bit(x)];
    for (row, found) in rows.into_iter().enumerate() {
        store(flags + row * COUNT + at, found);
    }
    store(exponents + at, ilogb(x));
    let rows = [
        logb(x),
        saturate(x),
        fdim(x, 0.75),
        ldexp(x, n),
        ldexp(x, (at % 64 - 32).to::<i32>()),
    ];
    for (row, found) in rows.into_iter().enumerate() {
        store(out + row * COUNT + at, found);
    }
}

fn exponent(x: f64) -> i32 {
    match x.abs() {
        0.0 => i32::MIN,
        x if x.is_nan() => i32::MIN,
        f64::INFINITY => i32::MAX,
        x => {
            let scaled = if x < f64::MIN_POSITIVE {
                x * 2f64.powi(54)
            } else {
                x
            };
            let shift = if x < f64::MIN_POSITIVE { 54 } else { 0 };
            (scaled.to_bits() >> 52) as i32 - 1023 - shift
        }
    }
}

macro_rules! classes_of {
    ($($name:ident $T:ty: $numbers:expr;)*) => { $(
        #[test]
        fn $name() {
            let x: Vec<$T> = $numbers;
            for (device, n) in devices().into_iter().zip([9, -17, 9]).chain(devices().into_iter().zip([-17, 9, -17])) {
                let input = upload(&device, &x);
                let mut flags = Buffer::<bool>::zeros(&device, 4 * COUNT).expect("fits");
                let mut exponents = Buffer::<i32>::zeros(&device, COUNT).expect("fits");
                let mut out = Buffer::<$T>::zeros(&device, 5 * COUNT).expect("fits");
                classes::<$T>()
                    .run(&device, 1, (&input, &mut flags, &mut exponents, &mut out, n))
                    .expect("runs");
                let flags = flags.to_vec().expect("reads");
                let exponents = exponents.to_vec().expect("reads");
                let out = out.to_vec().expect("reads");
                for (at, &x) in x.iter().enumerate() {
                    let is_negative = x.is_sign_negative() && !x.is_nan();
                    let want = [x.is_nan(), x.is_infinite(), x.is_finite(), is_negative];
                    let found = [0, 1, 2, 3].map(|row| flags[row * COUNT + at]);
                    assert_eq!(found, want, "{x:?}");
                    let x = f64::from(x);
                    assert_eq!(exponents[at], exponent(x), "{x:e}");
                    let logarithm = match exponents[at] {
                        i32::MIN if x.is_nan() => x,
                        i32::MIN => f64::NEG_INFINITY,
                        i32::MAX => f64::INFINITY,
                        n => f64::from(n),
                    };
                    let by_place = at as i32 % 64 - 32;
                    let wants = [
                        logarithm,
                        if x > 0.0 { x.min(1.0) } else { 0.0 },
                        if x <= 0.75 { 0.0 } else { x - 0.75 },
                        x * 2f64.powi(n),
                        x * 2f64.powi(by_place),
                    ];
                    for (row, want) in wants.into_iter().enumerate() {
                        let want = <$T>::from_f64(want);
                        let found = out[row * COUNT + at];
                        let same = found.to_bits() == want.to_bits() || (found.is_nan() && want.is_nan());
                        assert!(same, "{row} of {x:e}: {found:?}, not {want:?}");
                    }
                }
            }
        }
    )* };
}

trait FromDouble {
    fn from_f64(x: f64) -> Self;
}
impl FromDouble for f32 {
    fn from_f64(x: f64) -> Self {
        x as f32
    }
}
impl FromDouble for f64 {
    fn from_f64(x: f64) -> Self {
        x
    }
}
impl FromDouble for f16 {
    fn from_f64(x: f64) -> Self {
        f16::from_f64(x)
    }
}

const SPECIAL: [f64; 9] = [
    0.0,
    -0.0,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    0.75,
    1.0,
    -1.0,
    5e-324,
];

fn with_special<T: FromDouble>(number: impl Fn(u64) -> T) -> Vec<T> {
    let mut random = Random::new(11);
    let special = SPECIAL.into_iter().map(T::from_f64);
    let rest: Vec<T> = (SPECIAL.len()..COUNT)
        .map(|_| number(random.bits()))
        .collect();
    special.chain(rest).collect()
}

classes_of! {
    classes_of_singles f32: with_special(|bits| f32::from_bits((bits >> 32) as u32));
    classes_of_doubles f64: with_special(f64::from_bits);
    classes_of_halves f16: with_special(|bits| f16::from_bits((bits >> 48) as u16));
}

#[kernel]
fn scales(x: Ptr<f64>, n: Ptr<i32>, out: PtrMut<f64>) {
    let at = arange(0, 16);
    store(out + at, ldexp(load(x + at), load(n + at)));
}

/// Powers of two far beyond those of numbers, and results that are subnormal: one rounding.
#[test]
fn doubles_are_scaled_with_one_rounding() {
    let least = f64::from_bits(1);
    let rows: [(f64, i32, f64); 16] = [
        (1.0, -1074, least),
        (1.0, -1075, 0.0),
        (1.5, -1075, least),
        (1.0 + f64::EPSILON, -1075, least),
        (least, 2097, 2f64.powi(1023)),
        (least, 5000, f64::INFINITY),
        (-1.0, 1024, f64::NEG_INFINITY),
        (f64::MAX, -2098, least),
        (f64::MAX, -2200, 0.0),
        (f64::MAX, i32::MIN, 0.0),
        (-0.0, i32::MAX, -0.0),
        (f64::INFINITY, i32::MIN, f64::INFINITY),
        (3.0 * least, -1, 2.0 * least),
        (f64::MIN_POSITIVE, -52, least),
        (1.0 - f64::EPSILON / 2.0, -1022, f64::MIN_POSITIVE),
        (0.75, 3, 6.0),
    ];
    for device in devices() {
        let x = upload(&device, &rows.map(|row| row.0));
        let n = upload(&device, &rows.map(|row| row.1));
        let mut out = Buffer::<f64>::zeros(&device, 16).expect("fits");
        scales().run(&device, 1, (&x, &n, &mut out)).expect("runs");
        let found = out.to_vec().expect("reads");
        for ((x, n, want), found) in rows.into_iter().zip(found) {
            assert_eq!(found.to_bits(), want.to_bits(), "{x:e} 2^{n}: {found:e}");
        }
    }
}

#[kernel]
fn composed(x: Ptr<f32>, y: Ptr<f32>, out: PtrMut<f32>) {
    let at = arange(0, COUNT);
    let (x, y) = (load(x + at), load(y + at));
    let rows = [
        rhypot(x, y),
        norm([x, y, x]),
        rnorm([x, y, 2.0 * x, y]),
        rcbrt(x),
        sin_pi(x),
        cos_pi(x),
        erfcx(x),
        normal_cdf(x),
    ];
    for (row, found) in rows.into_iter().enumerate() {
        store(out + row * COUNT + at, found);
    }
}

/// Sine and cosine of `pi x` of an exact `x`, by the remainder of whole turns.
fn of_half_turns(x: f64) -> (f64, f64) {
    let nearest = (2.0 * x).round();
    let angle = (x - nearest / 2.0) * std::f64::consts::PI;
    let (sine, cosine) = angle.sin_cos();
    match nearest.rem_euclid(4.0) as i64 {
        0 => (sine, cosine),
        1 => (cosine, -sine),
        2 => (-sine, -cosine),
        _ => (-cosine, sine),
    }
}

/// `e^(x^2) erfc(x)`: by a series in `1 / x^2` where `erfc` is small.
fn scaled_complement(x: f64) -> f64 {
    if x < 8.0 {
        return (x * x).exp() * reference(Function::Erfc, x);
    }
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 1..12 {
        term *= -f64::from(2 * k - 1) / (2.0 * x * x);
        sum += term;
    }
    sum / (x * std::f64::consts::PI.sqrt())
}

/// The distance in units of the last place of `f32`.
fn apart(found: f32, want: f64) -> f64 {
    let near = want as f32;
    if found.is_nan() || near.is_nan() {
        return if found.is_nan() && near.is_nan() {
            0.0
        } else {
            f64::INFINITY
        };
    }
    if found == near || near.is_infinite() || found.is_infinite() {
        return if found == near { 0.0 } else { f64::INFINITY };
    }
    let unit = f64::from(near.abs().next_up()) - f64::from(near.abs());
    (f64::from(found) - want).abs() / unit
}

/// Numbers of both signs around 1, and special ones, for both arguments.
fn arguments() -> [Vec<f32>; 2] {
    let mut random = Random::new(23);
    let mut near = || {
        let bits = random.bits();
        let magnitude = f32::from_bits((bits as u32 & 0x7f_ffff) | 0x3f80_0000);
        let magnitude = magnitude * 2f32.powi((bits >> 32) as i32 % 12 - 4);
        if bits >> 63 == 0 {
            magnitude
        } else {
            -magnitude
        }
    };
    let special = [0.0, -0.0, 1.0, -3.0, 0.5, -2.5, 1e30, -1e-40];
    let not_numbers = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 3.0];
    let mut x = [&special[..], &not_numbers].concat();
    x.extend((12..400).map(|at| (at as f32 - 206.0) / 14.0));
    x.extend((400..COUNT).map(|_| near()));
    [x, (0..COUNT).map(|_| near()).collect()]
}

/// What [`composed`] gives in its rows.
fn exact(x: f64, y: f64) -> [f64; 8] {
    let (sine, cosine) = of_half_turns(x);
    let tail = match x.is_infinite() {
        true => 0.0,
        false => 0.5 * (-x * x / 2.0).exp() * scaled_complement(x.abs() / 2f64.sqrt()),
    };
    [
        1.0 / x.hypot(y),
        (2.0 * x * x + y * y).sqrt(),
        1.0 / (5.0 * x * x + 2.0 * y * y).sqrt(),
        1.0 / x.cbrt(),
        sine,
        cosine,
        match x < 0.0 {
            true => 2.0 * (x * x).exp() - scaled_complement(-x),
            false => scaled_complement(x),
        },
        if x > 0.0 { 1.0 - tail } else { tail },
    ]
}

#[test]
fn composed_functions_are_as_accurate_as_they_say() {
    let [x, y] = arguments();
    for device in devices() {
        let (a, b) = (upload(&device, &x), upload(&device, &y));
        let mut out = Buffer::<f32>::zeros(&device, 8 * COUNT).expect("fits");
        composed()
            .run(&device, 1, (&a, &b, &mut out))
            .expect("runs");
        let found = out.to_vec().expect("reads");
        for (at, (&x, &y)) in x.iter().zip(&y).enumerate() {
            let wants = exact(x.into(), y.into());
            for (row, want) in wants.into_iter().enumerate() {
                let found = found[row * COUNT + at];
                let apart = apart(found, want);
                let what = format!("{row} of {x:e} and {y:e}: {found:e}, not {want:e}");
                assert!(apart <= 0.51, "{what}: {apart}");
            }
            if x.fract() == 0.0 {
                let zero = if x.is_sign_negative() { -0.0f32 } else { 0.0 };
                assert_eq!(
                    found[4 * COUNT + at].to_bits(),
                    zero.to_bits(),
                    "sin_pi({x})"
                );
            }
            if (2.0 * x).rem_euclid(2.0) == 1.0 {
                assert_eq!(found[5 * COUNT + at].to_bits(), 0, "cos_pi({x})");
            }
        }
    }
}

#[kernel]
fn inverses(p: Ptr<f32>, out: PtrMut<f32>) {
    let at = arange(0, COUNT);
    let p = load(p + at);
    store(out + at, normal_cdf_inverse(p));
    store(out + COUNT + at, erfc_inv(p));
}

/// What is half a unit below the result has a lesser probability, and what is half a unit above it a greater one.
#[test]
fn inverses_lie_between_their_neighbours() {
    let mut random = Random::new(29);
    let p: Vec<f32> = (0..COUNT)
        .map(|at| match at {
            0..8 => [0.0, 1.0, 2.0, -0.5, 2.5, 0.5, 1e-45, 1e-38][at],
            8..100 => 10f32.powi(-(at as i32 % 37)),
            _ => f32::from_bits((random.bits() as u32 & 0x7f_ffff) | 0x3f80_0000) - 1.0,
        })
        .collect();
    let cdf = |x: f64| {
        let tail = 0.5 * (-x * x / 2.0).exp() * scaled_complement(x.abs() / 2f64.sqrt());
        if x > 0.0 { 1.0 - tail } else { tail }
    };
    let erfc = |x: f64| {
        let tail = (-x * x).exp() * scaled_complement(x.abs());
        if x < 0.0 { 2.0 - tail } else { tail }
    };
    for device in devices() {
        let input = upload(&device, &p);
        let mut out = Buffer::<f32>::zeros(&device, 2 * COUNT).expect("fits");
        inverses()
            .run(&device, 1, (&input, &mut out))
            .expect("runs");
        let found = out.to_vec().expect("reads");
        let inf = f32::INFINITY;
        assert_eq!([found[0], found[1], found[5]], [-inf, inf, 0.0]);
        assert!([2, 3, 4].iter().all(|&at| found[at].is_nan()));
        let of_erfc = &found[COUNT..];
        assert_eq!([of_erfc[0], of_erfc[2]], [inf, -inf]);
        assert_eq!(of_erfc[1].to_bits(), 0);
        assert!([3, 4].iter().all(|&at| of_erfc[at].is_nan()));
        for (at, &p) in p.iter().enumerate().skip(5) {
            let p = f64::from(p);
            if p == 0.0 {
                continue;
            }
            let middle = |a: f32, b: f32| f64::midpoint(f64::from(a), f64::from(b));
            let bounds = |x: f32| [middle(x, x.next_down()), middle(x, x.next_up())];
            // The function that tells has an error of its own.
            let slack = 1e-9;
            let [below, above] = bounds(found[at]).map(cdf);
            assert!(
                below <= p * (1.0 + slack) && p * (1.0 - slack) <= above,
                "{p:e}: {}",
                found[at]
            );
            let [above, below] = bounds(of_erfc[at]).map(erfc);
            assert!(
                below <= p * (1.0 + slack) && p * (1.0 - slack) <= above,
                "{p:e}: {}",
                of_erfc[at]
            );
        }
    }
}

#[kernel]
fn softens<T: SingleFloat, const COLUMNS: usize>(x: Ptr<T>, out: PtrMut<T>) {
    let at = arange(0, 4).expand(1) * COLUMNS + arange(0, COLUMNS).expand(0);
    store(out + at, softmax(load(x + at), 1));
}

#[test]
fn softmax_of_rows_sums_to_one() {
    let x: Vec<f32> = (0..4 * 16)
        .map(|i| (i * 37 % 23) as f32 / 3.0 - 4.0)
        .collect();
    for device in devices() {
        let input = upload(&device, &x);
        let mut out = Buffer::<f32>::zeros(&device, 64).expect("fits");
        softens::<f32>()
            .columns(16)
            .run(&device, 1, (&input, &mut out))
            .expect("runs");
        for (row, found) in x.chunks(16).zip(out.to_vec().expect("reads").chunks(16)) {
            let sum: f64 = row.iter().map(|&x| f64::from(x).exp()).sum();
            for (&x, &found) in row.iter().zip(found) {
                let want = f64::from(x).exp() / sum;
                assert!(
                    (f64::from(found) - want).abs() <= 1e-6 * want,
                    "{found} {want}"
                );
            }
        }
    }
}
