//! What is right for numbers of the host and not for handles says what to write instead.

use exactile::prelude::*;

#[kernel]
fn adds_to_a_literal(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let mut sum = 0.0;
    for i in 0..n {
        sum += load(x + i);
    }
    store(out, sum);
}

#[kernel]
fn runs_backwards(out: PtrMut<i32>, n: i32) {
    for i in (0..n).rev() {
        store(out + i, 1);
    }
}

#[kernel]
fn casts(out: PtrMut<f32>, n: i32) {
    store(out, n as f32);
}

#[kernel]
fn compares(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let (a, b) = (load(x), load(x + 1));
    store(out, a.max(b));
    store(out + std::cmp::min(n, n), a);
}

#[kernel]
fn indexes(x: Ptr<f32>, out: PtrMut<f32>) {
    let tile = load(x + arange(0, 4));
    store(out, tile[0]);
}

#[kernel]
fn matches_a_tuple(out: PtrMut<i32>, a: i32, b: i32) {
    let both = match (a, b) {
        (0, 1) => a,
        _ => b,
    };
    store(out, both);
}

#[kernel]
fn chains(x: Option<Ptr<f32>>, out: PtrMut<f32>, n: i32) {
    if let Some(x) = x && n > 3 {
        store(out, load(x));
    }
}

#[kernel]
fn prints(out: PtrMut<i32>, n: i32) {
    println!("{n}");
    store(out, n);
}

#[kernel]
fn mixes_branches(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let at = arange(0, 4);
    let value = if n > 3 { load(x + at) } else { 1.0 };
    store(out + at, value);
}

#[kernel]
fn multiplies_a_large_literal(out: PtrMut<f32>) {
    let factor = 1.5_f32;
    store(out, factor * 5_000_000_000);
}

fn main() {}
