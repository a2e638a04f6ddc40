//! Counts, gathers and atomics, executed on every device of the host.

use exactile::prelude::*;
use exactile::{Determinism, Error, Schedule, assert_bits_equal};

use crate::language::devices;

#[kernel(BLOCK = 64)]
fn count<T: Int, const BINS: usize, const BLOCK: usize>(x: Ptr<T>, out: PtrMut<i32>, n: i64) {
    let programs = num_programs(0);
    let turns = (n + (programs * BLOCK - 1)) / (programs * BLOCK);
    let mut counts = zeros::<i32>([BINS]);
    for turn in range(0, turns) {
        let at = (turn * programs + program_id(0)) * BLOCK + arange(0, BLOCK);
        let inside = at < n;
        counts += histogram_masked(load(x + at).mask(inside), inside, BINS);
    }
    atomic_add(out + arange(0, BINS), counts);
}

#[test]
fn counts_are_the_same_for_every_tile_size_and_grid() {
    let x: Vec<i16> = (0..1000).map(|i: i32| (i * i % 37 - 3) as i16).collect();
    let mut want = vec![0i32; 32];
    for &number in &x {
        if let Some(count) = usize::try_from(number).ok().and_then(|at| want.get_mut(at)) {
            *count += 1;
        }
    }
    for device in devices() {
        let input = Buffer::from_slice(&device, &x).expect("fits");
        for (block, warps, programs) in [(64, 1, 1), (16, 1, 5), (512, 4, 2), (256, 8, 3)] {
            let kernel = count::<i16>()
                .bins(32)
                .block(block)
                .schedule(Schedule::AUTO.warps(warps));
            let mut out = Buffer::<i32>::zeros(&device, 32).expect("fits");
            kernel
                .run(&device, programs, (&input, &mut out, 1000))
                .expect("runs");
            assert_bits_equal(&out, &want);
        }
    }
}

#[kernel(BLOCK = 16)]
fn pick<const BLOCK: usize>(x: Ptr<f32>, index: Ptr<i64>, out: PtrMut<f32>) {
    let at = arange(0, BLOCK);
    let row = load(x + at);
    let picked = gather(row, load(index + at), 0);
    store(out + at, picked);
}

#[test]
fn gathers_take_elements_by_their_indices() {
    let x: Vec<f32> = (0..16).map(|i| i as f32 * 0.5).collect();
    let index: Vec<i64> = (0..16).map(|i| (i * 7 + 3) % 16).collect();
    let want: Vec<f32> = index.iter().map(|&i| x[i as usize]).collect();
    for device in devices() {
        let input = Buffer::from_slice(&device, &x).expect("fits");
        let indices = Buffer::from_slice(&device, &index).expect("fits");
        let mut out = Buffer::<f32>::zeros(&device, 16).expect("fits");
        pick()
            .run(&device, 1, (&input, &indices, &mut out))
            .expect("runs");
        assert_bits_equal(&out, &want);
    }
}

#[test]
fn an_index_out_of_range_is_an_error_in_every_launch() {
    let x: Vec<f32> = (0..16).map(|i| i as f32).collect();
    for device in devices() {
        let input = Buffer::from_slice(&device, &x).expect("fits");
        let mut out = Buffer::<f32>::zeros(&device, 16).expect("fits");
        let mut index = vec![0i64; 16];
        // The first launch is in range: it must not prove those after it.
        for (wrong, found) in [(None, 0), (Some(9), 16), (Some(3), -1)] {
            if let Some(at) = wrong {
                index[at] = found;
            }
            let indices = Buffer::from_slice(&device, &index).expect("fits");
            let result = pick().run(&device, 1, (&input, &indices, &mut out));
            match (wrong, result) {
                (None, Ok(())) => {}
                (
                    Some(at),
                    Err(Error::OutOfBounds {
                        loc,
                        argument,
                        length,
                        element,
                        offset,
                        ..
                    }),
                ) => {
                    assert_eq!((argument.as_str(), loc.line), ("gather axis 0", 50));
                    assert_eq!((length, element, offset), (16, at as u64, found));
                }
                (_, other) => panic!("{device}: {other:?}"),
            }
        }
    }
}

#[kernel(BLOCK = 32)]
fn extremes<T: AtomicInt, const BLOCK: usize>(x: Ptr<T>, out: PtrMut<T>) {
    let at = arange(0, BLOCK);
    let number = load(x + program_id(0) * BLOCK + at);
    atomic_min(out + at % 2, number).mask(at < 30);
    atomic_max(out + 2, number.max(0));
    atomic_and(out + 3, number.max(0));
    atomic_or(out + (at % 2 + 4), number);
    atomic_xor(out + 6, number.xor(0));
}

