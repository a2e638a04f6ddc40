//! The products of two batches of matrices.

use exactile::prelude::*;
use exactile::{Number, Result};

use crate::product::{self, GROUP, TERMS, one_of, stages};
use crate::setting::{Settable, Setting, check_shape};

/// A tile `[BM, BN]` of one product a program. `WHOLE`: no step of products goes beyond a matrix.
#[kernel(BM = ..=128, BN = ..=256, grid = (out.extent(1).div_ceil(BN), rows.div_ceil(BM), out.extent(0) / rows.max(1)))]
pub fn bmm<
    T: Float,
    const WHOLE: bool,
    #[meta(64..=256)] const BM: usize,
    #[meta(128..=256)] const BN: usize,
>(
    a: Tensor<T, 2>,
    b: Tensor<T, 2>,
    out: TensorMut<T, 2>,
    rows: i64,
) {
    let ([row, column], matrix) = (tile_origin([BM, BN], GROUP), program_id(2));
    let place = [matrix * rows + row, column];
    let (b, first) = one_of(b, [matrix, a.extent(1)], WHOLE);
    let left = a.tile([BM, TERMS]).at_offset((place[0], 0));
    let right = b.tile([TERMS, BN]).at_offset((first, column));
    let sum = dot_along(
        left,
        right,
        a.extent(1),
        stages([BM, BN]),
        zeros::<f32>([BM, BN]),
    );
    let inside = (row + arange(0, BM) < rows).expand(1);
    let out = out.tile([BM, BN]).at_offset(place);
    out.store(sum.to::<T>()).mask(inside);
}

/// The products of `[batch, m, k]` and `[batch, k, n]`, rounded to `T`. A setting's `block` and `width` are the rows and the
/// columns of a tile.
///
/// # Errors
/// What a launch refuses; of `f16` and `bf16` GPUs without Hopper's tensor cores.
pub fn launch<T: Float + Number>(
    [a, b]: [&Buffer<T>; 2],
    out: &mut Buffer<T>,
    [batch, m, n, k]: [usize; 4],
    setting: &Setting,
) -> Result<()> {
    check_shape(a.len(), &[batch, m, k])?;
    check_shape(b.len(), &[batch, k, n])?;
    check_shape(out.len(), &[batch, m, n])?;
    let kernel = bmm::<T>().whole(k.is_multiple_of(TERMS));
    let kernel = setting
        .tiles(kernel, |it, bm| it.bm(bm), |it, bn| it.bn(bn))
        .by(setting);
    let device = out.device().clone();
    let arguments = (
        a.view([batch * m, k])?,
        b.view([batch * k, n])?,
        out.view_mut([batch * m, n])?,
        m as i64,
    );
    kernel.launch(&device, (), arguments)
}

/// What it computes, rounded once.
pub fn reference([a, b]: [&[f32]; 2], [m, n, k]: [usize; 3]) -> Vec<f32> {
    let matrices = a.chunks(m * k).zip(b.chunks(k * n));
    matrices
        .flat_map(|(a, b)| crate::matmul::reference(a, b, [m, n, k]))
        .collect()
}

/// The settings worth trying.
pub fn space() -> Vec<Setting> {
    product::space()
}
