//! `&&` and `||` of device values: what the right side does happens only where it decides, beside the same text as plain Rust.

use std::cell::Cell;

use exactile::ListingStage;
use exactile::prelude::*;

use super::language::{devices, upload};

#[device]
fn bump(place: PtrMut<i32>) -> Scalar<i32> {
    let number = load(place) + 1;
    store(place, number);
    number
}

/// Both operators over numbers that are read and written, in conditions of every kind.
#[kernel]
fn effects(out: PtrMut<i32>, n: i32) {
    if n > 3 && bump(out) > 0 {
        let _ = bump(out + 1);
    }
    if n > 3 || bump(out + 2) > 1 {
        let _ = bump(out + 3);
    }
    let _ = match n {
        1..=2 if bump(out + 4) > 0 => bump(out + 5),
        _ if n > 5 && bump(out + 6) > 0 || bump(out + 7) > 1 => bump(out + 8),
        _ => bump(out + 9),
    };
    let both = n > 1 && (n < 4 || bump(out + 10) > 0) && bump(out + 11) > 0;
    store(out + 12, select(both, 1, 2));
}

fn effects_on_host(n: i32) -> [i32; 13] {
    let out: [Cell<i32>; 13] = Default::default();
    let bump = |place: usize| {
        out[place].set(out[place].get() + 1);
        out[place].get()
    };
    if n > 3 && bump(0) > 0 {
        bump(1);
    }
    if n > 3 || bump(2) > 1 {
        bump(3);
    }
    match n {
        1..=2 if bump(4) > 0 => bump(5),
        _ if n > 5 && bump(6) > 0 || bump(7) > 1 => bump(8),
        _ => bump(9),
    };
    let both = n > 1 && (n < 4 || bump(10) > 0) && bump(11) > 0;
    out[12].set(if both { 1 } else { 2 });
    out.map(Cell::into_inner)
}

#[test]
fn the_right_side_has_effects_only_where_it_decides() {
    for device in devices() {
        for n in 0..8 {
            let mut out = upload(&device, &[0; 13]);
            effects().run(&device, 1, (&mut out, n)).expect("runs");
            let got = out.to_vec().expect("reads");
            assert_eq!(got, effects_on_host(n), "{device} {n}");
        }
    }
}

/// The first number from `limit` on, which a sentinel would otherwise have to end.
#[kernel]
fn finds(x: Ptr<f32>, out: PtrMut<i32>, n: i32, limit: f32) {
    let mut i = scalar::<i32>(0);
    while i < n && load(x + i) < limit {
        i += 1;
    }
    store(out, i);
    let mut j = n;
    while !(j == 0 || load(x + j - 1) >= limit) {
        j -= 1;
    }
    store(out + 1, j);
}

#[test]
fn a_condition_guards_the_access_behind_it() {
    let numbers = [1.0f32, 5.0, 2.0, 7.0];
    for device in devices() {
        let x = upload(&device, &numbers);
        for limit in [0.0, 2.0, 6.0, 50.0] {
            for n in [0, 1, 4] {
                let mut out = upload(&device, &[9; 2]);
                finds()
                    .run(&device, 1, (&x, &mut out, n, limit))
                    .expect("nothing out of bounds is read");
                let some = &numbers[..n as usize];
                let first = some
                    .iter()
                    .position(|&it| it >= limit)
                    .unwrap_or(some.len());
                let last = some.iter().rposition(|&it| it >= limit);
                let want = [first as i32, last.map_or(0, |last| last as i32 + 1)];
                assert_eq!(out.to_vec().expect("reads"), want, "{device} {limit} {n}");
            }
        }
    }
}

/// Rows of tiles, of which some lie outside of the array.
#[kernel]
fn rows<const BLOCK: usize>(x: Ptr<f32>, out: PtrMut<f32>, rows: i32, columns: i32) {
    let row = program_id(0);
    let mut sum = sum_accumulator::<f32>([]);
    let mut from = scalar::<i32>(0);
    let at = arange(0, BLOCK);
    while from < columns
        && row < rows
        && (load(x + row * columns + from + at).mask(from + at < columns) < 100.0).all(0)
    {
        let tile = load(x + row * columns + from + at).mask(from + at < columns);
        sum.add(tile, 0);
        from += BLOCK;
    }
    store(out + row, sum.finish());
}

#[test]
fn tiles_of_the_right_side_follow_no_tile_size() {
    let numbers: Vec<f32> = (0..39).map(|i| (i * i % 23) as f32 / 3.0).collect();
    for device in devices() {
        let x = upload(&device, &numbers);
        let mut seen: Vec<Vec<u32>> = Vec::new();
        for block in [1, 2, 4, 8, 16, 32] {
            let mut out = upload(&device, &[-1.0f32; 5]);
            rows()
                .block(block)
                .run(&device, 5, (&x, &mut out, 3, 13))
                .expect("runs");
            let got = out.to_vec().expect("reads");
            assert_eq!(got[3..], [0.0, 0.0], "{device} {block}");
            seen.push(got.into_iter().map(f32::to_bits).collect());
        }
        seen.dedup();
        assert_eq!(seen.len(), 1, "{device}");
    }
}

