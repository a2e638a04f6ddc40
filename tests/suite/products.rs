//! Matrix products of integers as a user writes them.

use exactile::prelude::*;

use crate::language::{devices, upload};

#[kernel(BM = 16, BN = 16, BK = 32)]
fn matmul<T: Numeric, A: Numeric, const BM: usize, const BN: usize, const BK: usize>(
    a: Tensor<T, 2>,
    b: Tensor<T, 2>,
    c: TensorMut<A, 2>,
) {
    let (row, column) = (program_id(0) * BM, program_id(1) * BN);
    let mut sum = zeros::<A>([BM, BN]);
    for k in range(0, a.extent(1)).step(BK) {
        let left = a.tile([BM, BK]).at_offset([row, k]).load();
        let right = b.tile([BK, BN]).at_offset([k, column]).load();
        sum = dot(left, right, sum);
    }
    c.tile([BM, BN]).at_offset([row, column]).store(sum);
}

/// The least numbers add up beyond 16 bits, and no tile size changes the sums.
#[test]
fn bytes_are_multiplied_and_added_in_words() {
    let (m, n, k) = (19, 37, 150);
    let a: Vec<i8> = (0..m * k).map(|i| (i * 89 % 251) as i8).collect();
    let mut b: Vec<i8> = (0..k * n).map(|i| (i * 53 % 241) as i8).collect();
    b[..n].fill(i8::MIN);
    let product = |at: usize, inner: usize| {
        i32::from(a[at / n * k + inner]) * i32::from(b[inner * n + at % n])
    };
    let want: Vec<i32> = (0..m * n)
        .map(|at| (0..k).map(|inner| product(at, inner)).sum())
        .collect();
    for device in devices() {
        let (left, right) = (upload(&device, &a), upload(&device, &b));
        for (bm, bn, bk) in [(16, 16, 32), (4, 64, 8), (32, 8, 128)] {
            let mut out = Buffer::<i32>::zeros(&device, m * n).expect("fits");
            let kernel = matmul::<i8, i32>().bm(bm).bn(bn).bk(bk);
            let grid = (m.div_ceil(bm), n.div_ceil(bn));
            let left = left.view([m, k]).expect("fits");
            let right = right.view([k, n]).expect("fits");
            let product = out.view_mut([m, n]).expect("fits");
            kernel
                .launch(&device, grid, (left, right, product))
                .expect("runs");
            assert_eq!(out.to_vec().expect("reads"), want, "{device}");
        }
    }
}

/// No machine has shared memory for all of the two operands at once.
#[test]
fn products_of_more_than_shared_memory_are_one_chain() {
    let (m, n, k) = (15, 16, 2_000);
    let number = |i: usize| ((i * 7919 % 1009) as f64 - 500.0) / 3.0;
    let a: Vec<f64> = (0..m * k).map(number).collect();
    let b: Vec<f64> = (0..k * n).map(|i| number(i + 17)).collect();
    let chain = |at: usize| {
        (0..k).fold(0.0_f64, |sum, inner| {
            a[at / n * k + inner].mul_add(b[inner * n + at % n], sum)
        })
    };
    let want: Vec<f64> = (0..m * n).map(chain).collect();
    for device in devices() {
        let (left, right) = (upload(&device, &a), upload(&device, &b));
        let mut out = Buffer::<f64>::zeros(&device, m * n).expect("fits");
        let left = left.view([m, k]).expect("fits");
        let right = right.view([k, n]).expect("fits");
        let product = out.view_mut([m, n]).expect("fits");
        matmul::<f64, f64>()
            .bk(2_048)
            .launch(&device, (1, 1), (left, right, product))
            .expect("runs");
        assert_eq!(out.to_vec().expect("reads"), want, "{device}");
    }
}

#[kernel(BM = 16, BN = 16, BK = 16)]
fn batched_matmul<const BATCH: usize, const BM: usize, const BN: usize, const BK: usize>(
    a: Tensor<f32, 3>,
    b: Tensor<f32, 3>,
    c: TensorMut<f32, 3>,
) {
    let (row, column) = (program_id(0) * BM, program_id(1) * BN);
    let batch = program_id(2) * BATCH;
    let mut sum = zeros::<f32>([BATCH, BM, BN]);
    for k in range(0, a.extent(2)).step(BK) {
        let left = a.tile([BATCH, BM, BK]).at_offset([batch, row, k]).load();
        let right = b.tile([BATCH, BK, BN]).at_offset([batch, k, column]).load();
        sum = dot(left, right, sum);
    }
    let corner = [batch, row, column];
    c.tile([BATCH, BM, BN]).at_offset(corner).store(sum);
}

