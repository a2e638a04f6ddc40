//! Branches and arms of which some give a literal and others a number of the device, beside the same text as plain Rust.

use exactile::prelude::*;

use super::language::{devices, upload};

#[kernel]
fn mixed(x: Ptr<f32>, out: PtrMut<f32>, n: i32, flag: bool) {
    let number = load(x);
    let kind = match n {
        0 => 7,
        1 | 2 => n * 3,
        3..=5 if n > 4 => -1,
        _ => n,
    };
    let half = if n > 2 {
        0.5
    } else if n > 1 {
        number
    } else {
        1.5
    };
    let holds = if n > 3 { number > 2.0 } else { true };
    let host = if number.to::<i32>() == 0 { 4usize } else { 4 };
    store(out, kind.to::<f32>());
    store(out + 1, half);
    store(out + 2, select(holds, 1.0, 2.0));
    let size = 8usize;
    let count = if size > 4 { size } else { 4 };
    store(
        out + 3,
        if flag { number } else { 3.0 } + (host + count) as f64,
    );
}

fn on_host(number: f32, n: i32, flag: bool) -> [f32; 4] {
    let kind = match n {
        0 => 7,
        1 | 2 => n * 3,
        3..=5 if n > 4 => -1,
        _ => n,
    };
    let half = if n > 2 {
        0.5
    } else if n > 1 {
        number
    } else {
        1.5
    };
    let holds = if n > 3 { number > 2.0 } else { true };
    let last = if flag { number } else { 3.0 } + 12.0;
    [kind as f32, half, if holds { 1.0 } else { 2.0 }, last]
}

#[test]
fn literals_of_branches_are_numbers_of_the_device_beside_one() {
    for device in devices() {
        let x = upload(&device, &[1.25f32]);
        for n in 0..7 {
            for flag in [false, true] {
                let mut out = upload(&device, &[9.0f32; 4]);
                mixed()
                    .run(&device, 1, (&x, &mut out, n, flag))
                    .expect("runs");
                let got = out.to_vec().expect("reads");
                assert_eq!(got, on_host(1.25, n, flag), "{device} {n} {flag}");
            }
        }
    }
}

#[kernel]
fn untyped(out: PtrMut<f32>, n: i32) {
    store(out, if n > 5 { 1.0 } else { 2.0 });
}

#[test]
fn two_literals_say_what_to_write() {
    let error = untyped().check().expect_err("is refused").to_string();
    let remedy = "make numbers of the device of them, as `scalar(1.0)` in both branches, or write `select(condition, 1.0, 2.0)`";
    for part in ["different host values", remedy] {
        assert!(error.contains(part), "{error}");
    }
}
