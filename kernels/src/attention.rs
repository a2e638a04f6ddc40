//! Attention of queries over the keys and values of their heads, by tensor cores: in one pass, or by parts of the keys, which a
//! second kernel merges.

use exactile::prelude::*;

use crate::attention_merge::{LOWEST, inverse, logarithm};
use crate::key_tiles::{Span, between, check_pages, held, keys_of, runs_at, runs_of, seen, spans};

pub use crate::attention_launch::{launch, space};
pub use crate::heads::{Bias, Extremes, Half, Keys, Options, Shape, Split, parts};

/// What is written: the result and the logarithms of the sums of weights, or, where keys are taken in parts, of each part the sums of
/// products and of weights, and the power of two that they are scaled by. The result has `rows` rows. `greatest` and `least` are
/// those of the logits that a row sees.
#[derive(Clone, Copy, KernelArguments)]
pub struct Results<T: Float> {
    pub(crate) out: Option<PtrMut<T>>,
    pub(crate) log_sums: Option<PtrMut<f32>>,
    pub(crate) totals: Option<PtrMut<f32>>,
    pub(crate) sums: Option<PtrMut<f32>>,
    pub(crate) powers: Option<PtrMut<f32>>,
    pub(crate) greatest: Option<PtrMut<f32>>,
    pub(crate) least: Option<PtrMut<f32>>,
    pub(crate) rows: Scalar<i32>,
}

/// Where tokens are: at most `queries` and `keys` of a sequence; all keys are `key_rows` rows. Those of a sequence lie between two starts,
/// or are the first of its length, or are in the `pages` pages of its table; the tables of all sequences have `entries`. A query sees keys
/// that are nearer than `window`, and `every` keys are a part.
#[derive(Clone, Copy, KernelArguments)]
pub struct Tokens {
    pub(crate) queries: Scalar<i32>,
    pub(crate) keys: Scalar<i32>,
    pub(crate) key_rows: Scalar<i32>,
    pub(crate) pages: Scalar<i32>,
    pub(crate) entries: Scalar<i32>,
    pub(crate) query_starts: Option<Ptr<i32>>,
    pub(crate) key_starts: Option<Ptr<i32>>,
    pub(crate) lengths: Option<Ptr<i32>>,
    pub(crate) tables: Option<Ptr<i32>>,
    pub(crate) window: Option<Scalar<i32>>,
    pub(crate) every: Option<Scalar<i32>>,
}

/// What becomes of logits: their product with `scale`; with `cap` that is of the hyperbolic tangent of their product with it. Then numbers of
/// `bias` are added, which lie `steps` apart for one sequence and one head more, or the slope of the head times the distance of a key. Rows whose
/// `greatest` logits are given are scaled by them.
#[derive(Clone, Copy, KernelArguments)]
pub struct Change {
    pub(crate) scale: Scalar<f32>,
    pub(crate) cap: Option<Scalar<f32>>,
    pub(crate) bias: Option<Ptr<f32>>,
    pub(crate) steps: [Scalar<i32>; 2],
    pub(crate) slopes: Option<Ptr<f32>>,
    pub(crate) greatest: Option<Ptr<f32>>,
}

/// `M` rows of a head of keys a program, `N` keys at a time, in base 2: the scale is that of the logits times the logarithm of e. A row is a
/// query of one of the `GROUP` heads that share the head of keys, of which a sequence has `HEADS`. `TOGETHER`: the heads of a token lie beside
/// each other, else the tokens of a head. `WHOLE`: no tile goes beyond the keys of a head. A tile has `D` columns for `WIDTH` elements.
///
/// A logit times the scale is rounded to a multiple of 2^-13, and a weight is the nearest `bf16` of two to that power. Rows
/// are kept in range by powers of two, which change no rounding, so that the bits do not follow `N`: docs/numerics.md says
/// where. The check of tile orders cannot know it, which `order` tells, and by default a launch neither finds nor reports rows in which
/// they do. `NARROW`: numbers are `f16`, whose range is so short that the power
/// of two of a row shows; it is that of the keys up to the end of the tile, times 2^-14.
#[kernel(
    M = 128,
    N = 128,
    GROUP = 1,
    HEADS = 1,
    PAGE = 1,
    TOGETHER = false,
    NARROW = false,
    order = "tile"
)]
pub fn attention<
    T: Float,
    const D: usize,
    const WIDTH: usize,
    const M: usize,
    const N: usize,
    const GROUP: usize,
    const HEADS: usize,
    const PAGE: usize,
    const TOGETHER: bool,
    const CAUSAL: bool,
    const WHOLE: bool,
    const NARROW: bool,