/// Each matrix of a batch has the chain of a product of its own, whatever is multiplied at once.
#[test]
fn batches_are_multiplied() {
    let (batch, m, n, k) = (3, 10, 21, 33);
    let a: Vec<f32> = (0..batch * m * k)
        .map(|i| (i * 89 % 251) as f32 / 7.0 - 18.0)
        .collect();
    let b: Vec<f32> = (0..batch * k * n)
        .map(|i| (i * 53 % 241) as f32 / 11.0 - 9.0)
        .collect();
    let product = |at: usize| {
        let (row, column) = (at / n, at % n);
        let inner = (row / m) * k;
        (0..k).fold(0.0, |sum: f32, step| {
            a[row * k + step].mul_add(b[(inner + step) * n + column], sum)
        })
    };
    let want: Vec<f32> = (0..batch * m * n).map(product).collect();
    for device in devices() {
        let (left, right) = (upload(&device, &a), upload(&device, &b));
        let left = left.view([batch, m, k]).expect("fits");
        let right = right.view([batch, k, n]).expect("fits");
        let mut out = Buffer::<f32>::zeros(&device, batch * m * n).expect("fits");
        for (bm, bn, bk) in [(16, 16, 16), (4, 32, 8), (2, 2, 64)] {
            let kernel = batched_matmul().batch(4).bm(bm).bn(bn).bk(bk);
            let grid = (m.div_ceil(bm), n.div_ceil(bn), 1);
            let product = out.view_mut([batch, m, n]).expect("fits");
            kernel
                .launch(&device, grid, (left, right, product))
                .expect("runs");
            let found = out.to_vec().expect("reads");
            assert_eq!(found, want, "{device}, {bm} x {bn} x {bk}");
        }
    }
}

/// A product with its loop written out, and by the function for it.
mod spelled {
    use super::*;

    #[kernel(BM = 16, BN = 32, BK = 16)]
    pub(super) fn product<const BM: usize, const BN: usize, const BK: usize>(
        a: Tensor<f32, 2>,
        b: Tensor<f32, 2>,
        c: TensorMut<f32, 2>,
    ) {
        let (rows, columns) = (num_programs(1), num_programs(0));
        let (row, column) = swizzle_2d(program_id(1), program_id(0), rows, columns, 2);
        let [row, column] = [row * BM, column * BN];
        let mut sum = zeros::<f32>([BM, BN]);
        for k in range(0, a.extent(1)).step(BK).stages(3) {
            let left = a.tile([BM, BK]).at_offset([row, k]).load();
            let right = b.tile([BK, BN]).at_offset([k, column]).load();
            sum = dot(left, right, sum);
        }
        let halves = [sum.slice(1, 0, BN / 2), sum.slice(1, BN / 2, BN / 2)];
        let sum = cat(halves.map(relu), 1);
        store(c.tile([BM, BN]).at_offset([row, column]), sum);
    }
}

mod short {
    use super::*;

    #[kernel(BM = 16, BN = 32, BK = 16)]
    pub(super) fn product<const BM: usize, const BN: usize, const BK: usize>(
        a: Tensor<f32, 2>,
        b: Tensor<f32, 2>,
        c: TensorMut<f32, 2>,
    ) {
        let [row, column] = tile_origin([BM, BN], 2);
        let left = a.tile([BM, BK]).at_offset((row, 0));
        let right = b.tile([BK, BN]).at_offset((0, column));
        let sum = dot_along(left, right, a.extent(1), 3, zeros::<f32>([BM, BN]));
        let sum = sum.map_slices(1, BN / 2, relu);
        store(c.tile([BM, BN]).at_offset([row, column]), sum);
    }
}

/// A GPU gets the same code either way, and every tile gives the chain over all products.
#[test]
fn products_along_an_axis_are_their_loop() {
    let lane = exactile::ListingStage::Lane;
    let listings = [
        spelled::product().listing(lane),
        short::product().listing(lane),
    ];
    let [spelled, short] = listings.map(|it| it.expect("is lowered"));
    assert_eq!(short, spelled);
    let (m, n, k) = (37, 70, 50);
    let number = |i: usize| ((i * 89 % 251) as f32 - 125.0) / 64.0;
    let a: Vec<f32> = (0..m * k).map(number).collect();
    let b: Vec<f32> = (0..k * n).map(|i| number(i + 7)).collect();
    let element = |at: usize| {
        let terms = (0..k).map(|inner| (a[at / n * k + inner], b[inner * n + at % n]));
        terms
            .fold(0.0_f32, |sum, (a, b)| a.mul_add(b, sum))
            .max(0.0)
    };
    let want: Vec<f32> = (0..m * n).map(element).collect();
    for device in devices() {
        let (left, right) = (upload(&device, &a), upload(&device, &b));
        for (bm, bn, bk) in [(16, 32, 16), (32, 16, 8), (8, 8, 64)] {
            let mut out = Buffer::<f32>::zeros(&device, m * n).expect("fits");
            let views = (
                left.view([m, k]).expect("fits"),
                right.view([k, n]).expect("fits"),
                out.view_mut([m, n]).expect("fits"),
            );
            let kernel = short::product().bm(bm).bn(bn).bk(bk);
            let grid = (n.div_ceil(bn), m.div_ceil(bm));
            kernel.launch(&device, grid, views).expect("runs");
            exactile::assert_bits_equal(&out, &want);
        }
    }
}

#[kernel]
fn shapes_that_do_not_meet(a: Tensor<f32, 2>, b: Tensor<f32, 2>, c: TensorMut<f32, 2>) {
    let (left, right) = (a.tile([16, 16]), b.tile([32, 16]));
    let (left, right) = (left.at([0, 0]), right.at([0, 0]));
    let sum = dot_along(left, right, a.extent(1), 2, zeros::<f32>([16, 16]));
    store(c.tile([16, 16]).at([0, 0]), sum);
}

#[test]
fn rows_and_columns_of_tiles_meet() {
    let errors = shapes_that_do_not_meet().trace().expect_err("is refused");
    let text = errors.to_string();
    assert!(
        text.contains("`dot`") && text.contains("products.rs"),
        "{text}"
    );
}
