//! Tokens drawn by their scores: among the best of a row, and of those among the ones that make up a share of the whole.

use exactile::prelude::*;
use exactile::{Number, Result};

use crate::setting::{Settable, Setting, check_shape, ensure, extent};
use crate::space;

/// A row a program; `BLOCK` is a power of two that holds the columns, `CHOSEN` another one.
#[kernel]
pub fn sampling<T: Float, const CHOSEN: usize, const BLOCK: usize>(
    scores: Ptr<T>,
    tokens: PtrMut<i32>,
    columns: i32,
    heat: f32,
    share: f32,
    seed: u64,
) {
    let (row, at) = (program_id(0), arange(0, BLOCK));
    let scores = load(scores + row * columns + at)
        .mask(at < columns)
        .other(f64::NEG_INFINITY);
    let (best, place) = scores.to::<f32>().topk_with_indices(CHOSEN, 0);
    let size = exp((best - best.max(0)) / heat);
    let sums = size.cumsum(0);
    let kept = (sums - size < size.sum(0) * share) & (size > 0.0);
    let drawn = rand(seed, row.tile()) * select(kept, sums, 0.0).max(0);
    let passed = (kept & (sums <= drawn)).to::<i64>().sum(0);
    let chosen = minimum(passed, kept.to::<i64>().sum(0) - 1);
    let token = select(arange(0, CHOSEN) == chosen, place, 0).sum(0);
    store(tokens + row, token.to::<i32>());
}

/// What decides which tokens are drawn.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    /// How many of the best of a row may be drawn: a power of two.
    pub best: usize,
    /// Scores are divided by it before they become probabilities.
    pub heat: f32,
    /// Of the best those may be drawn before which less than this share of their sizes lies: above 0, and 1 for all.
    pub share: f32,
    /// Each row draws by the seed and its number alone.
    pub seed: u64,
}

/// One column of each row of `[rows, columns]` scores. All columns of a row are one tile, which a setting's `block` makes
/// larger.
///
/// # Errors
/// More of the best than columns, a share or a heat that is not above 0, and what a launch refuses.
pub fn launch<T: Float + Number>(
    scores: &Buffer<T>,
    tokens: &mut Buffer<i32>,
    draw: Draw,
    [rows, columns]: [usize; 2],
    setting: &Setting,
) -> Result<()> {
    let Draw {
        best,
        heat,
        share,
        seed,
    } = draw;
    check_shape(scores.len(), &[rows, columns])?;
    check_shape(tokens.len(), &[rows])?;
    ensure(best <= columns, || {
        format!("the best {best} of {columns} columns")
    })?;
    ensure(share > 0.0 && heat > 0.0, || {
        format!("a share of {share} and a heat of {heat}")
    })?;
    let block = setting.block.max(columns.next_power_of_two());
    let kernel = sampling::<T>().chosen(best).block(block).by(setting);
    let device = tokens.device().clone();
    let arguments = (scores, tokens, extent(columns)?, heat, share, seed);
    kernel.launch(&device, rows, arguments)
}

/// The columns of a row that may be drawn, the best first, with their sizes.
pub fn reference(scores: &[f32], draw: Draw) -> Vec<(i32, f64)> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
    order.truncate(draw.best);
    let most = scores[order[0]];
    let size = |at: &usize| (f64::from(scores[*at] - most) / f64::from(draw.heat)).exp();
    let whole: f64 = order.iter().map(size).sum();
    let mut before = 0.0;
    let mut kept = Vec::new();
    for at in order {
        if before >= whole * f64::from(draw.share) {
            break;
        }
        kept.push((at as i32, size(&at)));
        before += size(&at);
    }
    kept
}

/// The settings worth trying.
pub fn space([_, columns]: [usize; 2]) -> Vec<Setting> {
    space::whole_rows(columns)
}
