//! Where the keys of a program are, and their tiles.

use exactile::prelude::*;

use crate::attention::{Rows, Tokens};

/// The place of the first key of a sequence among all, and the number of its keys.
#[device]
pub(crate) fn keys_of(tokens: Tokens, sequence: Scalar<i64>) -> (Scalar<i64>, Scalar<i64>) {
    let first = sequence * tokens.keys;
    match (tokens.key_starts, tokens.lengths) {
        (Some(starts), _) => {
            let (first, count) = between(starts, sequence, tokens.keys);
            let fits = first + count <= tokens.key_rows.to::<i64>();
            device_assert(fits, "the keys of a sequence are rows that there are");
            (first, count)
        }
        (None, Some(lengths)) => {
            let length = load(lengths + sequence);
            let fits = (length >= 0) & (length <= tokens.keys);
            device_assert(fits, "a length is from 0 to the keys that there may be");
            (first, length.to::<i64>())
        }
        (None, None) => (first, tokens.keys.to::<i64>()),
    }
}

/// What lies between a start and the next one: where, and how many.
#[device]
pub(crate) fn between(
    starts: Ptr<i32>,
    sequence: Scalar<i64>,
    most: Scalar<i32>,
) -> (Scalar<i64>, Scalar<i64>) {
    let [start, end] = [0, 1].map(|next| load(starts + sequence + next));
    let fits = (start >= 0) & (start <= end) & (end - start <= most);
    device_assert(fits, "starts ascend, by no more than a sequence may have");
    (start.to::<i64>(), (end - start).to::<i64>())
}

/// The keys that some row sees, of the part that a program has.
#[device]
pub(crate) fn seen(tokens: Tokens, rows: Rows, causal: bool) -> (Scalar<i64>, Scalar<i64>) {
    let ([first, last], mut from, mut to) = (rows.ends, scalar::<i64>(0), rows.count);
    if causal {
        to = minimum(last + 1, to);
    }
    if let Some(window) = tokens.window {
        from = maximum(first - window + 1, 0);
        if !causal {
            to = minimum(last + window, to);
        }
    }
    if let Some(every) = tokens.every {
        let start = program_id(2) * every;
        from = maximum(from, start);
        to = minimum(to, start + every);
    }
    (from, to)
}

/// Tiles of keys, the first of which begins at one end, up to the other end, and whether all keys of each are those of the sequence: then
/// a tile is a box of an array.
pub(crate) struct Span {
    pub(crate) ends: [Scalar<i64>; 2],
    pub(crate) whole: bool,
}

/// Of how many runs of keys that lie beside each other a tile is: of one, or, over pages that it has several of, of one each.
/// Nothing where a page is no run.
pub(crate) fn runs_of(tokens: Tokens, [page, n]: [usize; 2]) -> Option<usize> {
    let is_in_pages = tokens.tables.is_some() && !page.is_multiple_of(n);
    match is_in_pages {
        false => Some(1),
        true => (page >= LEAST_RUN && n.is_multiple_of(page)).then(|| n / page),
    }
}

/// Of so many keys a bulk copy brings a run.
pub(crate) const LEAST_RUN: usize = 8;

/// The tiles of `n` of the keys that are seen: first those that do not go beyond the `count` of a sequence, then the one that does, where
/// `n` does not divide that. Where keys do not lie in runs all tiles are alike.
#[device]
pub(crate) fn spans(
    tokens: Tokens,
    (from, to): (Scalar<i64>, Scalar<i64>),
    count: Scalar<i64>,
    n: usize,
    [whole, in_runs]: [bool; 2],
) -> Vec<Span> {
    let from = match tokens.window {
        // A part begins with a tile.
        Some(_) => from / n * n,
        None => from,
    };
    let end = count / n * n;
    match [whole, in_runs] {
        [true, _] | [_, false] => vec![Span {
            ends: [from, to],
            whole,
        }],
        [false, true] => vec![
            Span {
                ends: [from, minimum(to, end)],
                whole: true,
            },
            Span {
                ends: [maximum(from, end), to],
                whole: false,
            },
        ],
    }
}

/// Ends a checked launch where keys that are seen would be in a page that is not there.
#[device]
pub(crate) fn check_pages(
    tokens: Tokens,
    sequence: Scalar<i64>,
    (from, to): (Scalar<i64>, Scalar<i64>),
    page: usize,
) {
    if let Some(tables) = tokens.tables {
        let (tables, end) = (
            tables.tensor([tokens.entries], [1]),
            (to + (page - 1)) / page,
        );
        for first in range(from / page, end).step(ENTRIES) {
            let entries = tables
                .tile([ENTRIES])
                .at_offset([sequence * tokens.pages + first]);
            let entry = entries.load().to::<i64>();
            let is_there = (entry >= 0) & (entry < tokens.key_rows / page);
            let is_seen = first + arange(0, ENTRIES) < end;
            device_assert(
                is_there | !is_seen,
                "the entries of a table are pages that there are",
            );
        }
    }
}

