//! The product of two row-major matrices, tile by tile.

use exactile::prelude::*;
use exactile::{DeviceKind, Number, Result};

use crate::setting::{Settable, Setting, check_shape, extent};
use crate::space;

/// A tile of `[BM, BN]` a program, `BK` terms of its sums at a time, which are added in `A`.
#[kernel(BM = 64, BN = 64, BK = 32, grid = (m.div_ceil(BM), n.div_ceil(BN)))]
pub fn matmul<
    T: Float,
    A: Float,
    #[meta(128, 64, 32, 16)] const BM: usize,
    #[meta(128, 64, 32, 16)] const BN: usize,
    const BK: usize,
>(
    a: Ptr<T>,
    b: Ptr<T>,
    c: PtrMut<A>,
    m: i32,
    n: i32,
    k: i32,
) {
    let rm = program_id(0) * BM + arange(0, BM);
    let rn = program_id(1) * BN + arange(0, BN);
    let mut acc = zeros::<A>([BM, BN]);
    for k0 in range(0, k).step(BK).stages(stages::<A>(BM)) {
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

/// Steps that are under way: large tiles of `f32` have sums enough to hide the loads of one, and tensor cores take those of `f64`
/// from slots that all warps share.
fn stages<A: Float>(rows: usize) -> usize {
    match (A::DTYPE.bytes(), rows > 64) {
        (8, true) => 3,
        (8, false) => 4,
        (_, true) => 1,
        (_, false) => 2,
    }
}

/// Terms that are added at a time for tiles of so many rows: a step of tensor cores has 16 of them.
fn terms<A: Float>(rows: usize) -> usize {
    let most = if A::DTYPE.bytes() == 8 { 16 } else { 32 };
    (rows / 2).clamp(16, most)
}

/// The product of `[m, k]` and `[k, n]`, added in `f32` or `f64`. A setting's `block` is both extents of a tile of the
/// product, and twice the terms that are added at a time, which are 16 or 32, of `f64` 16. Of `f16` and `bf16` added in `f32` it is what
/// Hopper's tensor cores compute, which other GPUs refuse.
pub fn launch<T: Float + Number, A: Float + Number>(
    a: &Buffer<T>,
    b: &Buffer<T>,
    c: &mut Buffer<A>,
    [m, n, k]: [usize; 3],
    setting: &Setting,
) -> Result<()> {
    check_shape(a.len(), &[m, k])?;
    check_shape(b.len(), &[k, n])?;
    check_shape(c.len(), &[m, n])?;
    let device = c.device().clone();
    // Of large tiles a lane reads fewer numbers for each sum, where each multiprocessor has two or more of them.
    let large = m.div_ceil(128) * n.div_ceil(128);
    let many = large >= 2 * device.multiprocessors() && device.kind() != DeviceKind::Cpu;
    let block = setting.block_or(if many { 128 } else { 64 });
    let kernel = matmul::<T, A>().bm(block).bn(block);
    let kernel = kernel.bk(terms::<A>(block)).by(setting);
    kernel.launch(&device, (), (a, b, c, extent(m)?, extent(n)?, extent(k)?))
}

/// What it computes, rounded once.
pub fn reference(a: &[f32], b: &[f32], [m, n, k]: [usize; 3]) -> Vec<f32> {
    let mut out = Vec::new();
    for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
        let term = |at: usize| f64::from(a[row * k + at]) * f64::from(b[at * n + column]);
        out.push((0..k).map(term).sum::<f64>() as f32);
    }
    out
}

/// The settings worth trying.
pub fn space() -> Vec<Setting> {
    space::space(
        &matmul::<f32, f32>().range_of("BM"),
        &[0],
        &[None],
        |block, _| block * block,
    )
}
