//! Dropout by a seed: what is kept follows from the seed and the place of an element alone, so nothing is stored.

use exactile::prelude::*;
use exactile::{Number, Result};

use crate::setting::{Settable, Setting, check_shape};
use crate::space;

/// `BLOCK` elements a program.
#[kernel(BLOCK = 1024, grid = n.div_ceil(BLOCK))]
pub fn dropout<T: Float, #[meta(512..=4096)] const BLOCK: usize>(
    x: Ptr<T>,
    out: PtrMut<T>,
    n: i64,
    share: f32,
    seed: u64,
) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let mask = at < n;
    let kept = load(x + at).mask(mask).to::<f32>() / (1.0 - share);
    let value = select(rand(seed, at) >= share, kept, 0.0);
    store(out + at, value.to::<T>()).mask(mask);
}

/// Elements become 0 with the probability `share`, others `x / (1 - share)`. The backward pass is the same with the
/// gradient in the place of `x`. A setting's `block` is the elements of a program.
pub fn launch<T: Float + Number>(
    x: &Buffer<T>,
    out: &mut Buffer<T>,
    share: f32,
    seed: u64,
    setting: &Setting,
) -> Result<()> {
    let n = out.len();
    check_shape(x.len(), &[n])?;
    let kernel = dropout::<T>().block(setting.block_or(1024)).by(setting);
    let device = out.device().clone();
    kernel.launch(&device, (), (x, out, n as i64, share, seed))
}

/// What becomes of an element that is kept.
pub fn reference(x: f32, share: f32) -> f32 {
    x / (1.0 - share)
}

/// The settings worth trying.
pub fn space() -> Vec<Setting> {
    let blocks = dropout::<f32>().range_of("BLOCK");
    space::space(&blocks, &[0], &[None], |block, _| block)
}
