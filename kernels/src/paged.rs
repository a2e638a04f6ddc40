//! Attention of one new token a sequence over keys and values in pages, and what puts new ones there.

use exactile::prelude::*;
use exactile::{Number, Result};

use crate::setting::{Settable, Setting, check_shape, extent};
use crate::space;

/// A head of a sequence a program, `TOKENS` tokens at a time. Page `tables[sequence, i]` holds `PAGE` tokens from
/// `i * PAGE` on, each with its heads of `WIDTH` elements.
#[kernel(TOKENS = 16, grid = (lengths.len(), heads))]
pub fn decode<
    T: Float,
    const WIDTH: usize,
    const PAGE: usize,
    #[meta(16..=64)] const TOKENS: usize,
>(
    query: Ptr<T>,
    keys: Ptr<T>,
    values: Ptr<T>,
    tables: Ptr<i32>,
    lengths: Ptr<i32>,
    out: PtrMut<T>,
    heads: i32,
    pages: i32,
    scale: f32,
) {
    let (sequence, head) = (program_id(0), program_id(1));
    let width = arange(0, WIDTH);
    let own = (sequence * heads + head) * WIDTH + width;
    let query = load(query + own).to::<f32>().expand(0) * scale;
    let length = load(lengths + sequence);
    let full = pages * PAGE;
    device_assert(
        (length > 0) & (length <= full),
        "a length is from 1 to what its pages hold",
    );
    let (mut most, mut sum) = (max_accumulator::<f32>([]), sum_accumulator::<f32>([]));
    for start in range(0, length).step(TOKENS) {
        let token = start + arange(0, TOKENS);
        let place = placed(tables, token, sequence, length, pages, PAGE);
        let at = (place * heads + head).expand(1) * WIDTH + width.expand(0);
        let key = load(keys + at).mask((token < length).expand(1)).to::<f32>();
        most.add_masked((query * key).sum(1), token < length, 0);
    }
    let most = most.finish();
    let mut total = sum_accumulator::<f32>([WIDTH]);
    for start in range(0, length).step(TOKENS) {
        let token = start + arange(0, TOKENS);
        let place = placed(tables, token, sequence, length, pages, PAGE);
        let at = (place * heads + head).expand(1) * WIDTH + width.expand(0);
        let mask = (token < length).expand(1);
        let key = load(keys + at).mask(mask).to::<f32>();
        let size = select(token < length, exp((query * key).sum(1) - most), 0.0);
        sum.add(size, 0);
        total.add(size.expand(1) * load(values + at).mask(mask).to::<f32>(), 0);
    }
    store(out + own, (total.finish() / sum.finish()).to::<T>());
}

/// Where tokens of a sequence are.
#[device]
fn placed(
    tables: Ptr<i32>,
    token: Tile<i64>,
    sequence: Scalar<i64>,
    length: Scalar<i32>,
    pages: Scalar<i32>,
    page: usize,
) -> Tile<i64> {
    let number = load(tables + sequence * pages + token / page).mask(token < length);
    number.to::<i64>() * page + token % page
}

/// Writes the new key and value of each sequence behind those that are there: a sequence and `HEADS` heads a program.
#[kernel(HEADS = 1, grid = (lengths.len(), heads / HEADS))]
pub fn append<T: Element, const WIDTH: usize, const PAGE: usize, const HEADS: usize>(
    new_keys: Ptr<T>,
    new_values: Ptr<T>,
    keys: PtrMut<T>,
    values: PtrMut<T>,
    tables: Ptr<i32>,
    lengths: Ptr<i32>,
    heads: i32,
    pages: i32,
) {
    let sequence = program_id(0);
    let head = (program_id(1) * HEADS + arange(0, HEADS)).expand(1);
    let token = load(lengths + sequence).to::<i64>();
    device_assert(token < pages * PAGE, "the pages have room for a token");
    let number = load(tables + sequence * pages + token / PAGE).to::<i64>();
    let place = (number * PAGE + token % PAGE) * heads + head;
    let (from, to) = ((sequence * heads + head) * WIDTH, place * WIDTH);
    let width = arange(0, WIDTH).expand(0);
    store(keys + to + width, load(new_keys + from + width));
    store(values + to + width, load(new_values + from + width));
}

