//! The product of two row-major matrices, tile by tile.

use exactile::prelude::*;

#[kernel(BM = 64, BN = 64, BK = 32)]
fn matmul<T: Float, const BM: usize, const BN: usize, const BK: usize>(
    a: Ptr<T>,
    b: Ptr<T>,
    c: PtrMut<f32>,
    m: i32,
    n: i32,
    k: i32,
) {
    let rm = program_id(0) * BM + arange(0, BM);
    let rn = program_id(1) * BN + arange(0, BN);
    let mut acc = zeros::<f32>([BM, BN]);
    for k0 in range(0, k).step(BK) {
        let rk = k0 + arange(0, BK);
        let ta = load(a + rm.expand(1) * k + rk.expand(0))
            .mask((rm.expand(1) < m) & (rk.expand(0) < k))
            .other(0.0);
        let tb = load(b + rk.expand(1) * n + rn.expand(0))
            .mask((rk.expand(1) < k) & (rn.expand(0) < n))
            .other(0.0);
        acc = dot(ta, tb, acc);
    }
    store(c + rm.expand(1) * n + rn.expand(0), acc).mask((rm.expand(1) < m) & (rn.expand(0) < n));
}

fn main() {
    println!("{:?}", matmul::<f32>(matmul::Config::default()));
}
