//! The errors that the documentation of activations states, beside `f64`, over all finite arguments by a stride.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI};

use exactile::prelude::*;
use exactile_core::ir::{DType, Function};
use exactile_core::semantics::oracle::{reference, ulp_error};
use half::bf16;

use super::language::devices;

const BLOCK: usize = 1024;

/// Odd, so that the low bits of the arguments take all values.
const STRIDE: u32 = 8191;

const PROGRAMS: u32 = 512;

#[kernel]
fn of_all_numbers(out: PtrMut<f32>) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let x = (at.to::<u32>() * STRIDE).bitcast::<f32>();
    for (row, value) in [silu(x), softplus(x), gelu(x), gelu_tanh(x), relu(x)]
        .into_iter()
        .enumerate()
    {
        store(out + row as i64 * num_programs(0) * BLOCK + at, value);
    }
}

/// `x / (1 + e^-t)` without overflow on the way.
fn gated(x: f64, t: f64) -> f64 {
    let small = (-t.abs()).exp();
    x * if t < 0.0 { small } else { 1.0 } / (1.0 + small)
}

fn gelu_of(x: f64) -> f64 {
    x * reference(Function::Erfc, -x * FRAC_1_SQRT_2) / 2.0
}

fn gelu_tanh_of(x: f64) -> f64 {
    gated(x, 2.0 * FRAC_2_PI.sqrt() * (x + 0.044715 * x * x * x))
}

/// What is stated of a function.
struct Stated {
    function: fn(f64) -> f64,
    /// From which number on the error is at most so many units in the last place, several times.
    units: [(f64, f64); 2],
    /// The error of negative numbers.
    below: f64,
    /// From which number down the result is -0.
    ended: f64,
}

const ANY: f64 = f64::NEG_INFINITY;

const STATED: [Stated; 5] = [
    Stated {
        function: |x| gated(x, x),
        units: [(-87.0, 1.6), (ANY, 53.0)],
        below: 1e-7,
        ended: ANY,
    },
    Stated {
        function: |x| x.max(0.0) + (-x.abs()).exp().ln_1p(),
        units: [(ANY, 1.9); 2],
        below: 1e-7,
        ended: ANY,
    },
    Stated {
        function: gelu_of,
        units: [(0.0, 1.8), (-1.0, 2.8)],
        below: 1e-7,
        ended: -5.55,
    },
    Stated {
        function: gelu_tanh_of,
        units: [(0.0, 2.0), (-1.0, 3.4)],
        below: 1e-7,
        ended: -5.2,
    },
    Stated {
        function: |x| x.max(0.0),
        units: [(ANY, 0.0); 2],
        below: 0.0,
        ended: ANY,
    },
];

#[test]
fn stated_errors_hold() {
    let count = PROGRAMS as usize * BLOCK;
    let device = Device::cpu();
    let mut out = Buffer::<f32>::zeros(&device, STATED.len() * count).expect("fits");
    let run = of_all_numbers().run(&device, PROGRAMS, (&mut out,));
    run.expect("runs");
    let out = out.to_vec().expect("reads");
    for (row, (stated, found)) in STATED.iter().zip(out.chunks(count)).enumerate() {
        for (at, &found) in found.iter().enumerate() {
            let single = f32::from_bits(at as u32 * STRIDE);
            if !single.is_finite() {
                continue;
            }
            let x = f64::from(single);
            let want = (stated.function)(x);
            let units = ulp_error(DType::F32, found.to_bits().into(), want, 0.0);
            let units = units.expect("is a float");
            for (from, most) in stated.units {
                assert!(x < from || units <= most, "{row}: {units} of {x:e}");
            }
            let apart = (f64::from(found) - want).abs();
            assert!(
                x >= 0.0 || apart <= stated.below,
                "{row}: {apart:e} of {x:e}"
            );
            assert!(
                x > stated.ended || found.to_bits() == (-0.0f32).to_bits(),
                "{row}: {found:e} of {x:e}"
            );
        }
    }
}

#[kernel]
fn of_some_numbers(x: Ptr<f32>, out: PtrMut<f32>) {
    let at = arange(0, 4);
    let x = load(x + at);
    let rows = [silu(x), softplus(x), gelu(x), gelu_tanh(x)];
    for (row, value) in rows.into_iter().enumerate() {
        store(out + row as i64 * 4 + at, value);
    }
}

/// Where the functions of negative numbers have ended, and of infinities.
#[test]
fn ends_are_the_stated_ones() {
    let device = Device::cpu();
    let numbers = [-5.55f32, -5.2, f32::NEG_INFINITY, f32::INFINITY];
    let x = Buffer::from_slice(&device, &numbers).expect("fits");
    let mut out = Buffer::<f32>::zeros(&device, 16).expect("fits");
    let run = of_some_numbers().run(&device, 1, (&x, &mut out));
    run.expect("runs");
    let out = out.to_vec().expect("reads");
    let ends = |row: usize| [out[4 * row + 2], out[4 * row + 3]];
    for row in [0, 2, 3] {
        assert!(ends(row)[0].is_nan(), "{row}");
        assert_eq!(ends(row)[1], f32::INFINITY, "{row}");
    }
    assert_eq!(ends(1), [0.0, f32::INFINITY]);
    for zero in [out[8], out[12], out[13]] {
        assert_eq!(zero.to_bits(), (-0.0f32).to_bits());
    }
    assert!(out[9] < 0.0);
}

/// Each number that `bf16` has.
const NARROW: usize = 1 << 16;

#[kernel]
fn of_all_narrow_numbers(out: PtrMut<bf16>) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let narrow = at.to::<u16>().bitcast::<bf16>();
    store(out + at, tanh(narrow));
    let x = narrow.to::<f32>();
    for (row, value) in [
        sigmoid(x),
        silu(x),
        softplus(x),
        gelu(x),
        gelu_tanh(x),
        erf(x),
    ]
    .into_iter()
    .enumerate()
    {
        let place = (row as i64 + 1) * NARROW as i64 + at;
        store(out + place, value.to::<bf16>());
    }
}

#[test]
fn short_forms_have_the_bits_of_the_definitions() {
    let mut expected: Option<Vec<u16>> = None;
    for device in devices() {
        let mut out = Buffer::<bf16>::zeros(&device, 7 * NARROW).expect("fits");
        let programs = (NARROW / BLOCK) as u32;
        let run = of_all_narrow_numbers().run(&device, programs, (&mut out,));
        run.expect("runs");
        let numbers = out.to_vec().expect("reads").into_iter();
        let bits = numbers.map(|x| if x.is_nan() { bf16::NAN } else { x }.to_bits());
        let bits: Vec<u16> = bits.collect();
        let expected = expected.get_or_insert_with(|| bits.clone());
        let pairs = expected.iter().zip(&bits);
        let different = pairs
            .enumerate()
            .find(|(_, (expected, found))| expected != found);
        let shown = different.map(|(at, bits)| (at / NARROW, at % NARROW, bits));
        assert_eq!(shown, None, "{}", device.name());
    }
}