#[test]
fn atomics_combine_what_all_programs_have() {
    let x: Vec<i64> = (0..96)
        .map(|i: i64| i * 0x1234_5678_9abc % 1009 - 500)
        .collect();
    let each = |parity: usize| {
        let places = (0..96).filter(move |i| i % 2 == parity);
        places.collect::<Vec<usize>>()
    };
    let least = |parity| {
        let kept = each(parity).into_iter().filter(|i| i % 32 < 30);
        kept.map(|i| x[i]).min().expect("some").min(7)
    };
    let or = |parity| each(parity).into_iter().fold(7, |sum, i| sum | x[i]);
    let tops: Vec<i64> = x
        .chunks(32)
        .map(|part| *part.iter().max().expect("some"))
        .collect();
    let want = [
        least(0),
        least(1),
        tops.iter().fold(7, |a, &b| a.max(b)),
        tops.iter().fold(7, |a, &b| a & b),
        or(0),
        or(1),
        x.iter().fold(7, |sum, number| sum ^ number),
    ];
    for device in devices() {
        let input = Buffer::from_slice(&device, &x).expect("fits");
        let mut out = Buffer::from_slice(&device, &[7i64; 7]).expect("fits");
        extremes::<i64>()
            .run(&device, 3, (&input, &mut out))
            .expect("runs");
        assert_bits_equal(&out, &want);
    }
}

#[kernel(BLOCK = 32)]
fn float_sum<const BLOCK: usize>(x: Ptr<f32>, out: PtrMut<f32>) {
    atomic_add(out, load(x + arange(0, BLOCK)).sum(0));
}

#[test]
fn atomic_sums_of_floats_need_a_level_that_allows_them() {
    let kernel = float_sum();
    for device in devices() {
        let x = Buffer::from_slice(&device, &[0.5f32; 32]).expect("fits");
        let mut out = Buffer::from_slice(&device, &[1.0f32]).expect("fits");
        for level in [
            Determinism::BatchInvariant,
            Determinism::ScheduleInvariant,
            Determinism::Exact,
        ] {
            let refused = kernel.clone().determinism(level);
            let error = refused.run(&device, 2, (&x, &mut out));
            let message = error.expect_err("is refused").to_string();
            let reason = format!(
                "`atomic_reduce` adds floats in the order of arrival, but the determinism level is \
                 `{}`",
                level.name()
            );
            assert!(message.contains(&reason), "{message}");
            assert!(message.contains("lookup.rs:156"), "{message}");
            assert!(message.contains("Determinism::NotGuaranteed"), "{message}");
            let library = "`exactile_kernels::segment_sum`";
            assert!(message.contains(library), "{message}");
        }
        let allowed = kernel.clone().determinism(Determinism::NotGuaranteed);
        allowed.run(&device, 2, (&x, &mut out)).expect("runs");
        assert_bits_equal(&out, &[33.0f32]);
    }
}

#[kernel(BLOCK = 8)]
fn mixed<const BLOCK: usize>(out: PtrMut<i32>) {
    let at = arange(0, BLOCK);
    atomic_add(out + at, 1);
    store(out + at, 2);
}

#[test]
fn an_atomic_and_a_store_of_two_programs_are_a_race() {
    let device = Device::interpreter();
    let mut out = Buffer::<i32>::zeros(&device, 8).expect("fits");
    let kernel = mixed();
    kernel.run(&device, 1, (&mut out,)).expect("one program");
    let error = kernel.run(&device, 2, (&mut out,));
    let message = error.expect_err("is a race").to_string();
    assert!(
        message.contains("`out[0]`, which program 0 wrote"),
        "{message}"
    );
}

#[kernel(BLOCK = 16)]
fn tickets<T: AtomicInt, const BLOCK: usize>(counter: PtrMut<T>, x: PtrMut<T>, out: PtrMut<T>) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    store(out + at, atomic_fetch_add(counter, 1));
    let before = atomic_fetch_xor(x + at, load(out + at)).mask(arange(0, BLOCK) < 12);
    let swapped = atomic_compare_exchange(x + at, 5, 9);
    store(x + at, before + swapped + atomic_exchange(x + at, 1));
}

