//! Conversions of floats that round in a direction, and integers of 4 bits.

use exactile::prelude::*;
use exactile::{DType, Number};
use exactile_core::ir::Literal;
use exactile_core::random::Random;
use exactile_core::semantics::cast;

use super::language::{devices, upload};

const COUNT: usize = 4096;

#[kernel]
fn round_each<F: Float, T: Float>(x: Ptr<F>, out: PtrMut<T>) {
    let at = arange(0, COUNT);
    let x = load(x + at);
    let roundings = [
        Rounding::NearestEven,
        Rounding::TowardZero,
        Rounding::Up,
        Rounding::Down,
    ];
    for (row, rounding) in roundings.into_iter().enumerate() {
        store(out + at + row * COUNT, x.to_rounded::<T>(rounding));
    }
}

/// The value of a number, and of those next to it; NaN where there is none.
fn around(dtype: DType, bits: u64) -> [f64; 3] {
    let value = |bits| Literal::from_bits(dtype, bits).float().expect("a float");
    let sign = 1 << (dtype.bits() - 1);
    let (magnitude, negative) = (bits & !sign, bits & sign != 0);
    let out = value(bits + 1);
    let inward = match magnitude {
        0 => -value((bits | 1) & dtype.mask()),
        _ => value(bits - 1),
    };
    match negative {
        true => [out, value(bits), inward],
        false => [inward, value(bits), out],
    }
}

fn check(x: f64, dtype: DType, [nearest, zero, up, down]: [u64; 4]) {
    let [[_, zero, _], [below_up, up, _], [_, down, above_down]] =
        [zero, up, down].map(|bits| around(dtype, bits));
    if x.is_nan() {
        assert!(zero.is_nan() && up.is_nan() && down.is_nan());
        return;
    }
    assert_eq!(
        nearest,
        cast(DType::F64, dtype, x.to_bits()),
        "{x:e} to {dtype}"
    );
    let greatest = Literal::from_bits(dtype, dtype.format().expect("a float").greatest());
    let greatest = greatest.float().expect("a float");
    let beyond = !dtype.format().expect("a float").has_infinity && x.abs() > greatest;
    if beyond {
        assert_eq!(
            [zero, up, down],
            [x.signum() * greatest; 3],
            "{x:e} to {dtype}"
        );
        return;
    }
    assert!(
        up >= x && (below_up < x || up == x),
        "{x:e} to {dtype}: up {up:e}"
    );
    assert!(
        down <= x && (above_down > x || down == x),
        "{x:e} to {dtype}: down {down:e}"
    );
    assert_eq!(zero, if x < 0.0 { up } else { down }, "{x:e} to {dtype}");
    assert!(
        [zero, up, down]
            .iter()
            .all(|it| it.is_sign_negative() == x.is_sign_negative())
    );
}

/// Any bits, numbers near those of the narrow type, and beyond its greatest.
fn numbers(dtype: DType) -> Vec<f64> {
    let mut random = Random::new(3);
    let special = [
        0.0,
        -0.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        1e-300,
        -1e-300,
        1e300,
        -1e300,
    ];
    let near = |random: &mut Random| {
        let bits = random.bits() & dtype.mask();
        let value = Literal::from_bits(dtype, bits).float().expect("a float");
        value * [1.0, 1.0 + 1e-7, 1.0 - 1e-7, 1.01, 1.5][random.below(5)]
    };
    let mut numbers: Vec<f64> = (special.len()..COUNT)
        .map(|at| match at % 3 {
            0 => f64::from_bits(random.bits()),
            _ => near(&mut random),
        })
        .collect();
    numbers.extend(special);
    numbers
}

macro_rules! rounds {
    ($($name:ident $From:ty, $To:ty;)*) => { $(
        #[test]
        fn $name() {
            let numbers: Vec<$From> = numbers(<$To>::DTYPE).into_iter().map(|x| x as $From).collect();
            for device in devices() {
                let x = upload(&device, &numbers);
                let mut out = Buffer::<$To>::zeros(&device, 4 * COUNT).expect("fits");
                round_each::<$From, $To>()
                    .run(&device, 1, (&x, &mut out))
                    .expect("runs");
                let found = out.to_vec().expect("reads");
                for (at, &x) in numbers.iter().enumerate() {
                    let bits = [0, 1, 2, 3].map(|row| found[row * COUNT + at].to_bits().into());
                    check(f64::from(x), <$To>::DTYPE, bits);
                }
            }
        }
    )* };
}
rounds! {
    singles_to_halves f32, half::f16;
    singles_to_brains f32, half::bf16;
    doubles_to_singles f64, f32;
    doubles_to_halves f64, half::f16;
    singles_to_bytes_without_infinity f32, F8E4M3;
    singles_to_bytes_with_infinity f32, F8E5M2;
}

#[kernel]
fn nibbles(x: Ptr<u8>, numbers: PtrMut<i8>, packed: PtrMut<u8>) {
    let (row, column) = (arange(0, 16).expand(1), arange(0, 16).expand(0));
    let unpacked = unpack_int4(load(x + row * 16 + column));
    store(packed + row * 16 + column, pack_int4(unpacked));
    store(numbers + row * 32 + arange(0, 32).expand(0), unpacked);
}

