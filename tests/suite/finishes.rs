//! Accumulators whose total is taken in some branches only: behind a `return` of a loop, or in one of two.

use exactile::prelude::*;

use super::language::{devices, upload};

#[kernel]
fn returns<const BLOCK: usize>(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let mut sum = sum_accumulator::<f32>([]);
    let mut most = max_accumulator::<f32>([]);
    let mut product = accumulator::<Tile<f32>>([], |a, b| a * b);
    for start in range(0, n).step(BLOCK) {
        let at = start + arange(0, BLOCK);
        let tile = load(x + at).mask(at < n);
        if tile.max(0) > 100.0 {
            return;
        }
        sum.add(tile, 0);
        most.add_masked(tile, at < n, 0);
        product.add_masked(tile, at < n, 0);
    }
    store(out, sum.finish());
    store(out + 1, most.finish());
    store(out + 2, product.finish());
}

#[device]
fn total(x: Ptr<f32>, n: Scalar<i32>, block: usize) -> Tile<f32> {
    let mut sum = sum_accumulator::<f32>([]);
    for start in range(0, n).step(block) {
        let at = start + arange(0, block);
        let tile = load(x + at).mask(at < n);
        if tile.max(0) > 100.0 {
            return zeros([]);
        }
        sum.add(tile, 0);
    }
    sum.finish()
}

#[kernel]
fn chooses<const BLOCK: usize>(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    store(out, total(x, n, BLOCK));
    let mut sum = sum_accumulator::<f32>([]);
    sum.add(load(x + arange(0, BLOCK)).mask(arange(0, BLOCK) < n), 0);
    if n > 2 {
        store(out + 1, sum.finish());
    }
    store(out + 2, 1.0);
}

#[test]
fn a_total_is_taken_behind_a_way_out() {
    let numbers = [1.5f32, 2.0, 0.5, 4.0, 8.0, 1.0, 200.0];
    for device in devices() {
        let x = upload(&device, &numbers);
        for block in [8, 16] {
            for (n, want) in [(6, [17.0, 8.0, 48.0]), (7, [9.0; 3])] {
                let mut out = upload(&device, &[9.0f32; 3]);
                let arguments = (&x, &mut out, n);
                returns()
                    .block(block)
                    .run(&device, 1, arguments)
                    .expect("runs");
                assert_eq!(out.to_vec().expect("reads"), want, "{device} {n}");
            }
            for (n, want) in [
                (2, [3.5, 9.0, 1.0]),
                (6, [17.0, 17.0, 1.0]),
                (7, [0.0, 217.0, 1.0]),
            ] {
                let mut out = upload(&device, &[9.0f32; 3]);
                let arguments = (&x, &mut out, n);
                chooses()
                    .block(block)
                    .run(&device, 1, arguments)
                    .expect("runs");
                assert_eq!(out.to_vec().expect("reads"), want, "{device} {n}");
            }
        }
    }
}