#[test]
fn atomics_give_what_memory_held() {
    for device in devices() {
        let mut counter = Buffer::from_slice(&device, &[40i64]).expect("fits");
        let mut x = Buffer::from_slice(&device, &[5i64; 48]).expect("fits");
        let mut out = Buffer::<i64>::zeros(&device, 48).expect("fits");
        let kernel = tickets::<i64>();
        let refused = kernel.run(&device, 3, (&mut counter, &mut x, &mut out));
        let message = refused.expect_err("is refused").to_string();
        let reason = "`atomic_fetch` gives what memory holds when its turn comes, but the determinism \
                      level is `exact`";
        assert!(message.contains(reason), "{message}");
        assert!(message.contains("lookup.rs:216"), "{message}");
        let kernel = kernel.determinism(Determinism::NotGuaranteed);
        let run = kernel.run(&device, 3, (&mut counter, &mut x, &mut out));
        run.expect("runs");
        assert_bits_equal(&counter, &[43i64]);
        let (tickets, x) = (out.to_vec().expect("reads"), x.to_vec().expect("reads"));
        let mut firsts: Vec<i64> = tickets.chunks(16).map(|all| all[0]).collect();
        firsts.sort_unstable();
        assert_eq!(firsts, [40, 41, 42], "{device}");
        for (at, (&ticket, &found)) in tickets.iter().zip(&x).enumerate() {
            assert_eq!(ticket, tickets[at / 16 * 16], "one ticket for a program");
            let (before, then) = if at % 16 < 12 {
                (5, 5 ^ ticket)
            } else {
                (0, 5)
            };
            let after = if then == 5 { 9 } else { then };
            assert_eq!(found, before + then + after, "{device} at {at}");
        }
    }
}

#[kernel(BLOCK = 16)]
fn replacements<T: AtomicExchange, const BLOCK: usize>(
    x: PtrMut<T>,
    expected: Ptr<T>,
    value: Ptr<T>,
    out: PtrMut<T>,
) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let odd = at % 2 == 1;
    let (expected, value) = (load(expected + at), load(value + at));
    store(
        out + at,
        atomic_compare_exchange(x + at, expected, value).mask(odd),
    );
    let total = num_programs(0) * BLOCK;
    store(
        out + total + at,
        atomic_exchange(x + at, expected).mask(at % 4 == 0),
    );
    atomic_store(x + at, value).mask(at % 8 == 2);
    store(out + total * 2 + at, atomic_load(x + at));
}

/// Replaces numbers, of which two lie in a word of 32 bits, beside those that stay.
fn replaced_beside_others<T: AtomicExchange + exactile::Number + PartialEq>(of: fn(i32) -> T) {
    const COUNT: usize = 48;
    let numbers = |f: fn(i32) -> i32| (0..COUNT as i32).map(|at| of(f(at))).collect::<Vec<T>>();
    let [held, expected, value] = [numbers(|at| at % 5), numbers(|at| at % 3), numbers(|at| at)];
    let mut want = vec![of(0); 3 * COUNT];
    let mut left = held.clone();
    for at in 0..COUNT {
        if at % 2 == 1 {
            want[at] = left[at];
            if left[at] == expected[at] {
                left[at] = value[at];
            }
        }
        if at % 4 == 0 {
            want[COUNT + at] = left[at];
            left[at] = expected[at];
        }
        if at % 8 == 2 {
            left[at] = value[at];
        }
        want[2 * COUNT + at] = left[at];
    }
    for device in devices() {
        let mut x = super::language::upload(&device, &held);
        let (expected, value) = (
            super::language::upload(&device, &expected),
            super::language::upload(&device, &value),
        );
        let mut out = Buffer::<T>::zeros(&device, 3 * COUNT).expect("fits");
        let kernel = replacements::<T>().determinism(Determinism::NotGuaranteed);
        let run = kernel.run(&device, 3, (&mut x, &expected, &value, &mut out));
        run.expect("runs");
        assert_bits_equal(&out, &want);
        assert_bits_equal(&x, &left);
    }
}

#[test]
fn numbers_of_16_bits_are_replaced_beside_others() {
    replaced_beside_others::<i16>(|x| x as i16 * -3);
    replaced_beside_others::<u16>(|x| x as u16);
    replaced_beside_others::<f16>(|x| f16::from_f64(f64::from(x) * 0.5));
    replaced_beside_others::<bf16>(|x| bf16::from_f64(f64::from(x) * 0.5));
    replaced_beside_others::<u32>(|x| x as u32);
    replaced_beside_others::<f64>(f64::from);
}
