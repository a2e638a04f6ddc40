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
            let config = matmul::Config {
                bm,
                bn,
                bk,
                ..Default::default()
            };
            let grid = (m.div_ceil(bm), n.div_ceil(bn));
            let left = left.view([m, k]).expect("fits");
            let right = right.view([k, n]).expect("fits");
            let product = out.view_mut([m, n]).expect("fits");
            matmul::<i8, i32>(config)
                .launch(&device, grid, (left, right, product))
                .expect("runs");
            assert_eq!(out.to_vec().expect("reads"), want, "{device}");
        }
    }
}
