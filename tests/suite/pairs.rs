//! Functions of two floats against exact or wider arithmetic, on many pairs of numbers.

use exactile::DType;
use exactile::prelude::*;
use exactile_core::random::Random;
use exactile_core::semantics::oracle::{self, ulp_error};

use super::language::{devices, upload};

const BLOCK: usize = 1024;

/// Rows of results.
const ROWS: usize = 6;

#[kernel]
fn pairs(x: Ptr<f32>, y: Ptr<f32>, out: PtrMut<f32>, count: i64) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let (x, y) = (load(x + at), load(y + at));
    let found = [
        pow(x, y),
        atan2(x, y),
        hypot(x, y),
        fmod(x, y),
        remainder(x, y),
        x % y,
    ];
    for (row, found) in found.into_iter().enumerate() {
        store(out + at + count * row as i64, found);
    }
}

/// Any bits, moderate numbers, small integers, and neighbours of each other.
fn arguments(count: usize, seed: u64) -> [Vec<f32>; 2] {
    let mut random = Random::new(seed);
    let special = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        f32::INFINITY,
        f32::NAN,
        f32::MAX,
        f32::MIN_POSITIVE,
        1e-45,
        0.5,
        -3.0,
    ];
    let mut number = |kind: u64| {
        let bits = random.bits();
        let magnitude =
            f32::from_bits((bits as u32 & 0x807f_ffff) | (113 + (bits >> 40) as u32 % 25) << 23);
        match kind % 5 {
            0 => f32::from_bits(bits as u32),
            1 | 2 => magnitude,
            3 => ((bits >> 32) as u32 % 64) as f32 - 32.0,
            _ => special[(bits >> 32) as usize % special.len()],
        }
    };
    let numbers = (0..count as u64).map(|at| {
        let x = number(at);
        // Quotients near an integer and a half, too.
        match at % 7 {
            6 => (x, x / ((at / 7 % 9) as f32 + 0.5)),
            _ => (x, number(at / 5)),
        }
    });
    let (x, y) = numbers.unzip();
    [x, y]
}

fn run(device: &Device, [x, y]: &[Vec<f32>; 2]) -> Vec<f32> {
    let (a, b) = (upload(device, x), upload(device, y));
    let mut out = Buffer::<f32>::zeros(device, ROWS * x.len()).expect("fits");
    let grid = x.len() / BLOCK;
    pairs()
        .run(device, grid, (&a, &b, &mut out, x.len() as i64))
        .expect("runs");
    out.to_vec().expect("reads")
}

/// `x - n y` with `n` the integer nearest to `x / y`.
fn nearest_remainder(x: f64, y: f64) -> f64 {
    let (magnitude, divisor) = (x.abs(), y.abs());
    if x.is_infinite() || y == 0.0 || x.is_nan() || y.is_nan() {
        return f64::NAN;
    }
    if y.is_infinite() {
        return x;
    }
    // Twice a great divisor is infinite: then the quotient is 0 or 1.
    let rest = magnitude % (2.0 * divisor);
    let is_odd = rest >= divisor;
    let rest = if is_odd { rest - divisor } else { rest };
    let beyond = divisor - rest;
    let upper = rest > beyond || rest == beyond && is_odd;
    let rest = if upper { rest - divisor } else { rest };
    if x.is_sign_negative() { -rest } else { rest }
}

#[test]
fn errors_stay_within_what_is_stated() {
    let arguments = arguments(BLOCK * 256, 17);
    let found = run(&Device::cpu(), &arguments);
    let count = arguments[0].len();
    let wide: [(fn(f64, f64) -> f64, f64); ROWS] = [
        (f64::powf, 0.5001),
        (f64::atan2, 0.5003),
        (f64::hypot, 0.5001),
        (|x, y| x % y, 0.0),
        (nearest_remainder, 0.0),
        (|x, y| x % y, 0.0),
    ];
    for (row, (function, most)) in wide.into_iter().enumerate() {
        let mut worst = (0.0, 0.0, 0.0);
        for at in 0..count {
            let (x, y) = (f64::from(arguments[0][at]), f64::from(arguments[1][at]));
            let (found, want) = (found[row * count + at], function(x, y));
            let error = ulp_error(DType::F32, found.to_bits().into(), want, 0.0).expect("a float");
            if want == 0.0 {
                assert_eq!(
                    found.is_sign_negative(),
                    want.is_sign_negative(),
                    "{row} of {x:e} and {y:e}"
                );
            }
            if error > worst.0 {
                worst = (error, x, y);
            }
        }
        println!("{row}: {worst:?}");
        assert!(worst.0 <= most, "{row}: {worst:?}");
    }
}

