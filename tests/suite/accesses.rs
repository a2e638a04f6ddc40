//! What accesses are told beside their place: hints for caches, orders and scopes of atomics.

use exactile::{Determinism, assert_bits_equal, prelude::*};

use crate::language::devices;

#[kernel]
fn misplaced(x: Ptr<f32>, out: PtrMut<f32>, count: PtrMut<i32>) {
    let at = arange(0, 4);
    let twice = load(x + at) * 2.0;
    store(out + at, twice.cache(Cache::Streaming));
    atomic_add(count, 1).cache(Cache::Streaming).mask(true);
}

#[test]
fn a_hint_stands_behind_its_access() {
    let errors = misplaced().check();
    let errors = errors.expect_err("neither is one").to_string();
    for access in ["load", "store"] {
        let wanted = format!("`cache` does not directly follow a `{access}`");
        assert!(errors.contains(&wanted), "{errors}");
    }
}

#[kernel]
fn other_side(x: Ptr<f32>, out: PtrMut<f32>) {
    let x = load(x).cache(Cache::WriteThrough);
    store(out, x);
    store(out + 1, x).cache(Cache::Anew);
}

#[test]
fn loads_and_stores_have_hints_of_their_own() {
    let errors = other_side().check();
    let errors = errors.expect_err("neither is one").to_string();
    for wanted in ["`load` is never `write_through`", "`store` is never `anew`"] {
        assert!(errors.contains(wanted), "{errors}");
    }
}

/// Each program leaves a sum, and the last to come adds them up.
#[kernel(BLOCK = 32, ORDERED = true)]
fn last_adds<const BLOCK: usize, const ORDERED: bool>(
    x: Ptr<f32>,
    parts: PtrMut<f32>,
    count: PtrMut<u32>,
    out: PtrMut<f32>,
) {
    let (program, programs) = (program_id(0), num_programs(0));
    store(
        parts + program,
        load(x + program * BLOCK + arange(0, BLOCK)).sum(0),
    );
    let before = atomic_fetch_add(count, 1);
    let before = if ORDERED {
        before.order(MemoryOrder::AcquireRelease)
    } else {
        before
    };
    if before.to::<i64>() + 1 == programs {
        let at = arange(0, BLOCK);
        store(out, load(parts + at).mask(at < programs).sum(0));
        atomic_store(count, 0);
    }
}

#[test]
fn the_last_program_sees_what_the_others_left() {
    let numbers: Vec<f32> = (0..20 * 32).map(|at| (at % 19) as f32 - 7.25).collect();
    for device in devices() {
        let x = Buffer::from_slice(&device, &numbers).expect("fits");
        let mut parts = Buffer::<f32>::zeros(&device, 20).expect("fits");
        let mut count = Buffer::<u32>::zeros(&device, 1).expect("fits");
        let kernel = last_adds().determinism(Determinism::NotGuaranteed);
        for _ in 0..3 {
            let mut out = Buffer::<f32>::zeros(&device, 1).expect("fits");
            let run = kernel.run(&device, 20, (&x, &mut parts, &mut count, &mut out));
            run.expect("runs");
            assert_bits_equal(&out, &[numbers.iter().sum::<f32>()]);
            assert_bits_equal(&count, &[0u32]);
        }
    }
}

#[test]
fn without_an_order_programs_hand_each_other_nothing() {
    let device = Device::interpreter();
    let x = Buffer::<f32>::zeros(&device, 64).expect("fits");
    let mut parts = Buffer::<f32>::zeros(&device, 2).expect("fits");
    let mut count = Buffer::<u32>::zeros(&device, 1).expect("fits");
    let mut out = Buffer::<f32>::zeros(&device, 1).expect("fits");
    let kernel = last_adds().ordered(false);
    let kernel = kernel.determinism(Determinism::NotGuaranteed);
    let error = kernel.run(&device, 2, (&x, &mut parts, &mut count, &mut out));
    let message = error.expect_err("is a race").to_string();
    assert!(
        message.contains("`parts[0]`, which program 0 wrote"),
        "{message}"
    );
}

/// The first program hands a number to the second, where the flag is as it expects.
#[kernel]
fn hands(flag: PtrMut<i32>, parts: PtrMut<f32>, out: PtrMut<f32>, expected: i32) {
    if program_id(0) == 0 {
        store(parts, 3.0);
        let _ = atomic_compare_exchange(flag, expected, 1).order(MemoryOrder::Release);
    } else {
        let seen = atomic_load(flag).order(MemoryOrder::Acquire);
        store(out, load(parts) + seen.to::<f32>());
    }
}

#[test]
fn an_exchange_that_fails_releases_nothing() {
    let device = Device::interpreter();
    let run = |expected: i32| {
        let mut flag = Buffer::<i32>::zeros(&device, 1).expect("fits");
        let mut parts = Buffer::<f32>::zeros(&device, 1).expect("fits");
        let mut out = Buffer::<f32>::zeros(&device, 1).expect("fits");
        let kernel = hands().determinism(Determinism::NotGuaranteed);
        kernel.run(&device, 2, (&mut flag, &mut parts, &mut out, expected))
    };
    run(0).expect("the second program acquires what the first has released");
    let message = run(5).expect_err("is a race").to_string();
    assert!(
        message.contains("`parts[0]`, which program 0 wrote"),
        "{message}"
    );
}

#[kernel]
fn orders(x: PtrMut<i32>, out: PtrMut<i32>) {
    let x = x + program_id(0);
    store(
        out + program_id(0),
        atomic_load(x)
            .scope(Scope::System)
            .order(MemoryOrder::Acquire),
    );
    atomic_add(x, 1)
        .order(MemoryOrder::Release)
        .scope(Scope::Program);
    atomic_store(x, 3)
        .order(MemoryOrder::Release)
        .mask(load(out + program_id(0)) > 3);
}

#[test]
fn atomics_have_orders_and_scopes() {
    let kernel = orders();
    let ir = kernel.ir().expect("traces");
    for wanted in [
        "op=load, order=acquire, scope=system",
        "op=add, order=release, scope=program",
        "op=exchange, order=release",
    ] {
        assert!(ir.contains(wanted), "{ir}");
    }
    let kernel = kernel.determinism(Determinism::NotGuaranteed);
    for device in devices() {
        let mut x = Buffer::from_slice(&device, &[2i32, 5, 8]).expect("fits");
        let mut out = Buffer::<i32>::zeros(&device, 3).expect("fits");
        kernel.run(&device, 3, (&mut x, &mut out)).expect("runs");
        assert_bits_equal(&out, &[2i32, 5, 8]);
        assert_bits_equal(&x, &[3i32, 3, 3]);
    }
}

#[kernel]
fn too_many(count: PtrMut<i32>) {
    atomic_add(count, arange(0, 8).to::<i32>());
    store(count, atomic_exchange(count, arange(0, 8).to::<i32>()));
    store(count, load(count).order(MemoryOrder::Acquire));
}

#[test]
fn an_atomic_names_itself_where_numbers_do_not_fit() {
    let errors = too_many().check();
    let errors = errors.expect_err("none fits").to_string();
    for wanted in [
        "`atomic_add`: a tile of shape [8] does not go to one address",
        "`atomic_exchange`: a tile of shape [8] does not go to one address",
        "`ptr + offsets` is an address for each element",
        "`order` does not directly follow a `atomic`",
    ] {
        assert!(errors.contains(wanted), "{errors}");
    }
}
