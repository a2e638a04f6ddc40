//! Values that leave loops and functions by `break` and `return`, each beside the same text as plain Rust.

use exactile::prelude::*;

use super::language::{devices, upload};

/// The first factor above 1, twice the number of tries, and what is left of a walk.
#[device]
fn searches(n: Scalar<i64>) -> (Scalar<i64>, Scalar<i64>) {
    let mut factor = scalar::<i64>(2);
    let first = loop {
        if factor * factor > n {
            break n;
        }
        if n % factor == 0 {
            break factor;
        }
        factor += 1;
    };
    let mut tries = scalar::<i64>(0);
    let (walked, steps) = 'outer: loop {
        let mut inner = n + tries;
        let step = loop {
            inner -= 3;
            if inner < 0 {
                break inner + 10;
            }
        };
        for i in 0..step {
            inner += i;
            if inner % 7 == 5 {
                break 'outer (inner, tries * 2);
            }
        }
        tries += step;
        if tries > 60 {
            break (tries, step);
        }
    };
    (first * 1000 + walked, steps)
}

fn searches_on_host(n: i64) -> (i64, i64) {
    let mut factor = 2;
    let first = loop {
        if factor * factor > n {
            break n;
        }
        if n % factor == 0 {
            break factor;
        }
        factor += 1;
    };
    let mut tries = 0;
    let (walked, steps) = 'outer: loop {
        let mut inner = n + tries;
        let step = loop {
            inner -= 3;
            if inner < 0 {
                break inner + 10;
            }
        };
        for i in 0..step {
            inner += i;
            if inner % 7 == 5 {
                break 'outer (inner, tries * 2);
            }
        }
        tries += step;
        if tries > 60 {
            break (tries, step);
        }
    };
    (first * 1000 + walked, steps)
}

/// A `return` in loops, in branches and at the end.
#[device]
fn returns(n: Scalar<i64>, limit: Scalar<i64>) -> Scalar<i64> {
    if n < 0 {
        return n;
    }
    let mut sum = scalar::<i64>(0);
    for i in 1..=n {
        sum += i * i;
        for j in 0..i {
            if (sum + j) % 31 == 7 {
                return sum * 100 + j;
            }
        }
        match sum {
            55 => return scalar::<i64>(-5),
            100..=90000 if sum > limit => return i,
            _ => sum += 1,
        }
    }
    if sum % 2 == 0 {
        sum /= 2;
        if sum > 10 {
            sum += 1;
            if sum % 3 == 0 {
                return sum;
            }
        }
    }
    if sum == 0 {
        limit
    } else {
        loop {
            sum -= 4;
            if sum < 0 {
                return sum;
            }
        }
    }
}

fn returns_on_host(n: i64, limit: i64) -> i64 {
    if n < 0 {
        return n;
    }
    let mut sum = 0;
    for i in 1..=n {
        sum += i * i;
        for j in 0..i {
            if (sum + j) % 31 == 7 {
                return sum * 100 + j;
            }
        }
        match sum {
            55 => return -5,
            100..=90000 if sum > limit => return i,
            _ => sum += 1,
        }
    }
    if sum % 2 == 0 {
        sum /= 2;
        if sum > 10 {
            sum += 1;
            if sum % 3 == 0 {
                return sum;
            }
        }
    }
    if sum == 0 {
        limit
    } else {
        loop {
            sum -= 4;
            if sum < 0 {
                return sum;
            }
        }
    }
}

#[kernel]
fn walks(out: PtrMut<i64>, n: i64, limit: i64) {
    let (walked, steps) = searches(n);
    store(out, walked);
    store(out + 1, steps);
    store(out + 2, returns(n, limit));
}

#[test]
fn values_that_leave_are_those_of_rust() {
    for device in devices() {
        for (n, limit) in (-2..26).flat_map(|n| [(n, 20), (n, 400), (n, 100_000)]) {
            let mut out = upload(&device, &[7i64; 3]);
            let run = walks().run(&device, 1, (&mut out, n, limit));
            run.expect("runs");
            let (walked, steps) = searches_on_host(n);
            let want = [walked, steps, returns_on_host(n, limit)];
            assert_eq!(out.to_vec().expect("reads"), want, "{device} {n} {limit}");
        }
    }
}

#[derive(Clone, Copy, Carry)]
struct Root {
    value: Tile<f32>,
    steps: [Scalar<i32>; 1],
}

/// Newton's iteration on tiles: a structure leaves the loop, whose `break`s the host and the device decide.
#[device]
fn root(x: Tile<f32>, most: usize) -> Root {
    let mut value = x;
    let mut steps = scalar::<i32>(0);
    loop {
        let next = 0.5 * (value + x / value);
        let moved = (next != value).any(0);
        value = next;
        steps += 1;
        if !moved {
            break Root {
                value,
                steps: [steps],
            };
        }
        if most == 1 {
            break Root {
                value: x,
                steps: [steps - 10],
            };
        }
    }
}

#[kernel(MOST = 0)]
fn roots<const MOST: usize>(x: Ptr<f32>, out: PtrMut<f32>, count: PtrMut<i32>) {
    let at = arange(0, 8);
    let found = root(load(x + at), MOST);
    store(out + at, found.value);
    store(count, found.steps[0]);
}

