//! What leaves a loop is a statement, and leaves something.

use exactile::prelude::*;

#[kernel]
fn jumps(x: PtrMut<f32>, n: i32) {
    let mut i = scalar::<i64>(0);
    let found = loop {
        if load(x + i) > 0.0 {
            break i;
        }
        if i > 7 {
            break;
        }
        i += 1;
    };
    for j in 0..n {
        if j > 2 {
            break j;
        }
        store(x + if j > 3 { continue } else { j }, 1.0);
        vec![break];
    }
    'block: {
        if n > 3 {
            break 'block;
        }
        store(x, 2.0);
    }
    loop {
        store(x, 1.0);
    }
}

#[device]
fn first(x: Ptr<f32>, n: Scalar<i64>) -> Scalar<i64> {
    for i in 0..n {
        if load(x + i) > 0.0 {
            return i;
        }
        if i > 9 {
            return;
        }
    }
}

#[device]
fn second(x: Ptr<f32>, n: Scalar<i64>) -> Scalar<i64> {
    let value = 1 + loop {
        if load(x + n) > 0.0 {
            return n;
        }
        break n + 1;
    };
    value
}

fn main() {}