/// Right sides that change variables and hold loops. [`changes_on_host`] has the same text.
#[device]
fn changes_on_device(n: Scalar<i32>) -> [Scalar<i32>; 3] {
    let mut tried = scalar::<i32>(0);
    let mut sum = scalar::<i32>(0);
    let mut last = scalar::<i32>(-1);
    for i in range(0, n) {
        let i = i.to::<i32>();
        if i % 3 == 1 && {
            tried += 1;
            tried % 2 == 0
        } || {
            let mut j = i;
            while j > 2 {
                j -= 3;
                sum += 1;
            }
            j == 2
        } {
            last = i;
        }
    }
    [tried, sum, last]
}

fn changes_on_host(n: i32) -> [i32; 3] {
    let (mut tried, mut sum, mut last) = (0, 0, -1);
    for i in 0..n {
        if i % 3 == 1 && {
            tried += 1;
            tried % 2 == 0
        } || {
            let mut j = i;
            while j > 2 {
                j -= 3;
                sum += 1;
            }
            j == 2
        } {
            last = i;
        }
    }
    [tried, sum, last]
}

#[kernel]
fn changes(out: PtrMut<i32>, n: i32) {
    for (i, number) in changes_on_device(n).into_iter().enumerate() {
        store(out + i, number);
    }
}

#[test]
fn the_right_side_changes_variables_as_a_branch_does() {
    for device in devices() {
        for n in [0, 1, 2, 3, 8, 20] {
            let mut out = upload(&device, &[9; 3]);
            changes().run(&device, 1, (&mut out, n)).expect("runs");
            let got = out.to_vec().expect("reads");
            assert_eq!(got, changes_on_host(n), "{device} {n}");
        }
    }
}

/// Right sides that hand on what they were given by reference. [`hands_on_on_host`] has the same text.
#[device]
fn hands_on(n: Scalar<i32>, count: &mut Scalar<i32>) {
    #[device]
    fn ticks(count: &mut Scalar<i32>) -> Scalar<bool> {
        *count += 1;
        *count > 3
    }
    if n > 0 && ticks(count) {
        *count += 10;
    }
    if n < 2 || !ticks(count) {
        *count += 100;
    }
}

fn hands_on_on_host(n: i32, count: &mut i32) {
    fn ticks(count: &mut i32) -> bool {
        *count += 1;
        *count > 3
    }
    if n > 0 && ticks(count) {
        *count += 10;
    }
    if n < 2 || !ticks(count) {
        *count += 100;
    }
}

#[kernel]
fn counts_by_reference(out: PtrMut<i32>, n: i32, start: i32) {
    let mut count = start;
    hands_on(n, &mut count);
    store(out, count);
}

#[test]
fn the_right_side_changes_what_it_hands_on() {
    for device in devices() {
        for (n, start) in [(0, 0), (0, 5), (1, 0), (1, 3), (2, 0), (2, 5)] {
            let mut out = upload(&device, &[0; 1]);
            counts_by_reference()
                .run(&device, 1, (&mut out, n, start))
                .expect("runs");
            let mut want = start;
            hands_on_on_host(n, &mut want);
            assert_eq!(out.to_vec().expect("reads"), [want], "{device} {n} {start}");
        }
    }
}

/// A right side that fails the launch, and one that is never asked for.
#[kernel]
fn asserts(out: PtrMut<i32>, n: i32) {
    let is_small = |n: Scalar<i32>| {
        device_assert(n < 5, "n is below five");
        n < 3
    };
    store(out, select(n > 0 && is_small(n), 1, 2));
    store(out + 1, select(n < 100 || is_small(n), 1, 2));
}

#[test]
fn an_assertion_fails_only_where_it_is_reached() {
    for device in devices() {
        let run = |n| {
            let mut out = upload(&device, &[0; 2]);
            asserts()
                .run(&device, 1, (&mut out, n))
                .map(|()| out.to_vec().expect("reads"))
        };
        assert_eq!(run(-7).expect("runs"), [2, 1], "{device}");
        assert_eq!(run(2).expect("runs"), [1, 1], "{device}");
        assert_eq!(run(4).expect("runs"), [2, 1], "{device}");
        for n in [5, 100] {
            let error = run(n).expect_err("fails").to_string();
            assert!(error.contains("n is below five"), "{error}");
        }
    }
}

