//! What attention is of, and whether arrays fit it.

use exactile::prelude::Float;
use exactile::{Buffer, Number, Result, bf16, f16};

use crate::setting::{check_shape, ensure};

/// What attention is of. Queries and results are arrays `[sequences, heads, queries, width]`, keys and values are
/// `[sequences, key_heads, keys, width]`; `tokens_first` exchanges the axes of heads and of tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Sequences of the batch.
    pub sequences: usize,
    /// Heads of queries in a sequence.
    pub heads: usize,
    /// Heads of keys and values in a sequence: they divide those of queries, of which neighbours share one.
    pub key_heads: usize,
    /// Queries of a head; where sequences lie behind each other, the most of one.
    pub queries: usize,
    /// Keys and values of a head, or the most that a sequence may have. Fastest where the keys that are taken at a time divide them.
    pub keys: usize,
    /// Elements of a query, a key and a value. Tiles have the next power of two.
    pub width: usize,
    /// Whether a query sees the keys up to its own place alone. The last query is at the place of the last key.
    pub causal: bool,
    /// Whether the heads of a token lie beside each other, and not the tokens of a head.
    pub tokens_first: bool,
}

impl Shape {
    /// So many heads that each have their own keys, as many as queries.
    #[must_use]
    pub const fn new(heads: usize, tokens: usize, width: usize, causal: bool) -> Self {
        Self {
            sequences: 1,
            heads,
            key_heads: heads,
            queries: tokens,
            keys: tokens,
            width,
            causal,
            tokens_first: false,
        }
    }
}

/// Where the keys of a sequence are.
#[derive(Clone, Copy, Debug, Default)]
pub enum Keys<'a> {
    /// All that the shape has are those of the sequence.
    #[default]
    All,
    /// The first of them are, as many as these lengths say, `[sequences]`.
    Lengths(&'a Buffer<i32>),
    /// Sequences lie behind each other, each from its start to the next, `[sequences + 1]`, with tokens first.
    Starts(&'a Buffer<i32>),
    /// They are in pages: keys and values are `[any, page, key_heads, width]`.
    Pages {
        /// The pages of each sequence, `[sequences, pages]`.
        tables: &'a Buffer<i32>,
        /// The keys of each sequence, `[sequences]`.
        lengths: &'a Buffer<i32>,
        /// Tokens of a page.
        page: usize,
    },
}

/// What is added to logits, in natural units.
#[derive(Clone, Copy, Debug)]
pub enum Bias<'a> {
    /// Numbers `[sequences, heads, queries, keys]`, of which those of a sequence, where each has its own, and those of a head, where each has
    /// its own, are fewer than 2^31: 32 heads of 8192 by 8192 for each sequence are refused. An axis of the first two
    /// that is not there is one of extent 1, whose numbers are those of all.
    Numbers {
        /// The numbers.
        numbers: &'a Buffer<f32>,
        /// Whether each sequence has its own.
        sequences: bool,
        /// Whether each head has its own.
        heads: bool,
    },
    /// Slopes `[heads]`: that of a head times the distance of a key is taken from its logit (ALiBi).
    Slopes(&'a Buffer<f32>),
}

/// Keys that are taken in parts, by programs of their own. Rows of packed queries that belong to no sequence are then unspecified.
#[derive(Debug)]
pub struct Split<'a> {
    /// The keys of a part, which decide on the bits: those at a multiple of it begin one. It is a multiple of the keys that are
    /// taken at a time, so at least of 16, and of 128 where numbers are `f16` and the greatest logits are not given.
    pub keys: usize,
    /// What [`parts`] says, to work with.
    pub parts: &'a mut Buffer<f32>,
}

/// The greatest and the least logits that rows see, in base 2, an element for each row of the result: whether bits follow the tiles.
/// The launch clears both arrays before its kernel, and so it cannot be captured in a graph. A logit of NaN is left out of
/// both, and a row whose logits are all NaN is told as one that sees no key.
#[derive(Debug)]
pub struct Extremes<'a> {
    /// The greatest ones; -inf where a row sees no key.
    pub greatest: &'a mut Buffer<f32>,
    /// The least ones; +inf where a row sees no key.
    pub least: &'a mut Buffer<f32>,
}

/// What attention may do beside.
#[derive(Debug, Default)]
pub struct Options<'a> {
    /// What products are multiplied by; without it the inverse root of the width.
    pub scale: Option<f32>,
    /// Logits become `cap tanh(logit / cap)`.
    pub cap: Option<f32>,
    /// What is added to logits.
    pub bias: Option<Bias<'a>>,
    /// A query sees the keys that are nearer to its place than this alone, which is from 1 to 2^31 - 1.
    pub window: Option<usize>,
    /// Queries of sequences lie behind each other, each from its start to the next, `[sequences + 1]`, with tokens first. Where starts begin
    /// after 0 or end before the rows, rows belong to no sequence: they are left as they are, but with a split they are unspecified.
    pub query_starts: Option<&'a Buffer<i32>>,
    /// Where keys are.
    pub keys: Keys<'a>,
    /// Parts of the keys: few queries of many keys are fast by many programs. Their keys are a multiple of those that are taken at a time.
    pub split: Option<Split<'a>>,
    /// The natural logarithms of the sums of exponentials, an element for each row of the result.
    pub log_sums: Option<&'a mut Buffer<f32>>,
    /// Where the greatest and the least logits go. Without it a launch neither finds nor reports rows whose bits may follow the tiles.
    pub extremes: Option<Extremes<'a>>,
    /// The greatest logits of rows, as a launch before this one has found them: bits then follow the tiles in no row
    /// whose values are finite. Without them a launch neither finds nor reports rows in which they may.
    pub greatest: Option<&'a Buffer<f32>>,
}