>(
    arrays: [Ptr<T>; 3],
    results: Results<T>,
    tokens: Tokens,
    change: Change,
) {
    let [q, k, v] = arrays;
    let pair = program_id(1);
    let head = TOGETHER.then(|| pair % HEADS);
    let (first_key, count) = keys_of(tokens, pair / HEADS);
    let rows = rows_of(tokens, count, [M, GROUP, HEADS], TOGETHER);
    let (places, mask) = elements(
        Rows {
            there: loaded_rows(rows, results.rows, [TOGETHER, GROUP > 1]),
            ..rows
        },
        [D, WIDTH],
    );
    let queries = load(q + places).mask(mask).other(0.0).reshape([M, D]);
    let (mut most, slope) = (first_power(change, rows, M), slope_of(change, rows));
    let mut sum = zeros::<f32>([M, 8]);
    let mut total = zeros::<f32>([M, D]);
    let mut extremes = [f64::NEG_INFINITY, f64::INFINITY].map(|it| full::<f32>([M], it));
    let seen = seen(tokens, rows, CAUSAL);
    let in_runs = runs_of(tokens, [PAGE, N]).is_some();
    if in_runs {
        check_pages(tokens, rows.sequence, seen, PAGE);
    }
    for Span { ends, whole } in spans(tokens, seen, count, N, [WHOLE, in_runs]) {
        // The last tile has nothing to run ahead of, whatever a schedule states.
        let stages = if whole || !in_runs { 2 } else { 0 };
        for first in range(ends[0], ends[1]).step(N).stages(stages) {
            let column = first + arange(0, N);
            let runs = runs_at(
                tokens,
                rows,
                ([first_key, first], seen),
                [PAGE, N],
                [whole, TOGETHER],
            );
            let keys = held(k, (&runs, head), 0, [D, WIDTH, HEADS]);
            let values = held(v, (&runs, head), 1, [D, WIDTH, HEADS]);
            let logits = dot(queries, keys, zeros::<f32>([M, N]));
            let (logits, scale) = changed(logits, change, rows, slope, (column, tokens.keys));
            let logits = visible(logits, rows, tokens, (first, column), [CAUSAL, whole]);
            let greatest = logits.max(1) * scale;
            if results.greatest.is_some() {
                extremes = widened(extremes, greatest, logits, scale);
            }
            let next = next_power(floor(greatest), most, change, NARROW);
            let place = fma(logits, scale, (1536.0 - next).expand(1));
            let weights = match NARROW {
                true => exp2(place - (1536.0 - HEADROOM)).to::<T>(),
                false => exp2_weight(place).to::<T>(),
            };
            let kept = power_of_two(most - next).expand(1);
            sum = dot(weights, full::<T>([N, 8], 1.0), sum * kept);
            total = dot(weights, values, total * kept);
            most = next;
        }
    }
    let power = if NARROW { most - HEADROOM } else { most };
    let sums = [sum.pick(1, 0), power];
    write(results, sums, (total, extremes), rows, [D, WIDTH]);
}

/// The powers of two that rows are scaled by before the first key: below all others, unless the greatest logits are known.
#[device]
fn first_power(change: Change, rows: Rows, m: usize) -> Tile<f32> {
    match change.greatest {
        Some(greatest) => {
            let greatest = load(greatest + rows.place).mask(rows.there);
            maximum(floor(greatest.reshape([m])), LOWEST)
        }
        None => full::<f32>([m], LOWEST),
    }
}

/// Those behind keys of whose logits the greatest have these powers.
#[device]
fn next_power(power: Tile<f32>, most: Tile<f32>, change: Change, narrow: bool) -> Tile<f32> {
    match change.greatest {
        Some(_) => most,
        None if narrow => maximum(power, most),
        None => select(power > most + SLACK, power, most),
    }
}