#[test]
fn all_devices_agree() {
    let arguments = arguments(2 * BLOCK, 5);
    let bits = |device: &Device| {
        run(device, &arguments)
            .into_iter()
            .map(|x| if x.is_nan() { f32::NAN } else { x }.to_bits())
            .collect::<Vec<u32>>()
    };
    let want = bits(&Device::cpu());
    for device in devices() {
        assert!(bits(&device) == want, "{device}");
    }
}

#[kernel]
fn of_scalars<T: SingleFloat>(x: T, out: PtrMut<T>) {
    let mut rest = x % 2.5;
    rest %= 1.0;
    store(out, rest);
    store(out + 1, 7.5 % x);
    store(out + 2, x.tile() % x);
}

#[test]
fn literals_stand_on_either_side() {
    for device in devices() {
        let mut out = Buffer::<f32>::zeros(&device, 3).expect("fits");
        of_scalars::<f32>()
            .run(&device, 1, (-6.75, &mut out))
            .expect("runs");
        assert_eq!(out.to_vec().expect("reads"), [-0.75, 0.75, 0.0]);
    }
}

#[kernel]
fn long_pairs(x: Ptr<f64>, y: Ptr<f64>, out: PtrMut<f64>, count: i64) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let (x, y) = (load(x + at), load(y + at));
    let found = [pow(x, y), atan2(x, y), hypot(x, y)];
    for (row, found) in found.into_iter().enumerate() {
        store(out + at + count * row as i64, found);
    }
}

/// Any bits, moderate numbers, numbers near 1 with great exponents, and special ones.
fn long_arguments(count: usize) -> [Vec<f64>; 2] {
    let mut random = Random::new(11);
    let special = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        5e-324,
        2.5,
        -3.0,
        f64::MAX,
    ];
    let numbers = (0..count).map(|at| {
        let mut moderate = |range: u64| {
            let bits = random.bits();
            let exponent = 1023 - range / 2 + (bits >> 56) % range;
            f64::from_bits(bits & (u64::MAX >> 12) | (bits & 1) << 63 | exponent << 52)
        };
        let (x, y) = (moderate(60), moderate(16));
        match at % 6 {
            0 => (f64::from_bits(random.bits()), f64::from_bits(random.bits())),
            1 => (x, y),
            2 => (x.abs(), y / x.abs().log2() * 30.0),
            3 => (1.0 + y * 1e-6, x),
            4 => (x, x * (1.0 + y * 1e-3)),
            _ => (
                special[at / 6 % 11],
                if at % 4 == 1 {
                    special[at / 66 % 11]
                } else {
                    y
                },
            ),
        }
    });
    let (x, y) = numbers.unzip();
    [x, y]
}

#[kernel]
fn long_rests(x: Ptr<f64>, y: Ptr<f64>, out: PtrMut<f64>, count: i64) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let (x, y) = (load(x + at), load(y + at));
    let found = [fmod(x, y), remainder(x, y), x % y, 2.5 % y];
    for (row, found) in found.into_iter().enumerate() {
        store(out + at + count * row as i64, found);
    }
}

/// Pairs whose exponents are far from each other, subnormal numbers, and quotients near an integer and a half.
fn rest_arguments(count: usize) -> [Vec<f64>; 2] {
    let mut random = Random::new(23);
    let [mut x, mut y] = long_arguments(count);
    for at in 0..count {
        let bits = random.bits();
        match at % 5 {
            0 => {
                x[at] = f64::from_bits(bits & !(3 << 61));
                y[at] = f64::from_bits(random.bits() & 0x800f_ffff_ffff_ffff >> (bits % 53));
            }
            1 => {
                y[at] = f64::from_bits(bits);
                x[at] = y[at] * ((random.bits() % 1000) as f64 + 0.5);
            }
            2 => {
                y[at] = f64::from_bits(bits % 64);
                x[at] = f64::from_bits(random.bits() % 256);
            }
            3 => {
                x[at] = f64::from_bits(bits);
                y[at] = f64::from_bits(random.bits());
            }
            _ => {}
        }
    }
    [x, y]
}

