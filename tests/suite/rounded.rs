//! Arithmetic that rounds in a direction, beside exact arithmetic in integers and in wider floats.

use exactile::prelude::*;
use exactile_core::random::Random;
use half::f16;

use super::language::{devices, upload};

const ROUNDINGS: [Rounding; 4] = [
    Rounding::NearestEven,
    Rounding::TowardZero,
    Rounding::Up,
    Rounding::Down,
];

const TILE: usize = 1024;

#[kernel]
fn pairs<T: SingleFloat>(x: Ptr<T>, y: Ptr<T>, z: Ptr<T>, out: PtrMut<T>, count: i64) {
    let at = program_id(0) * TILE + arange(0, TILE);
    let (x, y, z) = (load(x + at), load(y + at), load(z + at));
    let mut row = out;
    for rounding in ROUNDINGS {
        for found in [
            add_rounded(x, y, rounding),
            sub_rounded(x, y, rounding),
            mul_rounded(x, y, rounding),
            div_rounded(x, y, rounding),
            fma_rounded(x, y, z, rounding),
            sqrt_rounded(x, rounding),
        ] {
            store(row + at, found);
            row += count;
        }
    }
}

/// An exact number: an integer times a power of two, over another integer, or the root of it.
#[derive(Clone, Copy)]
enum Exact {
    /// `.0 2^-.1`
    Number(i128, u32),
    Quotient(i128, i128),
    Root(i128),
}

/// Where `f16` numbers are integers.
const SCALE: u32 = 24;

fn integer(x: f16) -> i128 {
    (x.to_f64() * 2f64.powi(SCALE as i32)) as i128
}

/// How an `f16` lies beside an exact number.
fn compare(found: f16, exact: Exact) -> std::cmp::Ordering {
    let found = integer(found);
    match exact {
        Exact::Number(number, scale) => (found << (scale - SCALE)).cmp(&number),
        // found / 2^24 beside a / b
        Exact::Quotient(a, b) => (found * b * b.signum()).cmp(&((a << SCALE) * b.signum())),
        Exact::Root(square) => (found * found).cmp(&(square << SCALE)),
    }
}

/// Whether `found` is the number that an exact one rounds to, which is finite and not zero.
fn is_rounded(found: f16, exact: Exact, rounding: Rounding) -> bool {
    use std::cmp::Ordering::{Greater, Less};
    let next = |x: f16, up: bool| {
        let bits = x.to_bits();
        let outward = up != x.is_sign_negative();
        match (bits & 0x7fff, outward) {
            (0, false) => f16::from_bits((bits ^ 0x8000) + 1),
            (_, true) => f16::from_bits(bits + 1),
            (_, false) => f16::from_bits(bits - 1),
        }
    };
    let is_below = |x: f16| x == f16::NEG_INFINITY || (x.is_finite() && compare(x, exact) == Less);
    let is_above = |x: f16| x == f16::INFINITY || (x.is_finite() && compare(x, exact) == Greater);
    let is_negative = found.is_sign_negative();
    match rounding {
        Rounding::Down => !is_above(found) && is_above(next(found, true)),
        Rounding::Up => !is_below(found) && is_below(next(found, false)),
        Rounding::TowardZero if is_negative => !is_below(found) && is_below(next(found, false)),
        Rounding::TowardZero => !is_above(found) && is_above(next(found, true)),
        Rounding::NearestEven => true,
    }
}

fn check(found: f16, exact: Exact, is_zero: bool, what: &str, rounding: Rounding) {
    match is_zero {
        true => assert_eq!(found.to_f64(), 0.0, "{what}, {rounding:?}"),
        false => assert!(
            is_rounded(found, exact, rounding),
            "{what}: {found:e}, {rounding:?}"
        ),
    }
}

/// The results for each number of `x` and the ones at its place in `y` and `z`.
fn results(device: &Device, [x, y, z]: [&[f16]; 3]) -> Vec<f16> {
    let [a, b, c] = [x, y, z].map(|it| upload(device, it));
    let mut out = Buffer::<f16>::zeros(device, 24 * x.len()).expect("fits");
    pairs::<f16>()
        .run(
            device,
            x.len() / TILE,
            (&a, &b, &c, &mut out, x.len() as i64),
        )
        .expect("runs");
    out.to_vec().expect("reads")
}

/// To the nearest, the results are those of `f16`'s own operators.
fn check_nearest(x: f16, y: f16, found: &[f16]) {
    let plain = [x + y, x - y, x * y, x / y];
    let root = x.to_f64().sqrt();
    let wants = plain.into_iter().chain([f16::from_f64(root)]);
    for (found, want) in [0, 1, 2, 3, 5].map(|row| found[row]).into_iter().zip(wants) {
        let same = found.to_bits() == want.to_bits() || (found.is_nan() && want.is_nan());
        assert!(same, "{x:e}, {y:e}: {found:e}, not {want:e}");
    }
}

/// Sums, also the signs of their zeros.
fn check_sums(x: f16, y: f16, found: &[f16], rounding: Rounding) {
    let (a, b) = (integer(x), integer(y));
    for (found, exact, y) in [(found[0], a + b, y), (found[1], a - b, -y)] {
        let what = format!("{x:e} + {y:e}");
        check(
            found,
            Exact::Number(exact, SCALE),
            exact == 0,
            &what,
            rounding,
        );
        let signs = [x, y].map(f16::is_sign_negative);
        let is_negative = match rounding {
            Rounding::Down => signs[0] || signs[1],
            Rounding::NearestEven | Rounding::TowardZero | Rounding::Up => signs[0] && signs[1],
        };
        let alike = found.is_sign_negative() == is_negative;
        assert!(exact != 0 || alike, "{what}, {rounding:?}");
    }
}