#[kernel]
fn plain(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let at = arange(0, 8);
    let tile = load(x + at);
    let mut i = n;
    while i < 8 && i * i > 3 || (i + 1 == n && tile.max(0) > 2.0) {
        i += 1;
    }
    store(out + at, tile * i.to::<f32>()).mask(at < n);
}

#[test]
fn arithmetic_of_the_right_side_needs_no_branch() {
    let ir = plain().listing(ListingStage::Trace).expect("traces");
    assert!(!ir.contains(" = if") && !ir.contains("if %"), "{ir}");
    assert!(ir.contains("and") && ir.contains("or"), "{ir}");
}

#[kernel]
fn shows_on_the_host(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let seen = Cell::new(0.0);
    let reads = |at: Scalar<i32>| {
        seen.set(1.0);
        load(x + at)
    };
    let big = n > 3 && reads(n) > 0.0;
    store(out, select(big, 1.0, 2.0) + seen.get());
}

#[kernel]
fn counts_on_the_host(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let mut count = 0;
    if n > 3 && {
        count += 1;
        load(x + n) > 0.0
    } {
        store(out, 1.0);
    }
    store(out + 1, f64::from(count));
}

#[test]
fn the_host_does_not_see_whether_the_right_side_was_traced() {
    for (kernel, part) in [
        (shows_on_the_host().check(), "computes something else"),
        (
            counts_on_the_host().check(),
            "the host value `count` changes inside",
        ),
    ] {
        let error = kernel.expect_err("is refused").to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[kernel]
fn shows_beside_and(out: PtrMut<f32>, n: i32) {
    let seen = Cell::new(0.0);
    let both = n > 3 && {
        seen.set(1.0);
        n < 9
    };
    store(out, select(both, 1.0, 2.0) + seen.get());
}

#[kernel]
fn shows_beside_or(out: PtrMut<f32>, n: i32) {
    let seen = Cell::new(0.0);
    let sees = || {
        seen.set(1.0);
        true
    };
    let any = n > 3 || sees();
    store(out, select(any, 1.0, 2.0) + seen.get());
}

#[kernel]
fn shows_a_guard(out: PtrMut<f32>, n: i32) {
    let seen = Cell::new(0.0);
    let sees = |n: Scalar<i32>| {
        seen.set(1.0);
        n < 9
    };
    match n {
        4 if sees(n) => {
            store(out, 1.0);
        }
        _ => {
            store(out, 2.0);
        }
    }
    store(out + 1, n.to::<f32>() * seen.get());
}

#[kernel]
fn shows_within(out: PtrMut<f32>, n: i32) {
    let seen = Cell::new(0.0);
    let all = n > 3
        && (n > 8 || {
            seen.set(1.0);
            n < 5
        });
    store(out, select(all, 1.0, 2.0) + seen.get());
}

/// No `Cell` outlives its right side.
#[kernel]
fn shows_nothing(x: Ptr<i32>, out: PtrMut<i32>, n: i32) {
    let mut i = n;
    while i < 20
        && (i < 9 || {
            let twice = Cell::new(i);
            twice.set(twice.get() * 2);
            twice.get() != 26 && load(x) > 0 && i != 17
        })
        && (if i > 3 { i % 5 } else { i }) != 4
    {
        i += 1;
    }
    store(out, i);
}

#[test]
fn a_right_side_without_effects_keeps_no_state_of_the_host() {
    for kernel in [
        shows_beside_and().into_kernel(),
        shows_beside_or().into_kernel(),
        shows_a_guard().into_kernel(),
        shows_within().into_kernel(),
    ] {
        let error = kernel.check().expect_err(kernel.name()).to_string();
        assert!(error.contains("computes something else"), "{error}");
    }
    for device in devices() {
        let x = upload(&device, &[1]);
        for (n, want) in [(0, 4), (5, 9), (10, 13), (15, 17), (20, 20)] {
            let mut out = upload(&device, &[0; 1]);
            shows_nothing()
                .run(&device, 1, (&x, &mut out, n))
                .expect("runs");
            assert_eq!(out.to_vec().expect("reads"), [want], "{device} {n}");
        }
    }
}

/// Outside of a trace nothing is on the device.
#[test]
fn host_conditions_stay_conditions_of_the_host() {
    #[device]
    fn decides(n: usize, asked: &Cell<usize>) -> bool {
        let asks = |given: bool| {
            asked.set(asked.get() + 1);
            given
        };
        n > 3 && asks(n < 6) || n == 1 && asks(true)
    }
    let asked = Cell::new(0);
    let got: Vec<bool> = (0..8).map(|n| decides(n, &asked)).collect();
    let want: Vec<bool> = (0..8).map(|n| n == 1 || n == 4 || n == 5).collect();
    assert_eq!((got, asked.get()), (want, 5));
}
