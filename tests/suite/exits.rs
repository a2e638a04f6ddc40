//! Ways out of loops on the host and on the device, `match` on numbers, and bounds that are reached, each
//! beside the same text as plain Rust.

use exactile::prelude::*;

use super::language::{devices, upload};

/// The first number at or above `limit` from `start` on, by steps of two; `-1` if there is none.
#[kernel]
fn first(x: Ptr<i32>, out: PtrMut<i64>, n: i64, limit: i32) {
    let mut found = scalar::<i64>(-1);
    let mut steps = scalar::<i64>(0);
    for i in range(program_id(0), n).step(2) {
        if load(x + i) >= limit {
            found = i;
            break;
        }
        steps += 1;
    }
    store(out + 2 * program_id(0), found);
    store(out + 2 * program_id(0) + 1, steps);
}

#[test]
fn a_loop_ends_at_a_break() {
    let numbers = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3];
    for device in devices() {
        let x = upload(&device, &numbers);
        for limit in [0, 4, 5, 6, 9, 10] {
            let mut out = upload(&device, &[7i64; 6]);
            // Past the last number nothing may be read.
            first()
                .run(&device, 3, (&x, &mut out, 10i64, limit))
                .expect("runs");
            let want: Vec<i64> = (0..3usize)
                .flat_map(|start| {
                    let mut tried = (start..10).step_by(2);
                    let found = tried.clone().find(|&i| numbers[i] >= limit);
                    let steps = tried.position(|i| Some(i) == found);
                    let all = (10 - start).div_ceil(2);
                    [found.map_or(-1, |i| i as i64), steps.unwrap_or(all) as i64]
                })
                .collect();
            assert_eq!(out.to_vec().expect("reads"), want, "{device} {limit}");
        }
    }
}

/// A walk with every way out. [`walk_on_host`] has the same text.
#[device]
fn walk_on_device(n: Scalar<i64>) -> (Scalar<i64>, Scalar<i64>) {
    let mut sum = scalar::<i64>(0);
    let mut last = scalar::<i64>(0);
    'rows: for i in 1..=n {
        if i % 5 == 4 {
            continue;
        }
        let mut inner = scalar::<i64>(0);
        for j in i..=n {
            if j % 3 == 0 {
                if j > 9 {
                    continue 'rows;
                }
                sum += 1;
                if sum > 300 {
                    sum += 1000;
                    break 'rows;
                }
                continue;
            } else if j > i + 6 {
                break;
            } else {
                let i = j * 100;
                last = i;
            }
            inner += j;
            sum += inner % 7;
        }
        sum += inner;
        match i {
            1 => sum += 10,
            2 | 3 if sum > 20 || last % 2 == 1 => sum += 5,
            5..=6 | 8 => {
                sum -= 2;
                if last > 1100 {
                    continue;
                }
                sum += 1;
            }
            13 => break,
            other => sum += other / 8,
        }
        last += 1;
    }
    settle_on_device(sum, last)
}

#[device]
fn settle_on_device(sum: Scalar<i64>, last: Scalar<i64>) -> (Scalar<i64>, Scalar<i64>) {
    let (mut sum, mut last) = (sum, last);
    loop {
        if last <= 1 {
            break;
        }
        if last % 2 == 0 {
            last /= 2;
            continue;
        }
        last = 3 * last + 1;
        sum += 1;
    }
    while last < sum {
        last += 7;
        if last % 5 == 1 {
            sum -= 1;
            break;
        }
    }
    (sum, last)
}

fn walk_on_host(n: i64) -> (i64, i64) {
    let mut sum = 0i64;
    let mut last = 0i64;
    'rows: for i in 1..=n {
        if i % 5 == 4 {
            continue;
        }
        let mut inner = 0i64;
        for j in i..=n {
            if j % 3 == 0 {
                if j > 9 {
                    continue 'rows;
                }
                sum += 1;
                if sum > 300 {
                    sum += 1000;
                    break 'rows;
                }
                continue;
            } else if j > i + 6 {
                break;
            } else {
                let i = j * 100;
                last = i;
            }
            inner += j;
            sum += inner % 7;
        }
        sum += inner;
        match i {
            1 => sum += 10,
            2 | 3 if sum > 20 || last % 2 == 1 => sum += 5,
            5..=6 | 8 => {
                sum -= 2;
                if last > 1100 {
                    continue;
                }
                sum += 1;
            }
            13 => break,
            other => sum += other / 8,
        }
        last += 1;
    }
    settle_on_host(sum, last)
}

fn settle_on_host(sum: i64, last: i64) -> (i64, i64) {
    let (mut sum, mut last) = (sum, last);
    loop {
        if last <= 1 {
            break;
        }
        if last % 2 == 0 {
            last /= 2;
            continue;
        }
        last = 3 * last + 1;
        sum += 1;
    }
    while last < sum {
        last += 7;
        if last % 5 == 1 {
            sum -= 1;
            break;
        }
    }
    (sum, last)
}

/// In a kernel a range of the host unrolls; what leaves it may be known on the host or on the device.
#[kernel(N = 9)]
fn walks<const N: i64>(out: PtrMut<i64>, n: i64) {
    let (sum, last) = walk_on_device(n);
    store(out, sum);
    store(out + 1, last);
    let mut unrolled = scalar::<i64>(0);
    for i in 0..N {
        if i == N - 2 {
            break;
        }
        if i % 3 == 1 {
            continue;
        }
        if i + n > 10 {
            unrolled += 100;
            if n == 7 {
                break;
            }
            continue;
        }
        unrolled += i + 1;
    }
    store(out + 2, unrolled);
    let mut names = vec![5, 3, 2];
    let mut product = scalar::<i64>(1);
    while let Some(factor) = names.pop() {
        if factor == 5 {
            break;
        }
        product *= factor;
        if product > n {
            break;
        }
    }
    store(out + 3, product);
    for i in 0..n {
        if i == 2 {
            store(out + 4, i);
            for j in 0..=i {
                if i + j > 5 {
                    break;
                }
                if j == 1 {
                    return;
                }
            }
        }
    }
    store(out + 5, n);
}