fn check_finite([x, y, z]: [f16; 3], found: &[f16], rounding: Rounding) {
    check_sums(x, y, found, rounding);
    let what = format!("{x:e}, {y:e}, {z:e}");
    let [a, b, c] = [x, y, z].map(|it| if it.is_finite() { integer(it) } else { 0 });
    let product = Exact::Number(a * b, 2 * SCALE);
    check(found[2], product, a * b == 0, &what, rounding);
    if b != 0 {
        check(found[3], Exact::Quotient(a, b), a == 0, &what, rounding);
    }
    if z.is_finite() {
        let exact = a * b + (c << SCALE);
        let sum = Exact::Number(exact, 2 * SCALE);
        check(found[4], sum, exact == 0, &what, rounding);
    }
    if a > 0 {
        check(found[5], Exact::Root(a), false, &what, rounding);
    }
}

fn check_all([x, y, z]: [&[f16]; 3], found: &[f16]) {
    let count = x.len();
    for at in 0..count {
        let (x, y, z) = (x[at], y[at], z[at]);
        for (index, &rounding) in ROUNDINGS.iter().enumerate() {
            let row = |row: usize| found[(index * 6 + row) * count + at];
            let found: Vec<f16> = (0..6).map(row).collect();
            if rounding == Rounding::NearestEven {
                check_nearest(x, y, &found);
            }
            if x.is_finite() && y.is_finite() {
                check_finite([x, y, z], &found, rounding);
            } else {
                let nan = [x + y, x - y, x * y, x / y].map(f16::is_nan);
                assert_eq!([0, 1, 2, 3].map(|row| found[row].is_nan()), nan);
            }
        }
    }
}

/// Every `f16` beside some others: the root of each, and sums, products and quotients with numbers of all magnitudes.
#[test]
fn every_half_is_rounded_as_asked() {
    let partners: [u16; 6] = [0x0001, 0x8403, 0x3c01, 0xb555, 0x7bff, 0x8000];
    let x: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
    for (turn, &partner) in partners.iter().enumerate() {
        let y = vec![f16::from_bits(partner); x.len()];
        let z: Vec<f16> = (0..=u16::MAX)
            .map(|bits| f16::from_bits(bits.wrapping_mul(40_503).rotate_left(turn as u32)))
            .collect();
        let operands = [&x[..], &y, &z];
        check_all(operands, &results(&Device::cpu(), operands));
    }
}

/// Pairs of any bits, on every device.
#[test]
fn halves_of_any_bits_are_rounded_alike_everywhere() {
    let mut random = Random::new(31);
    let mut halves = || -> Vec<f16> {
        let bits = (0..TILE).map(|_| random.bits() as u16);
        bits.map(f16::from_bits).collect()
    };
    let (x, y, z) = (halves(), halves(), halves());
    let operands = [&x[..], &y, &z];
    for device in devices() {
        check_all(operands, &results(&device, operands));
    }
}

#[kernel]
fn singles(x: Ptr<f32>, y: Ptr<f32>, z: Ptr<f32>, out: PtrMut<f32>) {
    let at = arange(0, TILE);
    let (x, y, z) = (load(x + at), load(y + at), load(z + at));
    let mut row = out;
    for rounding in ROUNDINGS {
        for found in [
            add_rounded(x, y, rounding),
            mul_rounded(x, y, rounding),
            div_rounded(x, y, rounding),
            fma_rounded(x, y, z, rounding),
        ] {
            store(row + at, found);
            row += TILE;
        }
    }
}

/// Of `f32` the nearest results are those of the machine, and the ones of the directions enclose them within a unit.
#[test]
fn singles_are_enclosed() {
    let mut random = Random::new(37);
    let mut numbers = |spread: u64| -> Vec<f32> {
        let number = |_| {
            let bits = random.bits();
            let exponent = (127 - spread / 2 + (bits >> 32) % spread) as u32;
            f32::from_bits((bits as u32 & 0x807f_ffff) | exponent << 23)
        };
        (0..TILE).map(number).collect()
    };
    let (x, y, z) = (numbers(60), numbers(60), numbers(90));
    for device in devices() {
        let [a, b, c] = [&x, &y, &z].map(|it| upload(&device, it));
        let mut out = Buffer::<f32>::zeros(&device, 16 * TILE).expect("fits");
        singles()
            .run(&device, 1, (&a, &b, &c, &mut out))
            .expect("runs");
        let found = out.to_vec().expect("reads");
        for at in 0..TILE {
            let (x, y, z) = (x[at], y[at], z[at]);
            let wants = [x + y, x * y, x / y, x.mul_add(y, z)];
            for (row, want) in wants.into_iter().enumerate() {
                let of = |rounding: usize| found[(rounding * 4 + row) * TILE + at];
                let [nearest, zero, up, down] = [0, 1, 2, 3].map(of);
                assert_eq!(
                    nearest.to_bits(),
                    want.to_bits(),
                    "{row} of {x:e}, {y:e}, {z:e}"
                );
                assert!(down <= nearest && nearest <= up && up <= down.next_up());
                assert_eq!(zero, if nearest < 0.0 { up } else { down });
                // Of a product and a quotient the `f64` tells whether it is exact.
                let wide = match row {
                    1 => f64::from(x) * f64::from(y),
                    2 => f64::from(x) / f64::from(y),
                    _ => continue,
                };
                assert!(
                    f64::from(down) <= wide && wide <= f64::from(up),
                    "{row} of {x:e}, {y:e}"
                );
                assert_eq!(down == up, f64::from(nearest) == wide);
            }
        }
    }
}