/// The slopes of rows in base 2, if heads have any.
#[device]
fn slope_of(change: Change, rows: Rows) -> Option<Tile<f32>> {
    let slopes = change.slopes;
    slopes.map(|slopes| load(slopes + rows.head).mask(rows.inside) * LOG2_E)
}

/// The rows of a program: by queries and heads, where they are among all and which of them are there; one after the other, that again, their
/// heads and queries, and the keys at their places, which `ends` are of the first and of the last. A sequence has `count` keys.
#[derive(Clone, Copy)]
pub(crate) struct Rows {
    place: Tile<i64>,
    there: Tile<bool>,
    inside: Tile<bool>,
    pub(crate) sequence: Scalar<i64>,
    head: Tile<i64>,
    query: Tile<i64>,
    position: Tile<i64>,
    pub(crate) ends: [Scalar<i64>; 2],
    pub(crate) count: Scalar<i64>,
}

/// Those of `m` rows: of a pair of a sequence and a head of keys, queries each with all heads that share the keys, of which there are as
/// many as the next power of two.
#[device]
fn rows_of(
    tokens: Tokens,
    count: Scalar<i64>,
    [m, group, heads]: [usize; 3],
    together: bool,
) -> Rows {
    let (pair, share) = (program_id(1), group.next_power_of_two());
    let (sequence, first) = (pair / heads, program_id(0) * (m / share));
    let (start, queries) = match tokens.query_starts {
        Some(starts) => between(starts, sequence, tokens.queries),
        None => (sequence * tokens.queries, tokens.queries.to::<i64>()),
    };
    let (query, shift) = (first + arange(0, m / share), count - queries);
    let of_all = (start + query) * heads + pair % heads;
    let mut rows = Rows {
        place: if together {
            of_all
        } else {
            pair * tokens.queries + query
        },
        there: query < queries,
        inside: query < queries,
        sequence,
        head: zeros::<i64>([m / share]) + pair % heads,
        query,
        position: query + shift,
        ends: [first, first + (m / share - 1)].map(|query| query + shift),
        count,
    };
    if share > 1 {
        let (query, member) = (query.expand(1), arange(0, share).expand(0));
        rows.place = match together {
            true => of_all.expand(1) * group + member,
            false => (pair * group + member) * tokens.queries + query,
        };
        rows.there = (query < queries) & (member < group);
        rows.inside = each(rows.there, [m, share]);
        rows.head = each(pair % heads * group + member, [m, share]);
        rows.query = each(query, [m, share]);
        rows.position = each(query + shift, [m, share]);
    }
    rows
}

/// Which rows of queries are loaded: those that are there, or, where all heads lie one after the other, all that are rows of some head,
/// as a bulk copy asks. What follows from the rows of the next head is written nowhere.
#[device]
fn loaded_rows(rows: Rows, all: Scalar<i32>, [together, grouped]: [bool; 2]) -> Tile<bool> {
    match together || grouped {
        true => rows.there,
        false => (rows.place >= 0) & (rows.place < all.to::<i64>()),
    }
}

/// What queries and heads have, one after the other.
fn each<T: Element>(of: Tile<T>, [m, share]: [usize; 2]) -> Tile<T> {
    of.broadcast_to([m / share, share]).reshape([m])
}

/// Where the elements of rows are, and which of them are there.
#[device]
fn elements(rows: Rows, [d, width]: [usize; 2]) -> (Tile<i64>, Tile<bool>) {
    let axes = rows.place.shape().len();
    let element = arange(0, d).reshape([&[1, 1][..axes], &[d]].concat());
    let mask = match d == width {
        true => rows.there.expand(axes),
        false => rows.there.expand(axes) & (element < width),
    };
    (rows.place.expand(axes) * width + element, mask)
}

/// Logits after the cap, and after the scale where something is added to them; the scale that is left to be applied.
#[device]
fn changed(
    logits: Tile<f32>,
    change: Change,
    rows: Rows,
    slope: Option<Tile<f32>>,
    (column, keys): (Tile<i64>, Scalar<i32>),
) -> (Tile<f32>, Scalar<f32>) {
    let mut logits = logits;
    if let Some(cap) = change.cap {
        logits = tanh(logits * cap);
    }
    if let Some(bias) = change.bias {
        let [of_sequence, of_head] = change.steps;
        let row = rows.sequence * of_sequence + rows.head * of_head + rows.query * keys;
        let mask = rows.inside.expand(1) & (column < rows.count).expand(0);
        let number = load(bias + row.expand(1) + column.expand(0)).mask(mask);
        return (logits * change.scale + number * LOG2_E, scalar(1.0));
    }
    if let Some(slope) = slope {
        let distance = abs(rows.position.expand(1) - column.expand(0)).to::<f32>();
        return (
            logits * change.scale - slope.expand(1) * distance,
            scalar(1.0),
        );
    }
    (logits, change.scale)
}

