//! The forms of attention: parts of keys, sequences of their own lengths, pages, windows, what is added to logits.

use exactile::{Device, bf16};

use super::{Extra, Found, GROUPED, Problem, SHAPE, halves, tiled};
use crate::numbers;
use exactile_kernels::Setting;
use exactile_kernels::attention::Shape;

/// One query for each head of three sequences.
const DECODE: Shape = Shape {
    sequences: 3,
    queries: 1,
    keys: 160,
    ..GROUPED
};

/// The rows of a result of some sequences and queries, each with its logarithms.
fn rows(found: &Found, shape: Shape, keep: impl Fn(usize, usize) -> bool) -> Found {
    let (width, heads) = (shape.width, shape.heads);
    let mut kept = Found::default();
    for token in 0..shape.sequences * shape.queries {
        if keep(token / shape.queries, token % shape.queries) {
            let of = token * heads..(token + 1) * heads;
            kept.0.extend(&found.0[of.start * width..of.end * width]);
            kept.1.extend(&found.1[of]);
        }
    }
    kept
}

#[test]
fn parts_of_keys_are_merged() {
    let rest = Shape {
        keys: 90,
        tokens_first: false,
        ..GROUPED
    };
    for (shape, split) in [(GROUPED, 32), (rest, 16), (SHAPE, 64), (DECODE, 64)] {
        let problem = Problem::new(shape).with(|it| it.split = split);
        let golden = problem.golden();
        problem.assert_near(&golden, 5e-3);
        problem.assert_alike(&golden);
        let whole = Problem::new(shape);
        let more = whole.clone().with(|it| it.split = 256);
        assert!(more.golden() == whole.golden(), "one part is the whole");
    }
}

/// What a query gives as one of many is what it gives alone with the keys that it sees, by the same parts.
#[test]
fn a_query_alone_is_one_of_many() {
    let all = Shape {
        queries: 96,
        ..GROUPED
    };
    let prefill = Problem::new(all).with(|it| it.split = 32);
    let golden = prefill.golden();
    for seen in [96, 50, 32, 1] {
        let shape = Shape { queries: 1, ..all };
        let mut decode = Problem::new(shape).with(|it| {
            it.split = 32;
            it.lengths = vec![seen; 2];
        });
        let row = all.heads * all.width;
        let query = |sequence: usize| {
            let first = (sequence * 96 + seen as usize - 1) * row;
            &prefill.arrays[0][first..first + row]
        };
        decode.arrays = prefill.arrays.clone();
        decode.arrays[0] = [query(0), query(1)].concat();
        let want = rows(&golden, all, |_, query| query + 1 == seen as usize);
        assert!(decode.golden() == want, "{seen} keys");
        let found = decode.run(&Device::lanes(), &tiled((16, 16)));
        assert!(found == want, "{seen} keys, lanes");
    }
}

/// A sequence alone has the bits that it has in a batch, of padded arrays, of arrays in which sequences follow each other, and of pages.
#[test]
fn neither_batch_nor_place_shows() {
    let lengths = [96, 33, 70];
    let shape = Shape {
        sequences: 3,
        queries: 5,
        ..GROUPED
    };
    for split in [0, 32] {
        let padded = Problem::new(shape).with(|it| {
            it.split = split;
            it.lengths = lengths.to_vec();
        });
        let golden = padded.golden();
        padded.assert_near(&golden, 5e-3);
        padded.assert_alike(&golden);
        let pages = [8, 16, 32].map(|page| in_pages(&padded, page));
        for packed in [behind_each_other(&padded)].into_iter().chain(pages) {
            let found = packed.golden();
            assert!(found == golden, "{:?}", packed.extra);
            packed.assert_alike(&golden);
        }
        for (sequence, length) in lengths.into_iter().enumerate() {
            let alone = alone(&padded, sequence, length as usize);
            let want = rows(&golden, shape, |it, _| it == sequence);
            assert!(alone.golden() == want, "sequence {sequence}");
        }
    }
}

/// One sequence of a batch, with as many keys as it has.
fn alone(batch: &Problem, sequence: usize, length: usize) -> Problem {
    let shape = Shape {
        sequences: 1,
        keys: length,
        ..batch.shape
    };
    let mut alone = Problem::new(shape).with(|it| it.split = batch.extra.split);
    let [of_queries, of_keys] = [
        shape.heads * shape.queries,
        shape.key_heads * batch.shape.keys,
    ]
    .map(|rows| rows * shape.width);
    let kept = shape.key_heads * length * shape.width;
    let [q, k, v] = &batch.arrays;
    alone.arrays = [
        q[sequence * of_queries..][..of_queries].to_vec(),
        k[sequence * of_keys..][..kept].to_vec(),
        v[sequence * of_keys..][..kept].to_vec(),
    ];
    alone
}

