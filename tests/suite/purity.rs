//! A kernel is a function of its arguments and its configuration: what else it shows is an error with its line.
#![expect(
    clippy::assign_op_pattern,
    reason = "kernels may be written either way"
)]

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU32, Ordering};

use exactile::Kernel;
use exactile::prelude::*;

#[kernel]
fn counts_on_the_host(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let count = Cell::new(0);
    for i in 0..n {
        count.set(count.get() + 1);
        store(out + i, load(x + i) * 2.0);
    }
    store(out + n, load(x) * f64::from(count.get()));
}

#[kernel]
fn hides_what_it_carries(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let sum = RefCell::new(load(x));
    let mut i = n;
    while i > 0 {
        for j in 0..n {
            let next = *sum.borrow() + load(x + i + j);
            store(out + i + j, next);
            *sum.borrow_mut() = next;
        }
        i -= 1;
    }
}

#[kernel]
fn nests(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let factors = Cell::new(3.0);
    let mut sum = load(x);
    for i in 0..n {
        let mut j = i * 2;
        while j > 0 {
            for k in range(j, n).step(j) {
                sum = sum * factors.get() + load(x + k);
            }
            j /= 2;
        }
        for k in 0..i {
            sum += load(x + k);
        }
    }
    store(out, sum);
}

#[kernel]
fn sets_in_branches(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let cell = Cell::new(0.0);
    if n > 3 {
        cell.set(1.0);
    } else {
        cell.set(2.0);
    }
    store(out, load(x) * cell.get());
}

#[kernel]
fn sets_in_one_branch(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let cell = Cell::new(0.0);
    if n > 3 {
        cell.set(1.0);
    }
    store(out, load(x) * cell.get());
}

#[kernel]
fn sets_in_the_other_branch(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let cell = Cell::new(0.0);
    if n > 3 {
        store(out + 1, 1.0);
    } else {
        cell.set(1.0);
    }
    store(out, load(x) * cell.get());
}

#[kernel]
fn shows_one_branch_to_the_other(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let cell = Cell::new(0.0);
    if n > 3 {
        cell.set(1.0);
    } else {
        store(out, load(x) * cell.get());
    }
}

#[kernel]
fn sets_in_a_value(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let cell = Cell::new(0.0);
    let y = if n > 3 {
        cell.set(1.0);
        load(x)
    } else {
        load(x + 1) * 2.0
    };
    store(out, y * cell.get());
}

#[kernel]
fn sets_in_an_arm(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let cell = Cell::new(0.0);
    match n {
        0 => cell.set(1.0),
        1 | 2 => {
            store(out, load(x) * cell.get());
        }
        _ => {
            store(out, 3.0);
        }
    }
}

#[kernel]
fn sets_in_a_loop(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let flag = Cell::new(0.0);
    for i in 0..n {
        flag.set(7.0);
        store(out + i, 1.0);
    }
    store(out, load(x) * flag.get());
}

#[kernel]
fn sets_in_a_while(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let flag = Cell::new(0.0);
    let mut i = n;
    while i > 0 {
        flag.set(7.0);
        i -= 1;
    }
    store(out + i, load(x) * flag.get());
}

#[kernel]
fn sets_within(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    for i in 0..n {
        let cell = Cell::new(0.0);
        if i > 3 {
            for j in 0..i {
                if j == 7 {
                    store(out + j, 1.0);
                } else {
                    cell.set(1.0);
                }
            }
        }
        store(out + i, load(x) * cell.get());
    }
}

#[kernel]
fn sets_before_it_leaves(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let cell = Cell::new(0.0);
    for i in 0..n {
        if load(x + i) > 3.0 {
            cell.set(1.0);
            break;
        }
        store(out + i, 2.0);
    }
    store(out, load(x) * cell.get());
}

/// Functions that kernels call see what is set in branches of others.
#[device]
fn notes(cell: &Cell<f64>, n: Scalar<i32>, x: Scalar<f32>) -> Scalar<f32> {
    if n > 3 {
        cell.set(1.0);
        return x;
    }
    x * 2.0
}

#[kernel]
fn sets_in_a_function(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let cell = Cell::new(0.0);
    let y = notes(&cell, n, load(x));
    store(out, y * cell.get());
}

#[kernel]
fn numbers_its_traces(x: Ptr<f32>, out: PtrMut<f32>) {
    static TRACES: AtomicU32 = AtomicU32::new(0);
    let number = TRACES.fetch_add(1, Ordering::Relaxed);
    store(out, load(x) * f64::from(number));
}

