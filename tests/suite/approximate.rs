//! Functions by approximate instructions, which are asked for by name.

use exactile::prelude::*;
use exactile::{Determinism, Error};

use super::language::{devices, upload};

const COUNT: usize = 256;

#[kernel]
fn approximations(x: Ptr<f32>, out: PtrMut<f32>) {
    let at = arange(0, COUNT);
    let x = load(x + at);
    let results = [
        approx_exp(x),
        approx_exp2(x),
        approx_log(x),
        approx_log2(x),
        approx_rsqrt(x),
        approx_sigmoid(x),
        approx_reciprocal(x),
    ];
    for (row, result) in results.into_iter().enumerate() {
        store(out + at + row * COUNT, result);
    }
}

const FUNCTIONS: [fn(f64) -> f64; 7] = [
    f64::exp,
    f64::exp2,
    f64::ln,
    f64::log2,
    |x| 1.0 / x.sqrt(),
    |x| 1.0 / (1.0 + (-x).exp()),
    |x| 1.0 / x,
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
        for (row, function) in found.chunks(COUNT).zip(FUNCTIONS) {
            for (&found, &x) in row.iter().zip(&numbers) {
                let want = function(f64::from(x));
                let error = (f64::from(found) - want).abs() / want.abs().max(1.0);
                assert!(error < 3e-6, "{device}: {found} at {x}, not {want}");
            }
        }
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
