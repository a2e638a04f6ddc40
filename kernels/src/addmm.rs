//! A product of matrices added to a matrix, both scaled.

use exactile::prelude::*;
use exactile::{Number, Result};

use crate::product::{self, GROUP, TERMS, grid, stages};
use crate::setting::{Settable, Setting, check_shape};

/// A tile `[BM, BN]` a program.
#[kernel(BM = ..=128, BN = ..=256, grid = grid(&out, [BM, BN]))]
pub fn addmm<T: Float, #[meta(64..=256)] const BM: usize, #[meta(128..=256)] const BN: usize>(
    a: Tensor<T, 2>,
    b: Tensor<T, 2>,
    addend: Option<Tensor<T, 2>>,
    out: TensorMut<T, 2>,
    alpha: f32,
    beta: f32,
) {
    let [row, column] = tile_origin([BM, BN], GROUP);
    let left = a.tile([BM, TERMS]).at_offset((row, 0));
    let right = b.tile([TERMS, BN]).at_offset((0, column));
    let mut sum = dot_along(
        left,
        right,
        a.extent(1),
        stages([BM, BN]),
        zeros::<f32>([BM, BN]),
    ) * alpha;
    if let Some(addend) = addend {
        let addend = addend.tile([BM, BN]).at_offset([row, column]).load();
        sum += addend.to::<f32>() * beta;
    }
    let out = out.tile([BM, BN]).at_offset([row, column]);
    out.store(sum.to::<T>());
}

/// `alpha a b + beta addend` of `a` `[m, k]`, `b` `[k, n]` and `addend` `[m, n]`, or `[n]`, which is added to each row; in
/// `f32`, each step rounded, and rounded to `T` in the end. Without an addend it is `alpha a b`; with a `beta` of 0 the
/// addend is not read. A setting's `block` and `width` are the rows and the columns of a tile.
///
/// # Errors
/// What a launch refuses; of `f16` and `bf16` GPUs without Hopper's tensor cores.
pub fn launch<T: Float + Number>(
    [a, b]: [&Buffer<T>; 2],
    addend: Option<&Buffer<T>>,
    [alpha, beta]: [f32; 2],
    out: &mut Buffer<T>,
    [m, n, k]: [usize; 3],
    setting: &Setting,
) -> Result<()> {
    check_shape(a.len(), &[m, k])?;
    check_shape(b.len(), &[k, n])?;
    check_shape(out.len(), &[m, n])?;
    let addend = addend.filter(|_| beta != 0.0);
    let rows_apart = match addend {
        Some(addend) if addend.len() == n => 0,
        Some(addend) => {
            check_shape(addend.len(), &[m, n])?;
            n
        }
        None => n,
    };
    let kernel = addmm::<T>();
    let kernel = setting
        .tiles(kernel, |it, bm| it.bm(bm), |it, bn| it.bn(bn))
        .by(setting);
    let device = out.device().clone();
    let addend = addend.map(|addend| addend.view_strided([m, n], [rows_apart, 1]));
    let arguments = (
        a.view([m, k])?,
        b.view([k, n])?,
        addend.transpose()?,
        out.view_mut([m, n])?,
        alpha,
        beta,
    );
    kernel.launch(&device, (), arguments)
}

/// What it computes, in `f64` and rounded once.
pub fn reference(
    [a, b]: [&[f32]; 2],
    addend: Option<&[f32]>,
    [alpha, beta]: [f32; 2],
    shape @ [_, n, _]: [usize; 3],
) -> Vec<f32> {
    let products = crate::matmul::reference(a, b, shape);
    let element = |(at, product): (usize, f32)| {
        let addend = addend.map_or(0.0, |addend| f64::from(addend[at % addend.len().max(n)]));
        (f64::from(alpha) * f64::from(product) + f64::from(beta) * addend) as f32
    };
    products.into_iter().enumerate().map(element).collect()
}

/// The settings worth trying.
pub fn space() -> Vec<Setting> {
    product::space()
}