/// Logits of the keys that a row sees, and below them those of others.
#[device]
fn visible(
    logits: Tile<f32>,
    rows: Rows,
    tokens: Tokens,
    (first, column): (Scalar<i64>, Tile<i64>),
    [causal, whole]: [bool; 2],
) -> Tile<f32> {
    let (mut logits, end) = (logits, first + column.shape()[0]);
    let [first_row, last_row] = rows.ends;
    if causal {
        // Only tiles on the diagonal hold keys that a query does not see.
        if end > first_row + 1 {
            let seen = column.expand(0) <= rows.position.expand(1);
            logits = select(seen, logits, f64::NEG_INFINITY);
        }
    }
    if let Some(window) = tokens.window {
        if first <= last_row - window {
            let seen = column.expand(0) > (rows.position - window).expand(1);
            logits = select(seen, logits, f64::NEG_INFINITY);
        }
        if !causal {
            if end > first_row + window {
                let seen = column.expand(0) < (rows.position + window).expand(1);
                logits = select(seen, logits, f64::NEG_INFINITY);
            }
        }
    }
    match whole {
        true => logits,
        false => select((column < rows.count).expand(0), logits, f64::NEG_INFINITY),
    }
}

/// The greatest and the least logits that rows have seen, in base 2, of which those that they do not see are infinite.
#[device]
fn widened(
    [greatest, least]: [Tile<f32>; 2],
    next: Tile<f32>,
    logits: Tile<f32>,
    scale: Scalar<f32>,
) -> [Tile<f32>; 2] {
    let seen = select(logits > f64::NEG_INFINITY, logits, f64::INFINITY);
    [maximum(greatest, next), minimum(least, seen.min(1) * scale)]
}

/// Writes the rows that are there at their places.
#[device]
fn write<T: Float>(
    results: Results<T>,
    [sum, most]: [Tile<f32>; 2],
    (total, [greatest, least]): (Tile<f32>, [Tile<f32>; 2]),
    rows: Rows,
    [d, width]: [usize; 2],
) {
    let (place, there) = (rows.place, rows.there);
    let (places, mask) = elements(rows, [d, width]);
    let extents = place.shape();
    let by_heads = |of: Tile<f32>| of.reshape(extents.clone());
    let total = total.reshape([&extents[..], &[d]].concat());
    if let Some(out) = results.out {
        let mean = total * inverse(by_heads(sum)).expand(extents.len());
        store(out + places, mean.to::<T>()).mask(mask);
    }
    if let Some(log_sums) = results.log_sums {
        store(log_sums + place, logarithm(by_heads(sum), by_heads(most))).mask(there);
    }
    // Programs of other parts have the same rows.
    if let Some(array) = results.greatest {
        atomic_max(array + place, by_heads(greatest)).mask(there);
    }
    if let Some(array) = results.least {
        atomic_min(array + place, by_heads(least)).mask(there);
    }
    let part = program_id(2) * results.rows;
    if let Some(totals) = results.totals {
        store(totals + (part * width + places), total).mask(mask);
    }
    for (array, numbers) in [(results.sums, sum), (results.powers, most)] {
        if let Some(array) = array {
            store(array + (part + place), by_heads(numbers)).mask(there);
        }
    }
}

/// What numbers in natural units are multiplied by for powers of two.
const LOG2_E: f64 = std::f64::consts::LOG2_E;

/// How far a logit may pass the power of two that a row is scaled by before that follows: sums grow by as much, and a loop
/// that multiplies them only where it must does so in few iterations.
const SLACK: f64 = 8.0;

/// What weights of `f16` are multiplied by as a power of two, so that more of them are normal numbers.
const HEADROOM: f64 = 14.0;
