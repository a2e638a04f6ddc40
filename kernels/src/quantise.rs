//! Numbers in 8 bits, with a scale for each block of them.

use exactile::prelude::*;
use exactile::{Number, Result};

use crate::setting::{Settable, Setting, check_shape};
use crate::space;

/// `ROWS` blocks of `BLOCK` numbers a program; a block's greatest size becomes `most`.
#[kernel(ROWS = 8, grid = x.extent(0).div_ceil(ROWS))]
pub fn quantise<T: Float, Q: Numeric, const BLOCK: usize, #[meta(4..=32)] const ROWS: usize>(
    x: Tensor<T, 2>,
    out: TensorMut<Q, 2>,
    scales: TensorMut<f32, 1>,
    most: f32,
) {
    let tile = x
        .tile([ROWS, BLOCK])
        .at((program_id(0), 0))
        .load()
        .to::<f32>();
    let greatest = abs(tile).max_keep(1);
    let scale = select(greatest == 0.0, 1.0, greatest / most);
    let quotient = tile / scale;
    let number = if Q::DTYPE.is_float() {
        quotient
    } else {
        round(quotient)
    };
    out.tile([ROWS, BLOCK])
        .at((program_id(0), 0))
        .store(number.to::<Q>());
    scales
        .tile([ROWS])
        .at((program_id(0),))
        .store(scale.reshape([ROWS]));
}

/// The numbers again.
#[kernel(ROWS = 8, grid = x.extent(0).div_ceil(ROWS))]
pub fn dequantise<T: Float, Q: Numeric, const BLOCK: usize, #[meta(4..=32)] const ROWS: usize>(
    x: Tensor<Q, 2>,
    scales: Tensor<f32, 1>,
    out: TensorMut<T, 2>,
) {
    let scale = scales.tile([ROWS]).at((program_id(0),)).load().expand(1);
    let tile = x
        .tile([ROWS, BLOCK])
        .at((program_id(0), 0))
        .load()
        .to::<f32>();
    out.tile([ROWS, BLOCK])
        .at((program_id(0), 0))
        .store((tile * scale).to::<T>());
}

/// The type that numbers are kept in: `i8` up to 127, `F8E4M3` up to 448, `F8E5M2` up to 57344.
pub trait Quantised: Numeric + Number {
    /// What a block's greatest size becomes.
    const MOST: f32;
}
impl Quantised for i8 {
    const MOST: f32 = 127.0;
}
impl Quantised for F8E4M3 {
    const MOST: f32 = 448.0;
}
impl Quantised for F8E5M2 {
    const MOST: f32 = 57344.0;
}

/// `[blocks, block]` numbers as `Q` with a scale a block, which is a power of two of numbers. A setting's `width` is the
/// blocks of a program.
pub fn launch<T: Float + Number, Q: Quantised>(
    x: &Buffer<T>,
    out: &mut Buffer<Q>,
    scales: &mut Buffer<f32>,
    [blocks, block]: [usize; 2],
    setting: &Setting,
) -> Result<()> {
    check_shape(x.len(), &[blocks, block])?;
    check_shape(out.len(), &[blocks, block])?;
    check_shape(scales.len(), &[blocks])?;
    let kernel = quantise::<T, Q>()
        .block(block)
        .rows(setting.width_or(8))
        .by(setting);
    let device = out.device().clone();
    let views = (
        x.view([blocks, block])?,
        out.view_mut([blocks, block])?,
        scales.view_mut([blocks])?,
        Q::MOST,
    );
    kernel.launch(&device, (), views)
}

/// What [`launch`] made, as numbers again.
pub fn restore<T: Float + Number, Q: Quantised>(
    x: &Buffer<Q>,
    scales: &Buffer<f32>,
    out: &mut Buffer<T>,
    [blocks, block]: [usize; 2],
    setting: &Setting,
) -> Result<()> {
    check_shape(x.len(), &[blocks, block])?;
    check_shape(out.len(), &[blocks, block])?;
    check_shape(scales.len(), &[blocks])?;
    let kernel = dequantise::<T, Q>()
        .block(block)
        .rows(setting.width_or(8))
        .by(setting);
    let device = out.device().clone();
    let views = (
        x.view([blocks, block])?,
        scales.view([blocks])?,
        out.view_mut([blocks, block])?,
    );
    kernel.launch(&device, (), views)
}

/// The numbers of a block as 8-bit integers, and its scale.
pub fn reference(block: &[f32]) -> (Vec<i8>, f32) {
    let greatest = block.iter().fold(0.0f32, |most, x| most.max(x.abs()));
    let scale = if greatest == 0.0 {
        1.0
    } else {
        greatest / 127.0
    };
    let number = |x: &f32| (x / scale).round_ties_even() as i8;
    (block.iter().map(number).collect(), scale)
}

/// The settings worth trying.
pub fn space(block: usize) -> Vec<Setting> {
    let rows = quantise::<f32, i8>().range_of("ROWS");
    space::space(&[block], &rows, &[None], |block, rows| block * rows)
}
