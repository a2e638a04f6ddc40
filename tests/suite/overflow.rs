//! Integers that overflow, in kernels that ask for it: errors with their line on every device.

use exactile::Error;
use exactile::prelude::*;

use super::language::{devices, upload};

#[kernel(overflow = "checked")]
fn computes<T: Int, const OP: usize>(x: Ptr<T>, y: Ptr<T>, out: PtrMut<T>) {
    let at = program_id(0) * 2 + arange(0, 2);
    let (x, y) = (load(x + at), load(y + at));
    let mut result = x;
    match OP {
        0 => result = x + y,
        1 => result = x - y,
        2 => result = x * y,
        3 => result += y,
        4 => result -= y,
        _ => result *= y,
    }
    store(out + at, result);
}

/// What a device does with four pairs of numbers, of which the one that overflows first, if any, is known by exact arithmetic.
fn pairs_are_checked<T>(numbers: &[i128], of: fn(i128) -> Option<T>)
where
    T: Int + exactile::Number + PartialEq,
{
    for device in devices() {
        for op in 0..6 {
            let (exact, word) = match op % 3 {
                0 => ((|x, y| x + y) as fn(i128, i128) -> i128, "sum"),
                1 => ((|x, y| x - y) as fn(i128, i128) -> i128, "difference"),
                _ => ((|x, y| x * y) as fn(i128, i128) -> i128, "product"),
            };
            for &y in numbers {
                let x: Vec<T> = numbers.iter().filter_map(|&x| of(x)).collect();
                let y4 = vec![of(y).expect("fits"); x.len()];
                let (a, b) = (upload(&device, &x), upload(&device, &y4));
                let mut out = Buffer::<T>::zeros(&device, x.len()).expect("fits");
                let kernel = computes::<T>().op(op);
                let found = kernel.run(&device, x.len() / 2, (&a, &b, &mut out));
                let first = numbers.iter().position(|&x| of(exact(x, y)).is_none());
                let Some(first) = first else {
                    found.expect("is exact");
                    let want: Vec<T> = numbers.iter().filter_map(|&x| of(exact(x, y))).collect();
                    assert!(out.to_vec().expect("reads") == want, "{device} {op} {y}");
                    continue;
                };
                let error = found.expect_err("overflows");
                assert!(matches!(error, Error::Assertion { .. }), "{error}");
                let text = error.to_string();
                let message = format!("a {word} of `{}` overflows", T::DTYPE);
                assert!(text.contains(&message), "{text}");
                let line = format!("overflow.rs:{}", 14 + op);
                assert!(text.contains(&line), "{text}");
                let place = format!("program [{}, 0, 0]", first / 2);
                assert!(text.contains(&place), "{text}");
            }
        }
    }
}

#[test]
fn what_does_not_fit_is_an_error_with_its_line() {
    let signed = |bits: u32| {
        let most = (1i128 << (bits - 1)) - 1;
        vec![0, 1, -1, 2, most / 2, -7, most, -most - 1]
    };
    let unsigned = |bits: u32| {
        let most = (1i128 << bits) - 1;
        vec![0, 1, 2, 3, most / 2, 17, most - 1, most]
    };
    pairs_are_checked::<i8>(&signed(8), |x| i8::try_from(x).ok());
    pairs_are_checked::<u16>(&unsigned(16), |x| u16::try_from(x).ok());
    pairs_are_checked::<i32>(&signed(32), |x| i32::try_from(x).ok());
    pairs_are_checked::<u32>(&unsigned(32), |x| u32::try_from(x).ok());
    pairs_are_checked::<i64>(&signed(64), |x| i64::try_from(x).ok());
    pairs_are_checked::<u64>(&unsigned(64), |x| u64::try_from(x).ok());
}

#[device]
fn wraps(x: Scalar<i32>) -> Scalar<i32> {
    x * x + x
}

#[device(overflow = "checked")]
fn checks(x: Scalar<i32>) -> Scalar<i32> {
    2 * x
}

/// Floats, the host, pointers, and what functions and combines compute are left alone.
#[kernel(overflow = "checked", BLOCK = 4)]
fn mixes<const BLOCK: usize, const CHECKS: usize>(x: Ptr<i32>, out: PtrMut<i32>, n: i32) {
    let at = arange(0, BLOCK * 2 - BLOCK);
    let numbers = load(x + at);
    let total = reduce(numbers, 0, |a, b| a + b);
    let words = randint(7, at + 1) & 1;
    let mut half = 0.5 * total.to::<f32>();
    half += 1e38 * 1e38;
    let mut sum = wraps(n) + (half > 0.0).to::<i32>().scalar();
    sum = if CHECKS == 1 { checks(n) } else { sum };
    store(out + at, numbers);
    store(out + BLOCK, sum);
    store(
        out + (BLOCK + 1),
        total + words.to::<i32>().sum(0).to::<i32>() * 0,
    );
}

#[test]
fn only_the_text_of_the_kernel_is_checked() {
    let n = 100_000i32;
    for device in devices() {
        let x = upload(&device, &[i32::MAX, i32::MAX, 5, 6]);
        let mut out = Buffer::<i32>::zeros(&device, 6).expect("fits");
        mixes()
            .checks(0)
            .run(&device, 1, (&x, &mut out, n))
            .expect("wraps");
        let want = [
            i32::MAX,
            i32::MAX,
            5,
            6,
            n.wrapping_mul(n).wrapping_add(n) + 1,
            9,
        ];
        assert_eq!(out.to_vec().expect("reads"), want, "{device}");
        let kernel = mixes().checks(1);
        kernel.run(&device, 1, (&x, &mut out, n)).expect("fits");
        let error = kernel.run(&device, 1, (&x, &mut out, i32::MAX));
        let text = error.expect_err("overflows").to_string();
        assert!(text.contains("a product of `i32` overflows"), "{text}");
        assert!(text.contains("overflow.rs:89"), "{text}");
    }
}
