//! The product of two row-major matrices of 16-bit floats by tensor cores, tile by tile.

use exactile::prelude::*;
use exactile::{Number, Result};

use crate::setting::{Settable, Setting, check_shape, extent};
use crate::{linear, persistent_matmul, product};

/// A tile of `[BM, BN]` a program, `BK` products at a time. Sums are those of `Precision::Hopper`, in `f32`,
/// rounded once in the end.
#[kernel(BM = ..=128, BN = ..=256, BK = 64, grid = (n.div_ceil(BN), m.div_ceil(BM)))]
pub fn tensor_matmul<
    T: Float,
    #[meta(64..=256)] const BM: usize,
    #[meta(128..=256)] const BN: usize,
    const BK: usize,
>(
    a: Ptr<T>,
    b: Ptr<T>,
    c: PtrMut<T>,
    m: i32,
    n: i32,
    k: i32,
) {
    let (row, column) = (program_id(1), program_id(0));
    let (row, column) = swizzle_2d(row, column, num_programs(1), num_programs(0), 8);
    let rm = row * BM + arange(0, BM);
    let rn = column * BN + arange(0, BN);
    let mut acc = zeros::<f32>([BM, BN]);
    for k0 in range(0, k).step(BK).stages(product::stages([BM, BN])) {
        let rk = k0 + arange(0, BK);
        let ta = load(a + rm.expand(1) * k + rk.expand(0))
            .mask((rm.expand(1) < m) & (rk.expand(0) < k))
            .other(0.0);
        let tb = load(b + rk.expand(1) * n + rn.expand(0))
            .mask((rk.expand(1) < k) & (rn.expand(0) < n))
            .other(0.0);
        acc = dot_with(Precision::Hopper, ta, tb, acc);
    }
    store(c + rm.expand(1) * n + rn.expand(0), acc.to::<T>())
        .mask((rm.expand(1) < m) & (rn.expand(0) < n));
}

/// The product of `[m, k]` and `[k, n]`, rounded to `T`. A setting's `block` and `width` are the rows and the
/// columns of a tile of the product; up to 128 rows are columns of their tiles without one. Where there are more tiles of 128 x
/// 256 than multiprocessors, and rows are multiples of 16 bytes, programs take them in turns.
///
/// # Errors
/// What a launch refuses, among it `T` of other than 16 bits and GPUs without these tensor cores.
pub fn launch<T: Float + Number>(
    a: &Buffer<T>,
    b: &Buffer<T>,
    c: &mut Buffer<T>,
    [m, n, k]: [usize; 3],
    setting: &Setting,
) -> Result<()> {
    check_shape(a.len(), &[m, k])?;
    check_shape(b.len(), &[k, n])?;
    check_shape(c.len(), &[m, n])?;
    let device = c.device().clone();
    if product::has_few_rows(m, setting, &device) {
        let turned = [
            b.view_strided([n, k], [1, n])?,
            a.view_strided([k, m], [1, k])?,
        ];
        return linear::few_rows(turned, None, None, c, setting);
    }
    if let Some((programs, stated)) = product::turns_of_halves::<T>(&device, [m, n, k], setting) {
        return persistent_matmul::in_turns([a, b], c, [m, n, k], (programs, &stated));
    }
    let kernel = tensor_matmul::<T>();
    let kernel = setting
        .tiles(kernel, |it, bm| it.bm(bm), |it, bn| it.bn(bn))
        .by(setting);
    kernel.launch(&device, (), (a, b, c, extent(m)?, extent(n)?, extent(k)?))
}

/// The settings worth trying.
pub fn space() -> Vec<Setting> {
    product::space()
}
