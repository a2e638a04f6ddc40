//! Values that something may leave before they are there, each beside the same text as plain Rust.

use exactile::prelude::*;

use super::language::{devices, upload};

/// Skips the initialisers of bindings in every way.
#[device]
fn binds(n: Scalar<i64>, limit: Scalar<i64>) -> Scalar<i64> {
    let mut sum = scalar::<i64>(0);
    'rows: for i in 0..n {
        let k = if i % 5 == 3 { continue } else { i * 2 };
        let (low, high) = if k > 12 && sum % 2 == 0 {
            if sum > 150 {
                break;
            }
            (k - 3, k)
        } else {
            (k, k + limit)
        };
        let found = loop {
            sum += low;
            if sum % 11 == 4 {
                continue 'rows;
            }
            let step = loop {
                if sum > 260 {
                    return sum - high;
                }
                if sum % 61 == 6 {
                    break 'rows;
                }
                sum += 2;
                if sum % 7 == 2 {
                    break sum % 4;
                }
            };
            if step < 3 {
                break high + step;
            }
        };
        sum += match found {
            4 => {
                sum += 100;
                continue;
            }
            5..=20 => found - 1,
            _ if limit == 19 => return found,
            _ => scalar(2),
        };
        sum += if low > 11 { return high } else { 1 };
    }
    sum
}

fn binds_on_host(n: i64, limit: i64) -> i64 {
    let mut sum = 0;
    'rows: for i in 0..n {
        let k = if i % 5 == 3 { continue } else { i * 2 };
        let (low, high) = if k > 12 && sum % 2 == 0 {
            if sum > 150 {
                break;
            }
            (k - 3, k)
        } else {
            (k, k + limit)
        };
        let found = loop {
            sum += low;
            if sum % 11 == 4 {
                continue 'rows;
            }
            let step = loop {
                if sum > 260 {
                    return sum - high;
                }
                if sum % 61 == 6 {
                    break 'rows;
                }
                sum += 2;
                if sum % 7 == 2 {
                    break sum % 4;
                }
            };
            if step < 3 {
                break high + step;
            }
        };
        sum += match found {
            4 => {
                sum += 100;
                continue;
            }
            5..=20 => found - 1,
            _ if limit == 19 => return found,
            _ => 2,
        };
        sum += if low > 11 { return high } else { 1 };
    }
    sum
}

/// A pointer and a number of the host are bound where one branch alone goes on; `let .. else` is decided on the host.
#[kernel(WIDTH = 4)]
fn stores<const WIDTH: usize>(x: Ptr<i64>, y: Option<Ptr<i64>>, out: PtrMut<i64>, n: i64) {
    let width = if WIDTH > 8 { return } else { WIDTH };
    let row = if n < 0 {
        store(out, -7);
        return;
    } else {
        let at = n * 4;
        x + at
    };
    let at = arange(0, width);
    store(out + at, binds(load(row + at).sum(0).scalar(), scalar(n)));
    for other in [None, y] {
        let Some(other) = other else {
            continue;
        };
        let bound = load(other);
        store(out + 4, if bound > n { bound } else { n });
    }
    let Some(last) = y else {
        return;
    };
    store(out + 5, load(last + 1));
}

#[test]
fn what_follows_an_initialiser_that_was_left_is_skipped() {
    let numbers: Vec<i64> = (0..80).map(|at| at % 7).collect();
    for device in devices() {
        let x = upload(&device, &numbers);
        let y = upload(&device, &[9i64, 4]);
        for n in -1..20 {
            let mut out = upload(&device, &[5i64; 6]);
            let run = stores().run(&device, 1, (&x, Some(&y), &mut out, n));
            run.expect("runs");
            let mut want = [5i64; 6];
            if n < 0 {
                want[0] = -7;
            } else {
                let from = 4 * n as usize;
                let sum = numbers[from..from + 4].iter().sum();
                want[..4].fill(binds_on_host(sum, n));
                want[4] = n.max(9);
                want[5] = 4;
            }
            assert_eq!(out.to_vec().expect("reads"), want, "{device} {n}");
        }
        let mut out = upload(&device, &[5i64; 6]);
        let none = None::<&Buffer<i64>>;
        let run = stores().run(&device, 1, (&x, none, &mut out, 3));
        run.expect("runs");
        let sum = numbers[12..16].iter().sum();
        let value = binds_on_host(sum, 3);
        let want = [value, value, value, value, 5, 5];
        assert_eq!(out.to_vec().expect("reads"), want, "{device}");
        let wide = stores()
            .width(16)
            .run(&device, 1, (&x, Some(&y), &mut out, 3));
        wide.expect("runs");
        assert_eq!(out.to_vec().expect("reads"), want, "{device}");
    }
}

#[kernel]
fn walks(out: PtrMut<i64>, limit: i64) {
    store(out + program_id(0), binds(program_id(0), limit));
}

#[test]
fn every_way_out_of_an_initialiser_is_that_of_rust() {
    let limits = [0, 1, 3, 5, 7, 19];
    for device in devices() {
        for limit in limits {
            let mut out = upload(&device, &[0i64; 30]);
            walks().run(&device, 30, (&mut out, limit)).expect("runs");
            let want: Vec<i64> = (0..30).map(|n| binds_on_host(n, limit)).collect();
            assert_eq!(out.to_vec().expect("reads"), want, "{device} {limit}");
        }
    }
}

/// A part that depends on how the crate is built is a branch of the host.
#[kernel]
fn leaves_parts_out(out: PtrMut<i32>, n: i32) {
    if cfg!(any()) {
        return;
    }
    let value = if cfg!(all()) { n } else { n + 1 };
    store(out, value);
}

#[test]
fn parts_are_left_out_by_the_build() {
    for device in devices() {
        let mut out = upload(&device, &[0i32]);
        let run = leaves_parts_out().run(&device, 1, (&mut out, 4));
        run.expect("runs");
        assert_eq!(out.to_vec().expect("reads"), [4], "{device}");
    }
}

#[kernel]
fn binds_shapes(out: PtrMut<i32>, n: i32) {
    let row = if n > 3 {
        if n > 5 {
            return;
        }
        zeros::<i32>([4])
    } else {
        zeros::<i32>([8])
    };
    store(out + arange(0, 4), row);
}

#[test]
fn ends_of_a_binding_have_one_type() {
    let error = binds_shapes().check().expect_err("is refused").to_string();
    assert!(
        error.contains("the value that is bound is `tile<"),
        "{error}"
    );
    assert!(error.contains("held.rs:"), "{error}");
}
