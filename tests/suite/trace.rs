//! Kernels written with the macros, and the IR that they trace.

use exactile::prelude::*;

#[kernel(BLOCK = 128)]
fn vector_add<T: Float, const BLOCK: usize>(x: Ptr<T>, y: Ptr<T>, out: PtrMut<T>, n: i32) {
    let offsets = program_id(0) * BLOCK + arange(0, BLOCK);
    let mask = offsets < n;
    let sum = load(x + offsets).mask(mask) + load(y + offsets).mask(mask);
    store(out + offsets, sum).mask(mask);
}

#[kernel]
fn control(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let pid = program_id(0);
    if pid >= n {
        return;
    }
    let mut acc = zeros::<f32>([16]);
    let mut p = x + arange(0, 16);
    for i in 0..n {
        let unchanged = acc;
        acc += load(p) * 2.0;
        p += 16;
        if i > 3 && i < 8 {
            acc = acc + unchanged;
        }
    }
    let mut k = 2 * pid + 1;
    while k < 100 {
        k = k * 2;
    }
    let scale = if n == 3 { 1.0 * acc } else { acc / 3.0 };
    for j in 0..2 {
        store(out + arange(0, 16) + j * 16 + k, scale);
    }
}

#[test]
fn prints() {
    let kernel = vector_add::<f32>(Default::default());
    println!("{}", *kernel.trace().expect("traces"));
    let kernel = control(Default::default());
    match kernel.trace() {
        Ok(func) => println!("{}", *func),
        Err(errors) => panic!("{errors}"),
    }
}
