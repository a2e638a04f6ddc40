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

/// Branches within branches. [`nested_on_host`] says the same, with fewer of them where the host decides.
#[device]
fn nested_on_device(number: Scalar<f32>, n: Scalar<i32>, size: usize) -> [Scalar<f32>; 4] {
    let first = if n > 5 {
        number
    } else if n > 4 {
        0.5
    } else {
        1.5
    };
    let kind = match n {
        0 => n + 9,
        1 => 2,
        2 | 3 => match n {
            2 => 5,
            _ => 6,
        },
        _ => 7,
    };
    let last = if n > 5 {
        1.0
    } else {
        let half = number * 0.5;
        if n > 2 {
            half
        } else if size > 5 {
            if n > 1 { 3.0 } else { 4.0 }
        } else {
            5.0
        }
    };
    let host = if size > 64 {
        size
    } else if size > 32 {
        8
    } else {
        4
    };
    let host =
        host + if size > 32 {
            if size > 64 { 3 } else { 2 }
        } else if size > 8 {
            size
        } else {
            1
        } + match size {
            5 => size,
            40 => 4,
            _ => match size {
                9 => 7,
                _ => 6,
            },
        } + match size {
            5 => 1,
            40 => match size {
                3 => 1,
                _ => 2,
            },
            _ => size,
        };
    [first, kind.to::<f32>(), last, scalar(host as f64)]
}

fn nested_on_host(number: f32, n: i32, size: usize) -> [f32; 4] {
    let first = if n > 5 {
        number
    } else if n > 4 {
        0.5
    } else {
        1.5
    };
    let kind = match n {
        0 => n + 9,
        1 => 2,
        2 | 3 => match n {
            2 => 5,
            _ => 6,
        },
        _ => 7,
    };
    let last = if n > 5 {
        1.0
    } else {
        let half = number * 0.5;
        if n > 2 {
            half
        } else if size > 5 {
            if n > 1 { 3.0 } else { 4.0 }
        } else {
            5.0
        }
    };
    let host = if size > 64 {
        size
    } else if size > 32 {
        8
    } else {
        4
    };
    let host =
        host + if size > 32 {
            if size > 64 { 3 } else { 2 }
        } else if size > 8 {
            size
        } else {
            1
        } + match size {
            5 => size,
            40 => 4,
            9 => 7,
            _ => 6,
        } + match size {
            5 => 1,
            40 => 2,
            _ => size,
        };
    [first, kind as f32, last, host as f32]
}

#[kernel]
fn nested<const SIZE: usize>(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let numbers = nested_on_device(load(x), n, SIZE);
    for (i, number) in numbers.into_iter().enumerate() {
        store(out + i, number);
    }
}

#[test]
fn literals_of_branches_within_branches_have_the_type_of_the_other_ends() {
    for device in devices() {
        let x = upload(&device, &[1.25f32]);
        for size in [5, 9, 40, 100] {
            for n in 0..7 {
                let mut out = upload(&device, &[9.0f32; 4]);
                nested()
                    .size(size)
                    .run(&device, 1, (&x, &mut out, n))
                    .expect("runs");
                let got = out.to_vec().expect("reads");
                assert_eq!(got, nested_on_host(1.25, n, size), "{device} {n} {size}");
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