#[kernel]
fn keeps_a_tile_of_a_branch(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let kept = Cell::new(load(x));
    if n > 3 {
        kept.set(load(x + 1));
    }
    store(out, kept.get() * 2.0);
}

#[kernel]
fn keeps_a_tile_of_a_loop(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let mut rows = 0.0;
    let kept = RefCell::new(vec![load(x)]);
    for i in 0..n {
        kept.borrow_mut().push(load(x + i));
    }
    rows += 1.0;
    store(out, kept.borrow()[1] * rows);
}

#[kernel]
fn counts_in_a_combine(x: Ptr<f32>, out: PtrMut<f32>) {
    let count = Cell::new(0.0);
    let sum = reduce(load(x + arange(0, 8)), 0, |a, b| {
        count.set(count.get() + 1.0);
        a + b * count.get()
    });
    store(out, sum);
}

#[kernel]
fn sets_in_a_combine(x: Ptr<f32>, out: PtrMut<f32>) {
    let cell = Cell::new(0.0);
    let prefixes = scan(load(x + arange(0, 8)), 0, |a, b| {
        cell.set(1.0);
        a + b
    });
    store(out + arange(0, 8), prefixes * cell.get());
}

#[kernel]
fn counts_in_a_function(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let count = Cell::new(0.0);
    for i in 0..n {
        let mapped = map_elementwise(load(x + i + arange(0, 8)), |x| {
            count.set(count.get() + 1.0);
            x * count.get()
        });
        store(out + arange(0, 8), mapped);
    }
}

#[kernel]
fn sets_in_an_accumulator(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let cell = Cell::new(0.0);
    let mut sums = accumulator::<Tile<f32>>([], |a, b| {
        cell.set(1.0);
        a + b
    });
    for i in 0..n {
        sums.add(load(x + i * 8 + arange(0, 8)), 0);
    }
    store(out, sums.finish() * cell.get());
}

/// The line of the error of a kernel.
fn line<P>(kernel: &Kernel<P>) -> &'static str {
    let messages = [
        "` computes something else when it is traced again",
        "a kernel is a function of its arguments and its configuration: let a loop or branch change `mut` variables \
         of the kernel, and no `Cell`, `RefCell` or other state of the host",
        "it is traced once more with each body of a loop and each combine again, and without some bodies of loops, \
         branches and combines, none of which what follows may show",
    ];
    line_of(kernel, &messages)
}

fn line_of<P>(kernel: &Kernel<P>, messages: &[&str]) -> &'static str {
    let errors = kernel.check().expect_err("is no function").to_string();
    for message in messages {
        assert!(errors.contains(message), "{errors}");
    }
    let place = errors.split("purity.rs:").nth(1).expect("has a place");
    let number = place.split(':').next().expect("has a line");
    let number: usize = number.parse().expect("is a number");
    let line = include_str!("purity.rs").lines().nth(number - 1);
    line.expect("is a line").trim()
}

/// A body is traced, whether the device runs it or not, and once: what the host remembers of it is no part of it.
#[test]
fn state_of_the_host_that_a_body_changes_is_an_error() {
    for (kernel, want) in [
        (
            counts_on_the_host().into_kernel(),
            "store(out + n, load(x) * f64::from(count.get()));",
        ),
        (
            hides_what_it_carries().into_kernel(),
            "let next = *sum.borrow() + load(x + i + j);",
        ),
        (
            sets_in_branches().into_kernel(),
            "store(out, load(x) * cell.get());",
        ),
        (
            sets_in_one_branch().into_kernel(),
            "store(out, load(x) * cell.get());",
        ),
        (
            sets_in_the_other_branch().into_kernel(),
            "store(out, load(x) * cell.get());",
        ),
        (
            shows_one_branch_to_the_other().into_kernel(),
            "store(out, load(x) * cell.get());",
        ),
        (
            sets_in_a_value().into_kernel(),
            "store(out, y * cell.get());",
        ),
        (
            sets_in_an_arm().into_kernel(),
            "store(out, load(x) * cell.get());",
        ),
        (
            sets_in_a_loop().into_kernel(),
            "store(out, load(x) * flag.get());",
        ),
        (
            sets_in_a_while().into_kernel(),
            "store(out + i, load(x) * flag.get());",
        ),
        (
            sets_within().into_kernel(),
            "store(out + i, load(x) * cell.get());",
        ),
        (
            sets_before_it_leaves().into_kernel(),
            "store(out, load(x) * cell.get());",
        ),
        (
            sets_in_a_function().into_kernel(),
            "store(out, y * cell.get());",
        ),
    ] {
        assert_eq!(line(&kernel), want, "{}", kernel.name());
    }
    let want = "store(out, load(x) * f64::from(number));";
    assert_eq!(line(&numbers_its_traces()), want);
}