/// Keys and values in pages.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Sequences of the batch.
    pub sequences: usize,
    /// Heads of a token.
    pub heads: usize,
    /// Elements of a head, a power of two.
    pub width: usize,
    /// Tokens of a page.
    pub page: usize,
    /// Entries of a sequence in the table of pages.
    pub pages: usize,
}

/// The attention of `query` `[sequences, heads, width]` over the first `lengths` tokens of each sequence, in `f32` and
/// rounded once. A setting's `block` is the tokens that are taken at a time.
pub fn launch<T: Float + Number>(
    query: &Buffer<T>,
    [keys, values]: [&Buffer<T>; 2],
    [tables, lengths]: [&Buffer<i32>; 2],
    out: &mut Buffer<T>,
    shape: Shape,
    setting: &Setting,
) -> Result<()> {
    let own = [shape.sequences, shape.heads, shape.width];
    check_shape(query.len(), &own)?;
    check_shape(out.len(), &own)?;
    check_shape(tables.len(), &[shape.sequences, shape.pages])?;
    check_shape(lengths.len(), &[shape.sequences])?;
    let kernel = decode::<T>()
        .width(shape.width)
        .page(shape.page)
        .tokens(setting.block_or(16))
        .by(setting);
    let (device, [heads, pages]) = (out.device().clone(), [shape.heads, shape.pages].map(extent));
    let scale = 1.0 / (shape.width as f32).sqrt();
    let arguments = (
        query, keys, values, tables, lengths, out, heads?, pages?, scale,
    );
    kernel.launch(&device, (), arguments)
}

/// Puts the new keys and values of `[sequences, heads, width]` behind the first `lengths` tokens of each sequence. A
/// setting's `width` is the heads of a program, as far as they divide those of a token.
pub fn launch_append<T: Float + Number>(
    new: [&Buffer<T>; 2],
    [keys, values]: [&mut Buffer<T>; 2],
    [tables, lengths]: [&Buffer<i32>; 2],
    shape: Shape,
    setting: &Setting,
) -> Result<()> {
    for buffer in new {
        check_shape(buffer.len(), &[shape.sequences, shape.heads, shape.width])?;
    }
    check_shape(tables.len(), &[shape.sequences, shape.pages])?;
    check_shape(lengths.len(), &[shape.sequences])?;
    let most = setting.width_or(1).ilog2();
    let kernel = append::<T>()
        .width(shape.width)
        .page(shape.page)
        .heads(1 << shape.heads.trailing_zeros().min(most))
        .by(setting);
    let (device, [heads, pages]) = (
        keys.device().clone(),
        [shape.heads, shape.pages].map(extent),
    );
    kernel.launch(
        &device,
        (),
        (
            new[0], new[1], keys, values, tables, lengths, heads?, pages?,
        ),
    )
}

/// The attention of one head over its keys and values.
pub fn reference(query: &[f32], keys: &[Vec<f32>], values: &[Vec<f32>]) -> Vec<f32> {
    let scale = 1.0 / (query.len() as f64).sqrt();
    let score = |key: &Vec<f32>| -> f64 {
        let terms = query
            .iter()
            .zip(key)
            .map(|(&q, &k)| f64::from(q) * f64::from(k));
        terms.sum::<f64>() * scale
    };
    let scores: Vec<f64> = keys.iter().map(score).collect();
    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sizes: Vec<f64> = scores.iter().map(|score| (score - most).exp()).collect();
    let sum: f64 = sizes.iter().sum();
    let element = |at: usize| {
        let terms = sizes
            .iter()
            .zip(values)
            .map(|(size, value)| size * f64::from(value[at]));
        (terms.sum::<f64>() / sum) as f32
    };
    (0..query.len()).map(element).collect()
}

/// The settings worth trying.
pub fn space(width: usize) -> Vec<Setting> {
    space::space(
        &decode::<f32>().range_of("TOKENS"),
        &[0],
        &[None],
        |block, _| block * width,
    )
}