/// The numbers of attention: `bf16` and `f16`.
pub trait Half: Float + Number {
    /// Whether their range is so short that weights are rounded by the power of two that their row is scaled by.
    const NARROW: bool;
}

impl Half for bf16 {
    const NARROW: bool = false;
}

impl Half for f16 {
    const NARROW: bool = true;
}

/// The elements of `parts` of a [`Split`] by so many keys, for a result of `len` elements.
#[must_use]
pub fn parts(shape: Shape, keys: usize, len: usize) -> usize {
    let rows = len / shape.width.max(1);
    let parts = shape.keys.div_ceil(keys.max(1));
    parts.saturating_mul(rows).saturating_mul(shape.width + 2)
}

/// The most rows that are few: a tile of theirs is one group of warps.
pub(crate) const FEW: usize = 64;

impl Shape {
    /// The rows of a query with a head of keys: one for each head that shares it, as many as the next power of two.
    pub(crate) fn share(&self) -> usize {
        (self.heads / self.key_heads).next_power_of_two()
    }

    /// The rows of a head of keys.
    pub(crate) fn group_rows(&self) -> usize {
        self.queries.saturating_mul(self.share())
    }
}

/// That arrays fit the shape and the options.
pub(crate) fn check<T: Half>(
    [q, k, v]: [&Buffer<T>; 3],
    len: usize,
    shape: Shape,
    options: &Options<'_>,
) -> Result<()> {
    let Shape {
        sequences,
        heads,
        key_heads,
        queries,
        keys,
        width,
        ..
    } = shape;
    ensure(
        width > 0 && key_heads > 0 && heads.is_multiple_of(key_heads),
        || format!("{heads} heads of {width} elements do not share {key_heads} heads of keys"),
    )?;
    check_shape(len, &[q.len()])?;
    check_shape(v.len(), &[k.len()])?;
    match options.query_starts {
        None => check_shape(q.len(), &[sequences, heads, queries, width])?,
        Some(starts) => check_packed(q.len(), heads.saturating_mul(width), starts, shape)?,
    }
    match options.keys {
        Keys::All => check_shape(k.len(), &[sequences, key_heads, keys, width])?,
        Keys::Lengths(lengths) => {
            check_shape(k.len(), &[sequences, key_heads, keys, width])?;
            check_shape(lengths.len(), &[sequences])?;
        }
        Keys::Starts(starts) => {
            check_packed(k.len(), key_heads.saturating_mul(width), starts, shape)?
        }
        Keys::Pages {
            tables,
            lengths,
            page,
        } => {
            check_shape(lengths.len(), &[sequences])?;
            let pages = tables.len() / sequences.max(1);
            check_shape(tables.len(), &[sequences, pages])?;
            let fits = page > 0 && pages.saturating_mul(page) >= keys;
            ensure(fits, || {
                format!("{pages} pages of {page} tokens do not hold {keys} keys")
            })?;
            let row = key_heads.saturating_mul(width).saturating_mul(page);
            check_whole(k.len(), row, shape)?;
        }
    }
    check_numbers(options, q.len() / width, shape)
}

/// That an array has rows of so many elements, of tokens.
fn check_whole(len: usize, row: usize, shape: Shape) -> Result<()> {
    ensure(shape.tokens_first, || {
        "starts and pages are of arrays in which tokens come first".to_string()
    })?;
    ensure(len.is_multiple_of(row), || {
        format!("{len} elements are no rows of {row}")
    })
}

/// That sequences lie behind each other, in rows of so many elements.
fn check_packed(len: usize, row: usize, starts: &Buffer<i32>, shape: Shape) -> Result<()> {
    check_shape(starts.len(), &[shape.sequences + 1])?;
    check_whole(len, row, shape)
}

/// What is no array of tokens.
fn check_numbers(options: &Options<'_>, rows: usize, shape: Shape) -> Result<()> {
    let positive = |number: Option<f32>| number.is_none_or(|it| it > 0.0 && it.is_finite());
    ensure(positive(options.scale) && positive(options.cap), || {
        "the scale and the cap of logits are positive numbers".to_string()
    })?;
    ensure(options.window != Some(0), || {
        "a window of 0 keys shows none".to_string()
    })?;
    match options.bias {
        None => {}
        Some(Bias::Slopes(slopes)) => check_shape(slopes.len(), &[shape.heads])?,
        Some(Bias::Numbers {
            numbers,
            sequences,
            heads,
        }) => {
            let of = |there: bool, extent: usize| if there { extent } else { 1 };
            let extents = [of(sequences, shape.sequences), of(heads, shape.heads)];
            check_shape(
                numbers.len(),
                &[extents[0], extents[1], shape.queries, shape.keys],
            )?;
        }
    }
    let extremes = options.extremes.iter();
    let extremes = extremes.flat_map(|it| [it.greatest.len(), it.least.len()]);
    let log_sums = options.log_sums.iter().map(|it| it.len());
    let greatest = options.greatest.iter().map(|it| it.len());
    for len in extremes.chain(log_sums).chain(greatest) {
        check_shape(len, &[rows])?;
    }
    match &options.split {
        Some(split) => check_shape(
            split.parts.len(),
            &[parts(shape, split.keys, rows * shape.width)],
        ),
        None => Ok(()),
    }
}
