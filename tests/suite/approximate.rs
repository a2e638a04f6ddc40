//! Functions by approximate instructions, which are asked for by name.

use exactile::prelude::*;
use exactile::{Determinism, Error};

use super::language::{devices, upload};

const COUNT: usize = 256;

#[kernel]
fn approximations(x: Ptr<f32>, out: PtrMut<f32>) {
    let at = arange(0, COUNT);
    let x = load(x + at);
    let angle = x / 12.0;
    let results = [
        approx_exp(x),
        approx_exp2(x),
        approx_exp10(x),
        approx_log(x),
        approx_log2(x),
        approx_log10(x),
        approx_rsqrt(x),
        approx_sigmoid(x),
        approx_reciprocal(x),
        approx_sin(angle),
        approx_cos(angle),
        approx_tan(angle),
        approx_tanh(x),
        approx_pow(x, 1.5),
        approx_pow(x, -x),
        approx_divide(1.5, x),
        approx_divide(x, x + 1.0),
    ];
    for (row, result) in results.into_iter().enumerate() {
        store(out + at + row * COUNT, result);
    }
}

/// The functions, and how far off they are at most.
const FUNCTIONS: [(fn(f64) -> f64, f64); 17] = [
    (f64::exp, 3e-6),
    (f64::exp2, 3e-6),
    (|x| 10f64.powf(x), 6e-6),
    (f64::ln, 3e-6),
    (f64::log2, 3e-6),
    (f64::log10, 3e-6),
    (|x| 1.0 / x.sqrt(), 3e-6),
    (|x| 1.0 / (1.0 + (-x).exp()), 3e-6),
    (|x| 1.0 / x, 3e-6),
    (|x| (x / 12.0).sin(), 3e-6),
    (|x| (x / 12.0).cos(), 3e-6),
    (|x| (x / 12.0).tan(), 3e-5),
    (f64::tanh, 5e-4),
    (|x| x.powf(1.5), 3e-6),
    (|x| x.powf(-x), 6e-6),
    (|x| 1.5 / x, 3e-6),
    (|x| x / (x + 1.0), 3e-6),
];

#[test]
fn they_are_near_where_they_are_allowed() {
    let numbers: Vec<f32> = (1..=COUNT).map(|i| i as f32 / 16.0).collect();
    for device in devices() {
        let x = upload(&device, &numbers);
        let mut out = Buffer::<f32>::zeros(&device, FUNCTIONS.len() * COUNT).expect("allocates");
        let kernel = approximations();
        let kernel = kernel.determinism(Determinism::ScheduleInvariant);
        kernel.run(&device, 1, (&x, &mut out)).expect("is allowed");
        let found = out.to_vec().expect("reads back");
        for (row, (function, bound)) in found.chunks(COUNT).zip(FUNCTIONS) {
            for (&found, &x) in row.iter().zip(&numbers) {
                let want = function(f64::from(x));
                let error = (f64::from(found) - want).abs() / want.abs().max(1.0);
                assert!(error < bound, "{device}: {found} at {x}, not {want}");
            }
        }
    }
}

#[kernel]
fn edges(out: PtrMut<f32>) {
    let results = [
        approx_pow(scalar::<f32>(0.0), 0.0),
        approx_pow(scalar::<f32>(-2.0), 2.0),
        approx_divide(scalar::<f32>(0.0), 1e-45),
        approx_divide(scalar::<f32>(1.0), 1e-45),
    ];
    for (at, result) in results.into_iter().enumerate() {
        store(out + at, result);
    }
}

#[test]
fn two_numbers_keep_no_special_values() {
    for device in devices() {
        let mut out = Buffer::<f32>::zeros(&device, 4).expect("allocates");
        let kernel = edges().determinism(Determinism::ScheduleInvariant);
        kernel.run(&device, 1, (&mut out,)).expect("is allowed");
        let found = out.to_vec().expect("reads back");
        assert!(found[..3].iter().all(|it| it.is_nan()), "{found:?}");
        assert_eq!(found[3], f32::INFINITY, "{device}");
    }
}

#[kernel]
fn one_approximation<const WHICH: usize>(x: Ptr<f32>, out: PtrMut<f32>) {
    let at = arange(0, COUNT);
    let x = load(x + at);
    let result = match WHICH {
        0 => approx_sin(x),
        1 => approx_cos(x),
        2 => approx_tan(x),
        3 => approx_tanh(x),
        4 => approx_exp10(x),
        5 => approx_log10(x),
        6 => approx_pow(x, 2.0),
        _ => approx_divide(x, 3.0),
    };
    store(out + at, result);
}

#[test]
fn exact_refuses_each_and_names_the_exact_one() {
    let names = [
        "sin",
        "cos",
        "sin",
        "tanh",
        "exp2",
        "log2",
        "log2",
        "reciprocal",
    ];
    for (which, name) in names.into_iter().enumerate() {
        let error = one_approximation().which(which).check();
        let text = error.expect_err("is refused").to_string();
        let reason = format!("`approx_{name}` differs between devices");
        assert!(text.contains(&reason), "{text}");
        assert!(text.contains("write the exact one"), "{text}");
    }
}

#[test]
fn exact_refuses_them_with_their_line() {
    let device = Device::cpu();
    let x = upload(&device, &[0.0; COUNT]);
    let mut out = Buffer::<f32>::zeros(&device, FUNCTIONS.len() * COUNT).expect("allocates");
    let kernel = approximations();
    let error = kernel.run(&device, 1, (&x, &mut out));
    let Err(Error::Compile { .. }) = &error else {
        panic!("expected a refusal, found {error:?}");
    };
    let text = error.expect_err("is refused").to_string();
    assert!(
        text.contains("`approx_exp2` differs between devices"),
        "{text}"
    );
    assert!(text.contains("approximate.rs:"), "{text}");
}
