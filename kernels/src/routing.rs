//! Routing of tokens to experts: the greatest scores of each token, their shares, and how many tokens an expert gets.

use exactile::prelude::*;
use exactile::{Number, Result};

use crate::setting::{Settable, Setting, check_shape, ensure, extent};
use crate::space;

/// `ROWS` tokens a program; `EXPERTS` is the next power of two of the number of experts, `CHOSEN` a power of two.
#[kernel(ROWS = 8, grid = tokens.div_ceil(ROWS))]
pub fn routing<
    T: Float,
    const EXPERTS: usize,
    const CHOSEN: usize,
    #[meta(4..=32)] const ROWS: usize,
>(
    scores: Ptr<T>,
    experts: PtrMut<i32>,
    shares: PtrMut<f32>,
    counts: PtrMut<i32>,
    tokens: i32,
    columns: i32,
) {
    let token = (program_id(0) * ROWS + arange(0, ROWS)).expand(1);
    let expert = arange(0, EXPERTS).expand(0);
    let score = load(scores + token * columns + expert)
        .mask((token < tokens) & (expert < columns))
        .other(f64::NEG_INFINITY);
    let (best, place) = score.to::<f32>().topk_with_indices(CHOSEN, 1);
    let size = exp(best - best.max_keep(1));
    let mask = token < tokens;
    let at = token * CHOSEN + arange(0, CHOSEN).expand(0);
    store(experts + at, place.to::<i32>()).mask(mask);
    store(shares + at, size / size.sum_keep(1)).mask(mask);
    atomic_add(counts + place, full::<i32>([ROWS, CHOSEN], 1)).mask(mask);
}

/// What [`launch`] writes.
#[derive(Debug)]
pub struct Routes<'a> {
    /// The chosen experts of each token, the best first.
    pub experts: &'a mut Buffer<i32>,
    /// The softmax over their scores.
    pub shares: &'a mut Buffer<f32>,
    /// The tokens of each expert, added to what is there.
    pub counts: &'a mut Buffer<i32>,
}

/// Chooses `chosen` experts, a power of two, for each token of `[tokens, experts]` scores. A setting's `width` is the
/// tokens of a program.
pub fn launch<T: Float + Number>(
    scores: &Buffer<T>,
    Routes {
        experts,
        shares,
        counts,
    }: Routes<'_>,
    chosen: usize,
    [tokens, columns]: [usize; 2],
    setting: &Setting,
) -> Result<()> {
    ensure(chosen <= columns, || {
        format!("{chosen} chosen of {columns} experts")
    })?;
    check_shape(scores.len(), &[tokens, columns])?;
    check_shape(experts.len(), &[tokens, chosen])?;
    check_shape(shares.len(), &[tokens, chosen])?;
    check_shape(counts.len(), &[columns])?;
    let kernel = routing::<T>()
        .experts(columns.next_power_of_two())
        .chosen(chosen)
        .rows(setting.width_or(8))
        .by(setting);
    let device = experts.device().clone();
    let arguments = (
        scores,
        experts,
        shares,
        counts,
        extent(tokens)?,
        extent(columns)?,
    );
    kernel.launch(&device, (), arguments)
}

/// The chosen experts of one token with their shares.
pub fn reference(scores: &[f32], chosen: usize) -> (Vec<i32>, Vec<f32>) {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
    order.truncate(chosen);
    let best = scores[order[0]];
    let sizes: Vec<f64> = order
        .iter()
        .map(|&at| f64::from(scores[at] - best).exp())
        .collect();
    let sum: f64 = sizes.iter().sum();
    let shares = sizes.iter().map(|size| (size / sum) as f32).collect();
    (order.iter().map(|&at| at as i32).collect(), shares)
}

/// The settings worth trying.
pub fn space(experts: usize) -> Vec<Setting> {
    let block = experts.next_power_of_two();
    let rows = routing::<f32>().range_of("ROWS");
    space::space(&[block], &rows, &[None], |block, rows| block * rows)
}
