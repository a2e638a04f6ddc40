//! The sum of two vectors: offsets, a mask for the tail, loads and a store.

use exactile::prelude::*;
use exactile::{Number, Result};

use crate::setting::{Settable, Setting, check_shape, extent};
use crate::space;

/// `BLOCK` elements a program.
#[kernel(BLOCK = 1024, grid = n.div_ceil(BLOCK))]
pub fn vector_add<T: Numeric, #[meta(512..=8192)] const BLOCK: usize>(
    x: Ptr<T>,
    y: Ptr<T>,
    out: PtrMut<T>,
    n: i32,
) {
    let offsets = program_id(0) * BLOCK + arange(0, BLOCK);
    let mask = offsets < n;
    let sum = load(x + offsets).mask(mask) + load(y + offsets).mask(mask);
    store(out + offsets, sum).mask(mask);
}

/// `out = x + y`, element by element. A setting's `block` is the elements of a program.
pub fn launch<T: Numeric + Number>(
    x: &Buffer<T>,
    y: &Buffer<T>,
    out: &mut Buffer<T>,
    setting: &Setting,
) -> Result<()> {
    let n = out.len();
    check_shape(x.len(), &[n])?;
    check_shape(y.len(), &[n])?;
    let kernel = vector_add::<T>().block(setting.block_or(1024)).by(setting);
    let device = out.device().clone();
    kernel.launch(&device, (), (x, y, out, extent(n)?))
}

/// What it computes.
pub fn reference(x: &[f32], y: &[f32]) -> Vec<f32> {
    x.iter().zip(y).map(|(x, y)| x + y).collect()
}

/// The settings worth trying where programs have `block` elements.
pub fn small_space(block: usize) -> Vec<Setting> {
    space::shared(space::space(&[block], &[0], &[None], |block, _| block))
}

/// The settings worth trying.
pub fn space() -> Vec<Setting> {
    let blocks = vector_add::<f32>().range_of("BLOCK");
    space::space(&blocks, &[0], &[None], |block, _| block)
}
