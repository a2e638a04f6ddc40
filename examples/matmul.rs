//! The product of two row-major matrices, tile by tile.

use exactile::prelude::*;
use exactile::{Number, Result};
use exactile_harness::demo::{Case, problem, random};

#[kernel(BM = 64, BN = 64, BK = 32)]
pub(crate) fn matmul<T: Float, const BM: usize, const BN: usize, const BK: usize>(
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

pub(crate) fn case<T: Float + Number>(m: usize, n: usize, k: usize) -> Case {
    Case {
        kernel: "matmul",
        dtype: <T as Number>::DTYPE,
        shape: vec![m, n, k],
        bytes: ((m * k + k * n) * size_of::<T>() + 4 * m * n) as u64,
        flops: (2 * m * n * k) as u64,
        blocks: vec![64, 32, 16],
        elements: |block| block * block,
        setup: Box::new(move |device| {
            let a = Buffer::from_slice(device, &random::<T>(7, m * k))?;
            let b = Buffer::from_slice(device, &random::<T>(8, k * n))?;
            let device = device.clone();
            let c = Buffer::<f32>::zeros(&device, m * n)?;
            Ok(problem(c, move |c, setting| {
                let config = matmul::Config {
                    bm: setting.block,
                    bn: setting.block,
                    bk: setting.block / 2,
                    ..matmul::Config::new()
                }
                .scheduled(setting.schedule());
                let grid = (m.div_ceil(config.bm), n.div_ceil(config.bn));
                matmul::<T>(config).determinism(setting.determinism).launch(
                    &device,
                    grid,
                    (&a, &b, c, m as i32, n as i32, k as i32),
                )
            }))
        }),
    }
}

/// What the demo runs; `quick` takes small inputs.
pub(crate) fn cases(quick: bool) -> Vec<Case> {
    if quick {
        return vec![case::<f32>(100, 70, 50)];
    }
    vec![case::<f32>(1000, 700, 500), case::<f32>(1024, 1024, 1024)]
}

fn main() -> Result<()> {
    exactile_harness::demo::main(&cases(true))
}
