//! The product of two matrices by as many programs as a device runs at once, each of which takes tiles in turns.

use exactile::prelude::*;
use exactile::{Number, Result};

use crate::product::{self, TERMS, each_tile, stages};
use crate::setting::{Settable, Setting, check_shape};

/// Tiles `[BM, BN]`, from that of a program's number on in steps of all programs, in the order in which programs would
/// take one each.
#[kernel(BM = 128, BN = 256)]
pub fn persistent_matmul<
    T: Float,
    #[meta(64..=256)] const BM: usize,
    #[meta(128..=256)] const BN: usize,
>(
    a: Tensor<T, 2>,
    b: Tensor<T, 2>,
    out: TensorMut<T, 2>,
) {
    let extents = [out.extent(0), out.extent(1)];
    each_tile(extents, [BM, BN], true, |[row, column]| {
        let left = a.tile([BM, TERMS]).at_offset((row, 0));
        let right = b.tile([TERMS, BN]).at_offset((0, column));
        let stages = stages([BM, BN]);
        let sum = dot_along(left, right, a.extent(1), stages, zeros::<f32>([BM, BN]));
        let out = out.tile([BM, BN]).at_offset([row, column]);
        out.store(sum.to::<T>());
    });
}

/// The product of `[m, k]` and `[k, n]`, rounded once from `f32`. A setting's `block` and `width` are the rows and the
/// columns of a tile. Each program has a multiprocessor to itself, or a thread of a CPU. Of `f16` and `bf16` the products
/// are those of Hopper's tensor cores, which other GPUs refuse.
///
/// # Errors
/// What a launch refuses.
pub fn launch<T: Float + Number>(
    [a, b]: [&Buffer<T>; 2],
    out: &mut Buffer<T>,
    [m, n, k]: [usize; 3],
    setting: &Setting,
) -> Result<()> {
    check_shape(a.len(), &[m, k])?;
    check_shape(b.len(), &[k, n])?;
    check_shape(out.len(), &[m, n])?;
    let (rows, columns) = (setting.block_or(128), setting.width_or(256));
    let tiles = m.div_ceil(rows) * n.div_ceil(columns);
    let programs = tiles.min(out.device().multiprocessors());
    in_turns([a, b], out, [m, n, k], (programs, setting))
}

/// The same by so many programs, of factors and a product of these shapes.
pub(crate) fn in_turns<T: Float + Number>(
    [a, b]: [&Buffer<T>; 2],
    out: &mut Buffer<T>,
    [m, n, k]: [usize; 3],
    (programs, setting): (usize, &Setting),
) -> Result<()> {
    let (rows, columns) = (setting.block_or(128), setting.width_or(256));
    // A tile of these extents has a multiprocessor to itself.
    let setting = setting.or_producer(rows * columns >= 128 * 256);
    let kernel = persistent_matmul::<T>().bm(rows).bn(columns).by(&setting);
    let device = out.device().clone();
    let arguments = (a.view([m, k])?, b.view([k, n])?, out.view_mut([m, n])?);
    kernel.launch(&device, programs, arguments)
}

/// The settings worth trying.
pub fn space() -> Vec<Setting> {
    product::space()
}