/// A combine is called for every pair of elements, and traced once.
#[test]
fn state_of_the_host_that_a_combine_changes_is_an_error() {
    for (line, want) in [
        (line(&counts_in_a_combine()), "a + b * count.get()"),
        (
            line(&sets_in_a_combine()),
            "store(out + arange(0, 8), prefixes * cell.get());",
        ),
        (line(&counts_in_a_function()), "x * count.get()"),
        (
            line(&sets_in_an_accumulator()),
            "store(out, sums.finish() * cell.get());",
        ),
    ] {
        assert_eq!(line, want);
    }
}

#[test]
fn device_values_stay_in_the_body_that_makes_them() {
    let messages = [
        "a device value made in the body of a loop or branch is used outside of it",
        "let the body change a `mut` variable of the kernel, which is carried, and no `Cell`, `RefCell` or other \
         state of the host",
    ];
    let kernel = keeps_a_tile_of_a_branch();
    assert_eq!(line_of(&kernel, &messages), "store(out, kept.get() * 2.0);");
    let kernel = keeps_a_tile_of_a_loop();
    let want = "store(out, kept.borrow()[1] * rows);";
    assert_eq!(line_of(&kernel, &messages), want);
}

/// A macro of the kernel names what it changes, and a call of it does so too.
#[kernel]
fn calls_macros(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let mut sum = load(x);
    let mut count = n;
    macro_rules! bump {
        ($by:expr) => {{
            sum += $by;
            drop_one!();
        }};
    }
    macro_rules! drop_one {
        () => {
            count -= 1
        };
    }
    for i in 0..n {
        bump!(load(x + i));
        if i > 3 {
            bump!(1.0);
        }
    }
    store(out, sum);
    store(out + 1, count.to::<f32>());
}

#[test]
fn macros_of_the_kernel_change_what_they_name() {
    let kernel = calls_macros();
    let numbers: Vec<f32> = (0..8).map(|i| i as f32).collect();
    for device in [Device::interpreter(), Device::cpu()] {
        let x = Buffer::from_slice(&device, &numbers).expect("fits");
        let mut out = Buffer::zeros(&device, 2).expect("fits");
        kernel.run(&device, 1, (&x, &mut out, 6)).expect("runs");
        // 0 + 1 + 2 + 3 + 4 + 5, and 1 for 4 and 5 each.
        assert_eq!(out.to_vec().expect("is read"), [17.0, -2.0]);
    }
}

/// All that loops and branches may hold, without any state of the host.
#[kernel]
fn is_pure(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let factor = Cell::new(1.0);
    factor.set(3.0);
    let mut sums = [load(x), load(x + 1)];
    let mut p = x;
    'rows: for i in range(0, n).step(2) {
        let q = if i > 3 { p } else { p + i };
        match i {
            0 => sums[0] += load(q),
            1 => sums.swap(0, 1),
            2 => continue,
            3 | 4 => {
                let inner = Cell::new(load(q));
                inner.set(inner.get() * 2.0);
                sums[1] = inner.get();
            }
            _ => {
                let mut j = i;
                while j > 0 {
                    if load(q + j) > 9.0 {
                        break 'rows;
                    }
                    device_print("j", j);
                    j /= 2;
                    sums[0] = sums[0] * factor.get();
                }
            }
        }
        p += 1;
    }
    if sums[0] > sums[1] {
        sums[1] = sums[0];
    }
    let last = if n > 100 { sums[1] } else { sums[0] };
    device_print("last", last);
    let sum = reduce(load(x + arange(0, 4)), 0, |a, b| {
        let twice = Cell::new(b);
        twice.set(twice.get() * factor.get());
        a + twice.get()
    });
    store(out + 1, sum);
    store(out, last);
}

#[test]
fn kernels_of_values_alone_are_pure() {
    assert!(nests().check().is_ok());
    let found = is_pure().check();
    assert!(found.is_ok(), "{found:?}");
}
