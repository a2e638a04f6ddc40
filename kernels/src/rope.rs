//! Rotary position embedding: the pairs of each head turn by an angle that grows with the position.

use exactile::prelude::*;
use exactile::{Number, Result};

use crate::setting::{Settable, Setting, check_shape, extent};
use crate::space;

/// Which two elements of a head are a pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pairs {
    /// Element `i` of the first half and element `i` of the second one.
    Halves,
    /// Neighbours.
    Neighbours,
}

/// `HEADS` heads a program, of `2 * PAIRS` elements; `NEIGHBOURS` is 1 where pairs are neighbours. The angle of pair `i` is
/// `position * base^(-i / PAIRS)`.
#[kernel(HEADS = 1, grid = positions.len() * heads / HEADS)]
pub fn rope<T: Float, const PAIRS: usize, const NEIGHBOURS: usize, const HEADS: usize>(
    x: PtrMut<T>,
    positions: Ptr<i32>,
    heads: i32,
    log2_base: f32,
) {
    let pair = arange(0, PAIRS).expand(0);
    let row = (program_id(0) * HEADS + arange(0, HEADS)).expand(1);
    let position = load(positions + row / heads).to::<f32>();
    let angle = position * exp2(pair.to::<f32>() * (-log2_base / PAIRS as f64));
    let (sine, cosine) = (sin(angle), cos(angle));
    let head = x + row * (2 * PAIRS);
    let first = if NEIGHBOURS == 1 { 2 * pair } else { pair };
    let second = first + (if NEIGHBOURS == 1 { 1 } else { PAIRS });
    let (a, b) = (
        load(head + first).to::<f32>(),
        load(head + second).to::<f32>(),
    );
    store(head + first, (a * cosine - b * sine).to::<T>());
    store(head + second, (a * sine + b * cosine).to::<T>());
}

/// Turns the heads of `[tokens, heads, width]` in place; `width` is twice a power of two. A setting's `width` is the heads
/// of a program, as far as they divide all; its `block` is not used.
pub fn launch<T: Float + Number>(
    x: &mut Buffer<T>,
    positions: &Buffer<i32>,
    base: f32,
    pairs: Pairs,
    [tokens, heads, width]: [usize; 3],
    setting: &Setting,
) -> Result<()> {
    check_shape(x.len(), &[tokens, heads, width])?;
    check_shape(positions.len(), &[tokens])?;
    let neighbours = usize::from(pairs == Pairs::Neighbours);
    let kernel = rope::<T>()
        .pairs(width / 2)
        .neighbours(neighbours)
        .heads(together(tokens * heads, setting))
        .by(setting);
    let device = x.device().clone();
    kernel.launch(&device, (), (x, positions, extent(heads)?, base.log2()))
}

/// The heads that a program takes: a power of two that divides all, and no more than the setting says.
fn together(heads: usize, setting: &Setting) -> usize {
    let most = setting.width_or(1).ilog2();
    1 << heads.trailing_zeros().min(most)
}

/// `HEADS` heads a program, of `2 * PAIRS` elements whose pairs are halves, by the cosines and sines of each position.
#[kernel(HEADS = 1, grid = x.len() / (2 * PAIRS * HEADS).max(1))]
pub fn rope_by_table<T: Float, const PAIRS: usize, const HEADS: usize>(
    x: Ptr<T>,
    cosines: Ptr<f32>,
    sines: Ptr<f32>,
    out: PtrMut<T>,
    positions: i32,
    heads: i32,
) {
    let pair = arange(0, PAIRS).expand(0);
    let row = (program_id(0) * HEADS + arange(0, HEADS)).expand(1);
    let angle = row / heads % positions * PAIRS + pair;
    let (cosine, sine) = (load(cosines + angle), load(sines + angle));
    let first = row * (2 * PAIRS) + pair;
    let (a, b) = (
        load(x + first).to::<f32>(),
        load(x + first + PAIRS).to::<f32>(),
    );
    store(out + first, (a * cosine - b * sine).to::<T>());
    store(out + first + PAIRS, (a * sine + b * cosine).to::<T>());
}

/// The cosines and sines of the angles of each position, `[positions, width / 2]`.
pub struct Table<'a> {
    /// The cosines.
    pub cosines: &'a Buffer<f32>,
    /// The sines.
    pub sines: &'a Buffer<f32>,
}

/// Turns the heads of `[batch, positions, heads, width]` by a table; `width` is twice a power of two. A setting's `width`
/// is the heads of a program, as far as they divide all; its `block` is not used.
pub fn launch_by_table<T: Float + Number>(
    x: &Buffer<T>,
    table: &Table<'_>,
    out: &mut Buffer<T>,
    [batch, positions, heads, width]: [usize; 4],
    setting: &Setting,
) -> Result<()> {
    check_shape(x.len(), &[batch, positions, heads, width])?;
    check_shape(out.len(), &[batch, positions, heads, width])?;
    for angles in [table.cosines, table.sines] {
        check_shape(angles.len(), &[positions, width / 2])?;
    }
    let all = batch * positions * heads;
    let kernel = rope_by_table::<T>()
        .pairs(width / 2)
        .heads(together(all, setting))
        .by(setting);
    let device = out.device().clone();
    let arguments = (
        x,
        table.cosines,
        table.sines,
        out,
        extent(positions)?,
        extent(heads)?,
    );
    kernel.launch(&device, (), arguments)
}

/// One head at a position.
pub fn reference(head: &[f32], position: i32, base: f32, pairs: Pairs) -> Vec<f32> {
    let count = head.len() / 2;
    let mut out = head.to_vec();
    for pair in 0..count {
        let angle = f64::from(position) * f64::from(base).powf(-(pair as f64) / count as f64);
        let (first, second) = match pairs {
            Pairs::Halves => (pair, pair + count),
            Pairs::Neighbours => (2 * pair, 2 * pair + 1),
        };
        let (a, b) = (f64::from(head[first]), f64::from(head[second]));
        out[first] = (a * angle.cos() - b * angle.sin()) as f32;
        out[second] = (a * angle.sin() + b * angle.cos()) as f32;
    }
    out
}

/// The settings worth trying.
pub fn space(width: usize) -> Vec<Setting> {
    space::shared(space::whole_rows(width))
}