#[test]
fn structures_of_tiles_leave_loops() {
    let numbers = [1.0f32, 2.0, 4.0, 9.0, 0.25, 100.0, 7.0, 10.0];
    for device in devices() {
        let x = upload(&device, &numbers);
        for (most, steps) in [(0, 1..100), (1, -9..-8)] {
            let mut out = upload(&device, &[-1.0f32; 8]);
            let mut count = upload(&device, &[0i32]);
            let run = roots()
                .most(most)
                .run(&device, 1, (&x, &mut out, &mut count));
            run.expect("runs");
            let found = out.to_vec().expect("reads");
            let close = |(&x, root): (&f32, f32)| match most {
                0 => (root * root - x).abs() <= 4e-7 * x,
                _ => root == x,
            };
            assert!(numbers.iter().zip(found).all(close), "{device} {most}");
            let count = count.to_vec().expect("reads")[0];
            assert!(steps.contains(&count), "{device} {most}: {count}");
        }
    }
}

#[kernel]
fn gives_pointers(x: Ptr<i32>, out: PtrMut<i32>) {
    let mut at = scalar::<i64>(0);
    let found = loop {
        if load(x + at) == 0 {
            break x + at;
        }
        at += 1;
    };
    store(out, load(found));
}

#[kernel]
fn gives_two_shapes(out: PtrMut<i32>, n: i32) {
    let found = loop {
        if n == 1 {
            break zeros::<i32>([4]);
        }
        if n == 2 {
            break zeros::<i32>([8]);
        }
    };
    store(out + arange(0, 4), found);
}

#[device]
fn returns_two_shapes(n: Scalar<i32>) -> Tile<i32> {
    for i in 0..n {
        if i == 3 {
            return zeros::<i32>([4]);
        }
    }
    zeros::<i32>([8])
}

#[kernel]
fn calls_two_shapes(out: PtrMut<i32>, n: i32) {
    store(out + arange(0, 4), returns_two_shapes(n));
}

#[kernel]
fn gives_nothing<const GIVES: usize>(out: PtrMut<i32>) {
    let found = loop {
        if GIVES == 1 {
            break scalar::<i32>(2);
        }
        store(out, 1);
    };
    store(out, found);
}

/// Branches that end the process where they are reached give no value, and nothing behind them is called dead.
#[deny(unreachable_code)]
mod ends {
    use exactile::prelude::*;

    #[device]
    fn named(n: Scalar<i32>, side: usize) -> Scalar<i32> {
        if n > 2 {
            return scalar(7);
        }
        match side {
            3 => scalar(1),
            _ => unreachable!("no side {side}"),
        }
    }

    #[kernel]
    pub(super) fn panics<const SIDE: usize>(out: PtrMut<i32>, n: i32) {
        store(out + 1, named(n, SIDE));
        let x: Scalar<i32> = if n > 4 {
            return;
        } else if SIDE == 3 {
            n * 2
        } else {
            panic!("no side");
        };
        store(out, x);
    }
}

/// A loop in a loop that has its label.
#[kernel]
fn hides(out: PtrMut<i32>, n: i32) {
    let mut i = scalar::<i32>(0);
    let found: Scalar<i32> = 'a: loop {
        i += 1;
        let inner: Scalar<i32> = 'a: loop {
            i += 1;
            if i > n {
                break 'a i;
            }
        };
        if inner > 20 {
            return;
        }
        if inner > 3 {
            break 'a inner * 2;
        }
    };
    store(out, found);
}

/// Loops of the host over what an expression borrows from a value of its own.
#[kernel]
fn borrows(out: PtrMut<i32>, n: i32) {
    let mut sum = scalar::<i32>(0);
    for (place, part) in [n, n * 10].iter().enumerate() {
        sum += *part * (place as i32 + 1);
    }
    store(out, sum);
}

#[test]
fn loops_keep_what_they_borrow() -> exactile::Result<()> {
    for device in devices() {
        let mut out = Buffer::zeros(&device, 1)?;
        borrows().run(&device, 1, (&mut out, 3))?;
        assert_eq!(out.to_vec()?, [63], "{device}");
    }
    Ok(())
}

#[test]
fn ends_that_panic_and_labels_that_hide_others_are_rusts() -> exactile::Result<()> {
    for device in devices() {
        for (n, panics, hidden) in [
            (1, [2, 1], 8),
            (3, [6, 7], 8),
            (5, [0, 7], 12),
            (50, [0, 7], 0),
        ] {
            let mut out = Buffer::zeros(&device, 2)?;
            ends::panics().side(3).run(&device, 1, (&mut out, n))?;
            assert_eq!(out.to_vec()?, panics, "{n} on {device}");
            let mut out = Buffer::zeros(&device, 1)?;
            hides().run(&device, 1, (&mut out, n))?;
            assert_eq!(out.to_vec()?, [hidden], "{n} on {device}");
        }
    }
    Ok(())
}

#[test]
fn what_no_loop_carries_is_refused() {
    let message = |error: exactile::Error| error.to_string();
    let text = message(gives_pointers().check().expect_err("is refused"));
    assert!(text.contains("` leaves a loop or a branch"), "{text}");
    assert!(text.contains("Ptr<i32>"), "{text}");
    let remedy = "tiles, scalars and tuples, arrays and structures of them do: set a `mut` binding in front of the loop instead";
    assert!(text.contains(remedy), "{text}");
    let text = message(gives_two_shapes().check().expect_err("is refused"));
    assert!(text.contains("the value of the `loop` is `tile<"), "{text}");
    let text = message(calls_two_shapes().check().expect_err("is refused"));
    assert!(
        text.contains("the value that is returned is `tile<"),
        "{text}"
    );
    let text = message(gives_nothing().gives(0).check().expect_err("is refused"));
    let reason = "no statement is reached that gives this loop, function or branch its value";
    assert!(text.contains(reason), "{text}");
}
