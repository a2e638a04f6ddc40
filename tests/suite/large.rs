//! Tiles of more elements than the registers of a warp hold.

use exactile::prelude::*;
use exactile::{ListingStage, Target, assert_bits_equal};
use exactile_kernels::tree;

#[kernel]
fn total(x: Ptr<f32>, out: PtrMut<f32>) {
    let (row, column) = (arange(0, 512).expand(1), arange(0, 512).expand(0));
    store(out, load(x + row * 512 + column).sum(1).sum(0));
}

#[kernel]
fn product(a: Ptr<f32>, b: Ptr<f32>, out: PtrMut<f32>) {
    let (row, column) = (arange(0, 256).expand(1), arange(0, 256).expand(0));
    let place = row * 256 + column;
    let product = dot(load(a + place), load(b + place), zeros([256, 256]));
    store(out + place, product);
}

fn numbers(count: usize, seed: usize) -> Vec<f32> {
    let number = |at: usize| ((at * 7919 + seed) % 4001) as f32 / 64.0 - 31.0;
    (0..count).map(number).collect()
}

/// The CPU, and a GPU where there is one.
fn devices() -> impl Iterator<Item = Device> {
    [Some(Device::cpu()), Device::cuda(0).ok()]
        .into_iter()
        .flatten()
}

#[test]
fn a_sum_of_512_by_512_runs() {
    let x = numbers(512 * 512, 3);
    let rows: Vec<f32> = x.chunks(512).map(tree::sum).collect();
    for device in devices() {
        let x = Buffer::from_slice(&device, &x).expect("fits");
        let mut out = Buffer::<f32>::zeros(&device, 1).expect("fits");
        let kernel = total();
        kernel.run(&device, 1, (&x, &mut out)).expect("runs");
        assert_bits_equal(&out.to_vec().expect("reads"), &[tree::sum(&rows)]);
        let inspection = kernel
            .inspect(&device, 1, (&x, &mut out))
            .expect("compiles");
        let lanes = inspection.on(Target::SM_90A).text(ListingStage::Lane);
        assert!(lanes.expect("compiles for a GPU").contains("shuffle_xor"));
    }
}

#[test]
fn a_product_of_256_runs() {
    let (a, b) = (numbers(256 * 256, 5), numbers(256 * 256, 8));
    let of = |row: usize, column: usize| {
        (0..256).fold(0.0_f32, |sum, k| {
            a[row * 256 + k].mul_add(b[k * 256 + column], sum)
        })
    };
    let expected: Vec<f32> = (0..256 * 256).map(|at| of(at / 256, at % 256)).collect();
    for device in devices() {
        let [a, b] = [&a, &b].map(|it| Buffer::from_slice(&device, it).expect("fits"));
        let mut out = Buffer::<f32>::zeros(&device, 256 * 256).expect("fits");
        let kernel = product();
        kernel.run(&device, 1, (&a, &b, &mut out)).expect("runs");
        assert_bits_equal(&out.to_vec().expect("reads"), &expected);
        let inspection = kernel
            .inspect(&device, 1, (&a, &b, &mut out))
            .expect("compiles");
        let lanes = inspection.on(Target::SM_90A).text(ListingStage::Lane);
        assert!(lanes.expect("compiles for a GPU").contains("fma"));
    }
}