/// The keys that count, without those between them; queries likewise, which are all.
fn behind_each_other(padded: &Problem) -> Problem {
    let mut packed = padded.clone();
    let (shape, lengths) = (padded.shape, &padded.extra.lengths);
    let row = shape.key_heads * shape.width;
    for array in &mut packed.arrays[1..] {
        let all = std::mem::take(array);
        for (keys, &length) in all.chunks(shape.keys * row).zip(lengths) {
            array.extend(&keys[..length as usize * row]);
        }
    }
    let sums = lengths.iter().scan(0, |sum, length| {
        *sum += length;
        Some(*sum)
    });
    packed.extra.key_starts = std::iter::once(0).chain(sums).collect();
    let starts = 0..=shape.sequences;
    packed.extra.query_starts = starts.map(|it| (it * shape.queries) as i32).collect();
    packed.extra.lengths.clear();
    packed
}

/// Keys in pages of so many tokens, out of order; what is behind the last key of a sequence is no number.
fn in_pages(padded: &Problem, page: usize) -> Problem {
    let mut paged = padded.clone();
    let shape = padded.shape;
    let (pages, row) = (shape.keys / page, shape.key_heads * shape.width);
    let count = shape.sequences * pages;
    paged.extra.page = page;
    paged.extra.tables = (0..count).map(|at| (at * 5 % count) as i32).collect();
    for (array, all) in paged.arrays[1..].iter_mut().zip(&padded.arrays[1..]) {
        *array = vec![bf16::NAN; all.len()];
        for (at, token) in all.chunks(row).enumerate() {
            let (sequence, key) = (at / shape.keys, at % shape.keys);
            let entry = paged.extra.tables[sequence * pages + key / page] as usize;
            if key < padded.extra.lengths[sequence] as usize {
                let place = (entry * page + key % page) * row;
                array[place..place + row].copy_from_slice(token);
            }
        }
    }
    paged
}

#[test]
fn windows_show_near_keys_alone() {
    let both = Shape {
        causal: false,
        queries: 90,
        keys: 90,
        ..GROUPED
    };
    for (shape, window) in [(GROUPED, 17), (GROUPED, 1), (both, 20), (GROUPED, 300)] {
        for split in [0, 32] {
            let problem = Problem::new(shape).with(|it| {
                it.window = Some(window);
                it.split = split;
            });
            let golden = problem.golden();
            problem.assert_near(&golden, 5e-3);
            problem.assert_alike(&golden);
        }
    }
}

/// What is in pages that lie wholly before the keys that are seen, and whether their entries are pages, does not show.
#[test]
fn pages_before_a_window_are_not_looked_at() {
    let shape = Shape {
        queries: 2,
        ..GROUPED
    };
    let (lengths, window) = ([96, 81], 37);
    for split in [0, 64] {
        let padded = Problem::new(shape).with(|it| {
            it.split = split;
            it.lengths = lengths.to_vec();
            it.window = Some(window);
        });
        let golden = padded.golden();
        padded.assert_near(&golden, 5e-3);
        for page in [8, 16, 32] {
            let mut paged = in_pages(&padded, page);
            let row = page * shape.key_heads * shape.width;
            let tables = paged.extra.tables.chunks_mut(shape.keys / page);
            for (tables, length) in tables.zip(lengths) {
                let first = length as usize - shape.queries + 1 - window;
                for (at, entry) in tables[..first / page].iter_mut().enumerate() {
                    for array in &mut paged.arrays[1..] {
                        array[*entry as usize * row..][..row].fill(bf16::NAN);
                    }
                    *entry = if at % 2 == 0 { -1 } else { *entry };
                }
            }
            assert!(paged.golden() == golden, "pages of {page}");
            paged.assert_alike(&golden);
        }
    }
}

