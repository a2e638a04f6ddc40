//! Errors of the trace that say what to write instead, and `match` on floats and limits of numbers.

use exactile::prelude::*;

use super::language::{devices, upload};

#[kernel]
fn takes_48<const BLOCK: usize>(x: Ptr<f32>, out: PtrMut<f32>) {
    let at = arange(0, BLOCK);
    store(out + at, load(x + at) + full([24], 1.0));
}

#[kernel]
fn stores_a_tile(x: Ptr<f32>, out: PtrMut<f32>) {
    let tile = load(x + arange(0, 4));
    store(out, tile);
    store(out, tile.reshape([2, 2]));
    store(out + arange(0, 2), tile.slice(0, 1, 2));
}

#[kernel]
fn grows(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let mut sums = vec![load(x)];
    for i in 0..n {
        sums.push(load(x + i));
    }
    store(out, sums[0]);
}

#[kernel]
fn calls_a_closure(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let mut sum = load(x);
    let mut add = |i: Scalar<i64>| sum += load(x + i);
    for i in 0..n {
        add(i);
    }
    store(out, sum);
}

#[test]
fn errors_of_the_trace_say_what_to_write() {
    let errors = [
        takes_48().block(48).check(),
        stores_a_tile().check(),
        grows().check(),
        calls_a_closure().check(),
    ];
    let errors = errors.map(|it| it.expect_err("is refused").to_string());
    let remedies: [&[&str]; 4] = [
        &[
            "extent `48` is not a power of two",
            "take 64, the next power of two, and a mask that leaves out the rest: `at < 48` of `let at = arange(0, 64)`",
            "take 32, the next power of two",
        ],
        &[
            "the pointer names one place: add the offsets of the others to it, as in `out + arange(0, 4)`",
            "as in `out + offsets of shape [2, 2]`",
            "a slice is a power of two of elements, begins at a multiple of their number and ends within the axis",
        ],
        &[
            "the device has no lists that grow: make it as long as it will be before, and set its elements by numbers of the host, \
           or loop over numbers of the host, as in `for i in 0..4`",
        ],
        &[
            "a closure hides what it changes: hand that to a `#[device]` function as `&mut`, or write the code where it is called",
        ],
    ];
    for (error, remedies) in errors.iter().zip(remedies) {
        for remedy in remedies {
            assert!(error.contains(remedy), "{error}");
        }
    }
}

#[kernel]
fn matches_numbers(x: Ptr<f32>, out: PtrMut<i32>, n: i32) {
    let kind = match load(x) {
        0.0 => 1,
        1.0..=2.5 => n,
        _ => 3,
    };
    let limit = match n {
        i32::MIN => 1,
        0..=i32::MAX => n / 2,
        _ => 3,
    };
    store(out, kind);
    store(out + 1, limit);
}

#[test]
fn floats_and_limits_are_matched() {
    for device in devices() {
        for (number, kind) in [(-0.0f32, 1), (2.5, 7), (2.75, 3), (f32::NAN, 3)] {
            for (n, limit) in [(i32::MIN, 1), (7, 3), (i32::MAX, i32::MAX / 2), (-7, 3)] {
                let x = upload(&device, &[number]);
                let mut out = upload(&device, &[0, 0]);
                matches_numbers()
                    .run(&device, 1, (&x, &mut out, n))
                    .expect("runs");
                let kind = if kind == 7 { n } else { kind };
                assert_eq!(
                    out.to_vec().expect("reads"),
                    [kind, limit],
                    "{device} {number} {n}"
                );
            }
        }
    }
}