/// Entries of a table that are checked at a time.
const ENTRIES: usize = 128;

/// The places of keys, and which of them are there.
pub(crate) type Run = (Tile<i64>, Tile<bool>);

/// The keys of a tile from `place` on, behind the start of its sequence, run by run: of whole tiles those that are rows of the array, which
/// a bulk copy asks, else those that some row sees.
#[device]
pub(crate) fn runs_at(
    tokens: Tokens,
    rows: Rows,
    (place, seen): ([Scalar<i64>; 2], (Scalar<i64>, Scalar<i64>)),
    tile: [usize; 2],
    [whole, together]: [bool; 2],
) -> Vec<Run> {
    let places = places_of(tokens, rows, (place, seen.0), tile, [whole, together]);
    let column = place[1] + arange(0, tile[1]);
    let there = match tokens.window {
        Some(_) => (column >= seen.0) & (column < seen.1),
        None => column < seen.1,
    };
    let run = |key: Tile<i64>| match whole {
        true => (key, (key >= 0) & (key < tokens.key_rows.to::<i64>())),
        false => (key, there),
    };
    places.into_iter().map(run).collect()
}

/// Where the `n` keys from `first` on are among all: behind the first of the sequence, in the pages of its table, or, of heads with their
/// tokens, behind the first of the head. A whole tile has a place for each run, another one for all of them together.
#[device]
fn places_of(
    tokens: Tokens,
    rows: Rows,
    ([start, first], from): ([Scalar<i64>; 2], Scalar<i64>),
    [page, n]: [usize; 2],
    [whole, together]: [bool; 2],
) -> Vec<Tile<i64>> {
    let column = first + arange(0, n);
    let row = rows.sequence * tokens.pages;
    match (tokens.tables, runs_of(tokens, [page, n])) {
        _ if !together => vec![program_id(1) * tokens.keys + column],
        (None, _) => vec![start + column],
        (Some(tables), None) => {
            let entries = load(tables + row + column / page).mask(column < rows.count);
            vec![entries.to::<i64>() * page + column % page]
        }
        (Some(tables), Some(runs)) => {
            let entries = |entry: Scalar<i64>, count: usize| {
                let tables = tables.tensor([tokens.entries], [1]);
                tables.tile([count]).at_offset([row + entry]).load()
            };
            let start = |entry| entries(entry, 1).reshape([]).scalar().to::<i64>() * page;
            match (runs, whole) {
                (1, _) => vec![start(first / page) + first % page + arange(0, n)],
                // Such a tile begins with a page.
                (_, true) => {
                    let run = |run: usize| {
                        let start = start(first / page + run);
                        // What is in pages before a window need not be numbers.
                        let start = match tokens.window {
                            Some(_) => {
                                select(first + (run + 1) * page > from, start, -(page as i64))
                            }
                            None => start,
                        };
                        start + arange(0, page)
                    };
                    (0..runs).map(run).collect()
                }
                (_, false) => {
                    let starts = entries(first / page, runs).to::<i64>() * page;
                    vec![(starts.expand(1) + arange(0, page).expand(0)).reshape([n])]
                }
            }
        }
    }
}

/// The elements of rows that are there, along `axis` of a tile that is wider than these.
#[device]
fn across(there: Tile<bool>, axis: usize, [d, width]: [usize; 2]) -> Tile<bool> {
    match d == width {
        true => there,
        false => there & (arange(0, d).expand(axis) < width),
    }
}

/// The keys or values of a tile, run by run, by their places along the other axis than `axis`: of a head beside others, where it is given.
#[device]
pub(crate) fn held<T: Float>(
    of: Ptr<T>,
    (runs, head): (&[Run], Option<Scalar<i64>>),
    axis: usize,
    extents: [usize; 3],
) -> Tile<T> {
    let runs = runs.iter();
    let runs = runs.map(|&run| run_of(of, (run, head), axis, extents));
    cat(runs.collect::<Vec<_>>(), 1 - axis)
}

/// Those of keys that lie beside each other.
#[device]
fn run_of<T: Float>(
    of: Ptr<T>,
    ((key, there), head): (Run, Option<Scalar<i64>>),
    axis: usize,
    [d, width, heads]: [usize; 3],
) -> Tile<T> {
    let (element, across) = (
        arange(0, d).expand(1 - axis),
        across(there.expand(axis), 1 - axis, [d, width]),
    );
    match head {
        Some(head) => {
            let column = head * width + element;
            // What a bulk copy asks of an axis: that it is cut off where an array ends.
            let mask = across & (column >= 0) & (column < heads * width);
            load(of + key.expand(axis) * (heads * width) + column)
                .mask(mask)
                .other(0.0)
        }
        None => load(of + key.expand(axis) * width + element)
            .mask(across)
            .other(0.0),
    }
}
