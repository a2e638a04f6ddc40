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
                let launched = roots(Default::default()).run(&device, 5, (&input, &mut out, n));
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
            let launched = counts(Default::default()).run(&device, 1, (&mut out, n));
            let refused = matches!(launched, Err(Error::Assertion { .. }));
            assert_eq!(refused, n == 5, "{device}: {launched:?}");
        }
    }
}