#[test]
fn ways_out_are_those_of_rust() {
    for device in devices() {
        for n in -1..20 {
            let mut out = upload(&device, &[-1i64; 6]);
            walks().run(&device, 1, (&mut out, n)).expect("runs");
            let (sum, last) = walk_on_host(n);
            let mut unrolled = 0;
            for i in 0..9 {
                if i == 7 {
                    break;
                }
                if i % 3 == 1 {
                    continue;
                }
                if i + n > 10 {
                    unrolled += 100;
                    if n == 7 {
                        break;
                    }
                    continue;
                }
                unrolled += i + 1;
            }
            let product = if 2 > n { 2 } else { 6 };
            let returns = n > 2;
            let want = [
                sum,
                last,
                unrolled,
                product,
                if returns { 2 } else { -1 },
                if returns { -1 } else { n },
            ];
            assert_eq!(out.to_vec().expect("reads"), want, "{device} {n}");
        }
    }
}

/// Newton's iteration on tiles until no lane moves, or too many steps.
#[kernel]
fn roots(x: Ptr<f32>, out: PtrMut<f32>, most: i32) {
    let at = arange(0, 8);
    let v = load(x + at);
    let mut root = v;
    let mut steps = scalar::<i32>(0);
    loop {
        let next = 0.5 * (root + v / root);
        let moved = (next != root).to::<i32>().max(0).scalar();
        root = next;
        if moved == 0 {
            break;
        }
        steps += 1;
        if steps >= most {
            return;
        }
    }
    store(out + at, root);
}

#[test]
fn a_loop_over_tiles_ends_where_no_lane_moves() {
    let numbers = [1.0f32, 2.0, 4.0, 9.0, 0.25, 100.0, 7.0, 1e6];
    for device in devices() {
        let x = upload(&device, &numbers);
        let mut out = upload(&device, &[-1.0f32; 8]);
        let launch = |most: i32, out: &mut Buffer<f32>| {
            roots().run(&device, 1, (&x, out, most)).expect("runs");
        };
        launch(3, &mut out);
        assert_eq!(out.to_vec().expect("reads"), [-1.0; 8]);
        launch(100, &mut out);
        let found = out.to_vec().expect("reads");
        let close = |(&x, root): (&f32, f32)| (root * root - x).abs() <= 4e-7 * x;
        assert!(numbers.iter().zip(found).all(close));
    }
}

#[kernel]
fn reads_again(x: Ptr<i32>, out: PtrMut<i32>, n: i32) {
    let mut i = scalar::<i64>(0);
    while load(x + i) > 0 {
        if i == n - 1 {
            break;
        }
        i += 1;
    }
    store(out, i.to::<i32>());
}

/// Behind a `break` the condition of a `while` would be computed once more.
#[test]
fn a_condition_that_reads_memory_is_refused() {
    let error = reads_again()
        .check()
        .expect_err("reads behind the break")
        .to_string();
    assert!(error.contains("exits.rs:"), "{error}");
    assert!(error.contains("reads memory"), "{error}");
    assert!(
        error.contains("loop { if !condition { break; } .. }"),
        "{error}"
    );
}

#[kernel(BLOCK = 16)]
fn adds_until<const BLOCK: usize>(x: Ptr<f32>, out: PtrMut<f32>, n: i32, limit: f32) {
    let mut sum = scalar::<f32>(0.0);
    for start in range(0, n).step(BLOCK) {
        let at = start + arange(0, BLOCK);
        sum += load(x + at).mask(at < n).sum(0).scalar();
        if sum > limit {
            break;
        }
    }
    store(out, sum);
}

/// What a loop adds up in an order of the tile size is found where a statement leaves it too.
#[test]
fn a_loop_that_ends_early_adds_up_in_no_order_of_tiles() {
    let error = adds_until()
        .check()
        .expect_err("follows the tile size")
        .to_string();
    assert!(error.contains("sum_accumulator"), "{error}");
}

#[kernel]
fn picks(out: PtrMut<i64>) {
    let table = [Some(2_i64), None, Some(5)];
    let s = 1_i64;
    let mut sum = scalar::<i64>(0);
    for found in table {
        if let Some(s) = found {
            sum += s;
        } else {
            continue;
        }
        sum += s * 10;
    }
    store(out, sum);
}

/// What follows an `if let` does not see the names of its pattern.
#[test]
fn names_of_patterns_stay_in_their_branch() {
    for device in devices() {
        let mut out = upload(&device, &[0_i64]);
        picks().run(&device, 1, (&mut out,)).expect("runs");
        assert_eq!(out.to_vec().expect("reads"), [27]);
    }
}

#[kernel]
fn once<const ONCE: usize>(out: PtrMut<i64>, n: i64) {
    let mut sum = scalar::<i64>(0);
    for i in range(0, n) {
        sum += i + 1;
        if ONCE == 1 {
            break;
        }
    }
    loop {
        sum *= 2;
        break;
    }
    store(out, sum);
}

/// What the host knows of an exit is known in both traces of the loop.
#[test]
fn the_host_may_leave_loops_of_the_device() {
    for device in devices() {
        for (only, expected) in [(0, 20), (1, 2)] {
            let mut out = upload(&device, &[0_i64]);
            once()
                .once(only)
                .run(&device, 1, (&mut out, 4_i64))
                .expect("runs");
            assert_eq!(out.to_vec().expect("reads"), [expected]);
        }
    }
}
