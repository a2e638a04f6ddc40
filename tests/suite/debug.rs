//! What a kernel states of its numbers, and who says that it does not hold.

use exactile::{Error, prelude::*};

use crate::language::{devices, upload};

#[kernel(BLOCK = 64)]
fn roots<const BLOCK: usize>(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let mask = at < n;
    let x = load(x + at).mask(mask);
    device_assert(!mask | (x >= 0.0), "x has a root; it is \"positive\"");
    store(out + at, x.sqrt()).mask(mask);
}

#[test]
fn a_failed_assertion_names_its_line_and_its_element() {
    for device in devices() {
        let mut x: Vec<f32> = (0..300).map(|i| i as f32).collect();
        for wrong in [None, Some(299), Some(130)] {
            if let Some(at) = wrong {
                x[at] = -1.0;
            }
            let input = upload(&device, &x);
            let mut out = Buffer::<f32>::zeros(&device, 300).expect("fits");
            // Of 20 elements nothing is wrong: the launch proves nothing of others.
            for n in [20, 300] {
                let launched = roots().run(&device, 5, (&input, &mut out, n));
                match (wrong.filter(|&at| at < n as usize), launched) {
                    (None, Ok(())) => {}
                    (
                        Some(at),
                        Err(Error::Assertion {
                            kernel,
                            loc,
                            message,
                            program,
                            element,
                        }),
                    ) => {
                        assert_eq!((kernel.as_str(), loc.line), ("roots", 12));
                        assert!(loc.file.ends_with("debug.rs"));
                        assert_eq!(message, "x has a root; it is \"positive\"");
                        let first = (at as u64 / 64, at as u64 % 64);
                        assert_eq!((program, element), ([first.0, 0, 0], first.1), "{device}");
                    }
                    (_, other) => panic!("{device}: {other:?}"),
                }
            }
        }
    }
}

/// An assertion about scalars alone holds for all launches with these, once it has held.
#[kernel]
fn counts(out: PtrMut<i32>, n: i32) {
    device_assert(n % 4 == 0, "n is a multiple of 4");
    store(out, n);
}

#[test]
fn assertions_about_scalars_are_checked_for_each_number() {
    for device in devices() {
        let mut out = Buffer::<i32>::zeros(&device, 1).expect("fits");
        for n in [4, 4, 5, 8, 5] {
            let launched = counts().run(&device, 1, (&mut out, n));
            let refused = matches!(launched, Err(Error::Assertion { .. }));
            assert_eq!(refused, n == 5, "{device}: {launched:?}");
        }
    }
}

#[kernel(BLOCK = 16)]
fn stated_in_a_sum<const BLOCK: usize>(x: Ptr<i32>, out: PtrMut<i32>) {
    let x = load(x + arange(0, BLOCK));
    let sum = reduce(x, 0, |a, b| {
        device_assert(b >= 0, "no number is negative");
        a + b
    });
    store(out, sum);
}

#[kernel(BLOCK = 16)]
fn stated_in_prefixes<const BLOCK: usize>(x: Ptr<i32>, out: PtrMut<i32>) {
    let at = arange(0, BLOCK);
    let sums = scan(load(x + at), 0, |a, b| {
        device_assert(b >= 0, "no number is negative");
        a + b
    });
    store(out + at, sums);
}

/// What a combine finds, told by a flag beside its numbers.
#[kernel(BLOCK = 16)]
fn stated_behind<const BLOCK: usize>(x: Ptr<i32>, out: PtrMut<i32>) {
    let x = load(x + arange(0, BLOCK));
    let (sum, holds) = reduce((x, x >= 0), 0, |a, b| {
        (a.0 + b.0, a.1 & b.1 & (a.0 + b.0 < 1000))
    });
    device_assert(holds, "no sum is great");
    store(out, sum);
}

#[test]
fn a_combine_states_nothing_but_gives_a_flag() {
    for device in devices() {
        let input = upload(&device, &[1i32; 16]);
        let mut out = Buffer::<i32>::zeros(&device, 16).expect("fits");
        let sum = stated_in_a_sum().run(&device, 1, (&input, &mut out));
        let prefixes = stated_in_prefixes().run(&device, 1, (&input, &mut out));
        for (refused, op, line) in [(sum, "reduce", 77), (prefixes, "scan", 87)] {
            let message = refused.expect_err("is refused").to_string();
            let reason = format!("combiner of `{op}` has an effect: `assert`");
            assert!(message.contains(&reason), "{message}");
            assert!(message.contains(&format!("debug.rs:{line}")), "{message}");
            assert!(message.contains(&format!("before the `{op}`")), "{message}");
            assert!(message.contains("beside the numbers"), "{message}");
        }
        for (number, is_great) in [(62, false), (63, true)] {
            let input = upload(&device, &[number; 16]);
            let run = stated_behind().run(&device, 1, (&input, &mut out));
            match run {
                Ok(()) => {
                    assert!(!is_great, "{device}");
                    assert_eq!(out.to_vec().expect("reads")[0], 62 * 16, "{device}");
                }
                Err(Error::Assertion { message, .. }) => {
                    assert!(is_great && message == "no sum is great", "{device}");
                }
                Err(other) => panic!("{device}: {other}"),
            }
        }
    }
}