#[test]
fn bytes_hold_two_integers() {
    let bytes: Vec<u8> = (0..=255).collect();
    let want: Vec<i8> = bytes
        .iter()
        .flat_map(|&byte| [(byte << 4) as i8 >> 4, byte as i8 >> 4])
        .collect();
    for device in devices() {
        let x = upload(&device, &bytes);
        let mut numbers = Buffer::<i8>::zeros(&device, 512).expect("fits");
        let mut packed = Buffer::<u8>::zeros(&device, 256).expect("fits");
        nibbles()
            .run(&device, 1, (&x, &mut numbers, &mut packed))
            .expect("runs");
        assert_eq!(numbers.to_vec().expect("reads"), want, "{device}");
        assert_eq!(packed.to_vec().expect("reads"), bytes, "{device}");
    }
}

#[kernel]
fn words(x: Ptr<u8>, packed: PtrMut<u32>, bytes: PtrMut<u8>) {
    let at = arange(0, 64);
    let words = pack_bytes(load(x + at));
    store(packed + arange(0, 16), words);
    // Each byte times 8, without what goes over: what `shl.b32` and a mask make of words.
    store(bytes + at, unpack_bytes((words << 3) & 0xf8f8_f8f8_u32));
}

#[test]
fn words_hold_four_bytes() {
    let x: Vec<u8> = (0..64).map(|i| (i * 37 + 11) as u8).collect();
    let quarters = x
        .chunks(4)
        .map(|it| <[u8; 4]>::try_from(it).expect("is four"));
    let want: Vec<u32> = quarters.map(u32::from_le_bytes).collect();
    let shifted: Vec<u8> = x.iter().map(|&it| it << 3).collect();
    for device in devices() {
        let input = upload(&device, &x);
        let mut packed = Buffer::<u32>::zeros(&device, 16).expect("fits");
        let mut bytes = Buffer::<u8>::zeros(&device, 64).expect("fits");
        words()
            .run(&device, 1, (&input, &mut packed, &mut bytes))
            .expect("runs");
        assert_eq!(packed.to_vec().expect("reads"), want, "{device}");
        assert_eq!(bytes.to_vec().expect("reads"), shifted, "{device}");
    }
}

#[kernel]
fn packs(x: Ptr<f32>, packed: PtrMut<u8>, back: PtrMut<f32>, tf32: PtrMut<f32>, n: i32) {
    let at = program_id(0) * 64 + arange(0, 64);
    let x = load(x + at).mask(at < n);
    let bytes = pack_e2m1(x);
    store(packed + program_id(0) * 32 + arange(0, 32), bytes);
    store(back + at, unpack_e2m1(bytes).to::<f32>()).mask(at < n);
    store(tf32 + at, round_to_tf32(x)).mask(at < n);
}

/// The nearest of the eight magnitudes, of two the one with an even code.
fn nearest_e2m1(x: f32) -> f32 {
    const MAGNITUDES: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    if x.is_nan() {
        return 6.0;
    }
    let away = |code: usize| ((x.abs().min(6.0) - MAGNITUDES[code]).abs(), code % 2);
    let code = (0..8).min_by(|&a, &b| away(a).partial_cmp(&away(b)).expect("are numbers"));
    MAGNITUDES[code.expect("is one")].copysign(x)
}

#[test]
fn floats_are_rounded_to_four_bits_and_to_tf32() {
    let special = [
        0.25,
        0.75,
        1.25,
        1.75,
        2.5,
        3.5,
        5.0,
        6.5,
        0.0,
        -0.0,
        7e9,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        1e-45,
        -5.0,
        f32::MAX,
        1.000_488_3,
        1.000_488_2,
        -1.000_488_3,
    ];
    let quarters = (-64..64).map(|i| i as f32 / 8.0 + 0.001);
    let mut x: Vec<f32> = special.into_iter().chain(quarters).collect();
    x.resize(192, 2.75);
    let four: Vec<f32> = x.iter().map(|&x| nearest_e2m1(x)).collect();
    // Exactly in `f64`: to a multiple of the unit of 10 bits of fraction, of two the one farther from zero.
    let tf32 = |x: f32| {
        if !x.is_finite() || x == 0.0 {
            return x;
        }
        let exponent = (x.abs().to_bits() >> 23).max(1) as i32 - 127;
        let unit = f64::powi(2.0, exponent - 10);
        ((f64::from(x) / unit).round() * unit) as f32
    };
    let rounded: Vec<f32> = x.iter().map(|&x| tf32(x)).collect();
    for device in devices() {
        let input = upload(&device, &x);
        let mut packed = Buffer::<u8>::zeros(&device, 96).expect("fits");
        let mut back = Buffer::<f32>::zeros(&device, 192).expect("fits");
        let mut fraction = Buffer::<f32>::zeros(&device, 192).expect("fits");
        packs()
            .run(
                &device,
                3,
                (&input, &mut packed, &mut back, &mut fraction, 192),
            )
            .expect("runs");
        exactile::assert_bits_equal(&back, &four);
        exactile::assert_bits_equal(&fraction, &rounded);
        assert_eq!(packed.to_vec().expect("reads")[0], 0x20, "0.25 and 0.75");
    }
}