#[test]
fn logits_are_capped_and_added_to() {
    let count = GROUPED.queries * GROUPED.keys;
    let noise = |matrices: usize| numbers(matrices * count);
    let changes: [fn(&mut Extra, &dyn Fn(usize) -> Vec<f32>); 6] = [
        |it, _| it.slopes = vec![0.5, 0.25, 0.125, 0.0625],
        |it, noise| it.bias = Some((noise(8), true, true)),
        |it, noise| it.bias = Some((noise(2), true, false)),
        |it, noise| it.bias = Some((noise(4), false, true)),
        |it, _| (it.cap, it.scale) = (Some(2.0), Some(0.4)),
        |it, noise| (it.cap, it.bias) = (Some(1.5), Some((noise(1), false, false))),
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let problem = Problem::new(GROUPED).with(|it| change(it, &noise));
        let golden = problem.golden();
        problem.assert_near(&golden, 5e-3);
        problem.assert_alike(&golden);
        assert!(golden != Problem::new(GROUPED).golden(), "change {at}");
    }
}

/// A bias may hide keys, all of a row too.
#[test]
fn rows_that_see_nothing_are_zero() {
    let mut numbers = vec![0.0; GROUPED.queries * GROUPED.keys];
    numbers[..3 * GROUPED.keys].fill(f32::NEG_INFINITY);
    let problem = Problem::new(GROUPED).with(|it| it.bias = Some((numbers, false, false)));
    for split in [0, 32] {
        let problem = problem.clone().with(|it| it.split = split);
        let golden = problem.golden();
        problem.assert_alike(&golden);
        let hidden = rows(&golden, GROUPED, |_, query| query < 3);
        assert!(hidden.0.iter().all(|x| x.to_bits() == 0));
        assert!(hidden.1.iter().all(|x| *x == f32::NEG_INFINITY));
        let others = rows(&golden, GROUPED, |_, query| query >= 3);
        assert!(others.1.iter().all(|x| x.is_finite()));
    }
}

#[test]
fn widths_are_any() {
    for (width, tokens_first) in [(80, true), (96, false), (24, true), (8, false)] {
        for split in [0, 32] {
            let shape = Shape {
                sequences: 1,
                width,
                tokens_first,
                ..GROUPED
            };
            let problem = Problem::new(shape).with(|it| it.split = split);
            let golden = problem.golden();
            problem.assert_near(&golden, 5e-3);
            problem.assert_alike(&golden);
        }
    }
}

/// Logits far apart, and a key that takes nearly all of the weight.
#[test]
fn sharp_rows_are_near_their_definition() {
    let mut problem = Problem::new(GROUPED);
    problem.arrays[0] = halves(problem.arrays[0].len(), 0, 20.0);
    for split in [0, 32] {
        let problem = problem.clone().with(|it| it.split = split);
        let golden = problem.golden();
        problem.assert_near(&golden, 5e-3);
        problem.assert_alike(&golden);
    }
    let mut sink = Problem::new(GROUPED);
    let row = GROUPED.key_heads * GROUPED.width;
    let first = sink.arrays[0][..GROUPED.width].to_vec();
    for (at, element) in sink.arrays[1][..row].iter_mut().enumerate() {
        *element = bf16::from_f32(first[at % GROUPED.width].to_f32() * 8.0);
    }
    let golden = sink.golden();
    sink.assert_near(&golden, 5e-3);
    sink.assert_alike(&golden);
}

/// The interpreter, which is the specification, has the bits of the CPU.
#[test]
fn the_specification_gives_the_same() {
    let small = Shape {
        sequences: 1,
        heads: 2,
        key_heads: 1,
        queries: 3,
        keys: 48,
        width: 16,
        ..GROUPED
    };
    let setting = tiled((16, 16));
    for split in [0, 16] {
        let problem = Problem::new(small).with(|it| {
            it.split = split;
            it.window = Some(20);
            it.slopes = vec![0.5, 0.25];
        });
        let found = problem.run(&Device::interpreter(), &setting);
        assert!(found == problem.run(&Device::cpu(), &Setting::default()));
    }
}

/// Of three heads a tile has four rows, of which one is nobody's.
#[test]
fn groups_are_of_any_size() {
    let shape = Shape {
        sequences: 1,
        heads: 6,
        queries: 5,
        ..GROUPED
    };
    for (split, tokens_first) in [(0, true), (32, true), (32, false)] {
        let shape = Shape {
            tokens_first,
            ..shape
        };
        let problem = Problem::new(shape).with(|it| {
            it.split = split;
            it.slopes = vec![0.5, 0.25, 0.125, 0.0625, 0.1, 0.2];
        });
        let golden = problem.golden();
        problem.assert_near(&golden, 5e-3);
        problem.assert_alike(&golden);
    }
}