#[test]
fn rests_of_long_numbers_are_exact() {
    let [x, y] = rest_arguments(BLOCK * 128);
    let count = x.len();
    for device in devices() {
        let count = if device.to_string() == "cpu" {
            count
        } else {
            BLOCK
        };
        let (a, b) = (upload(&device, &x[..count]), upload(&device, &y[..count]));
        let mut out = Buffer::<f64>::zeros(&device, 4 * count).expect("fits");
        long_rests()
            .run(&device, count / BLOCK, (&a, &b, &mut out, count as i64))
            .expect("runs");
        let found = out.to_vec().expect("reads");
        for (at, (&x, &y)) in x[..count].iter().zip(&y).enumerate() {
            let want = [x % y, nearest_remainder(x, y), x % y, 2.5 % y];
            for (row, want) in want.into_iter().enumerate() {
                let found = found[row * count + at];
                let same = found.to_bits() == want.to_bits() || found.is_nan() && want.is_nan();
                assert!(
                    same,
                    "{device} {row}: {found:e} of {x:e} and {y:e}, not {want:e}"
                );
            }
        }
    }
}

#[test]
fn errors_of_long_numbers_stay_within_what_is_stated() {
    let [x, y] = long_arguments(BLOCK * 64);
    let count = x.len();
    let mut results: Vec<Vec<f64>> = Vec::new();
    for (device, count) in [(Device::cpu(), count), (Device::lanes(), BLOCK)] {
        let (a, b) = (upload(&device, &x[..count]), upload(&device, &y[..count]));
        let mut out = Buffer::<f64>::zeros(&device, 3 * count).expect("fits");
        long_pairs()
            .run(&device, count / BLOCK, (&a, &b, &mut out, count as i64))
            .expect("runs");
        results.push(out.to_vec().expect("reads"));
    }
    type Host = fn(f64, f64) -> f64;
    type Long = fn(f64, f64) -> oracle::Wide;
    let functions: [(Host, Long, f64); 3] = [
        (f64::powf, oracle::pairs::pow, 1.0),
        (f64::atan2, oracle::pairs::atan2, 1.0),
        (f64::hypot, oracle::pairs::hypot, 1.0),
    ];
    for (row, (host, long, most)) in functions.into_iter().enumerate() {
        let mut worst = [(0.0, 0.0, 0.0); 2];
        for (at, (&x, &y)) in x.iter().zip(&y).enumerate() {
            let (found, want) = (results[0][row * count + at], host(x, y));
            if at < BLOCK {
                let other = results[1][row * BLOCK + at];
                let same = other.to_bits() == found.to_bits() || other.is_nan() && found.is_nan();
                assert!(same, "{row} of {x:e} and {y:e}");
            }
            if want == 0.0 {
                let same = found.is_sign_negative() == want.is_sign_negative();
                assert!(same, "{row} of {x:e} and {y:e}");
            }
            // Elsewhere the oracle loses its low parts, and the host's library is near enough.
            let is_moderate = [x, y, want]
                .iter()
                .all(|it| (1e-250..1e250).contains(&it.abs()));
            let is_judged = is_moderate && (row > 0 || x > 0.0);
            let (high, low) = match is_judged.then(|| long(x, y)) {
                Some(value) => (value.high, value.low),
                None => (want, 0.0),
            };
            let error = ulp_error(DType::F64, found.to_bits(), high, low).expect("a float");
            let worst = &mut worst[usize::from(!is_judged)];
            if error > worst.0 {
                *worst = (error, x, y);
            }
        }
        println!("{row}: {worst:?}");
        assert!(worst[0].0 <= most && worst[1].0 <= 2.0, "{row}: {worst:?}");
    }
}
