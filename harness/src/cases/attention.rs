//! Attention by tensor cores, forward and backward.

use exactile::prelude::*;
use exactile::{DType, bf16};
use exactile_kernels::attention::{Keys, Options, Shape, Split, parts};
use exactile_kernels::attention_backward::Given;
use exactile_kernels::{self as kernels, Setting};

use crate::demo::{Case, problem, problem_in_phases, random};

/// Attention of as many queries as keys; causal where heads share keys.
pub(super) fn tensor_attention(shape: Shape) -> Case {
    let Shape {
        heads,
        key_heads,
        keys: tokens,
        width,
        causal,
        ..
    } = shape;
    let [count, of_keys] = [heads, key_heads].map(|heads| heads * tokens * width);
    let (kernel, extents) = match causal {
        true if heads > key_heads => (
            "grouped_query_attention",
            vec![heads, key_heads, tokens, width],
        ),
        true => ("causal_attention", vec![heads, tokens, width]),
        false => ("tensor_attention", vec![heads, tokens, width]),
    };
    Case {
        kernel,
        dtype: DType::BF16,
        shape: extents,
        bytes: (2 * (count + of_keys) * size_of::<bf16>()) as u64,
        flops: (4 * count * tokens) as u64 / (1 + u64::from(causal)),
        blocks: vec![128, 64],
        elements: |block| block * 128,
        setup: Box::new(move |device| {
            let input = |seed, count| Buffer::from_slice(device, &random::<bf16>(seed, count));
            let (q, k, v) = (input(1, count)?, input(2, of_keys)?, input(3, of_keys)?);
            let out = Buffer::<bf16>::zeros(device, count)?;
            Ok(problem(out, move |out, setting: &Setting| {
                kernels::attention([&q, &k, &v], out, shape, Options::default(), setting)
            }))
        }),
    }
}

/// Causal attention of some sequences of as many tokens, which lie behind each other, as starts say.
pub(super) fn packed_attention(shape: Shape) -> Case {
    let plain = tensor_attention(shape);
    let Shape {
        sequences,
        heads,
        keys: tokens,
        width,
        ..
    } = shape;
    let count = sequences * heads * tokens * width;
    Case {
        kernel: "packed_attention",
        shape: vec![sequences, heads, tokens, width],
        bytes: sequences as u64 * plain.bytes,
        flops: sequences as u64 * plain.flops,
        setup: Box::new(move |device| {
            let input = |seed| Buffer::from_slice(device, &random::<bf16>(seed, count));
            let (q, k, v) = (input(1)?, input(2)?, input(3)?);
            let starts: Vec<i32> = (0..=sequences).map(|it| (it * tokens) as i32).collect();
            let starts = Buffer::from_slice(device, &starts)?;
            let out = Buffer::<bf16>::zeros(device, count)?;
            Ok(problem(out, move |out, setting: &Setting| {
                let options = Options {
                    query_starts: Some(&starts),
                    keys: Keys::Starts(&starts),
                    ..Options::default()
                };
                kernels::attention([&q, &k, &v], out, shape, options, setting)
            }))
        }),
        ..plain
    }
}

/// The keys of a part.
const PART: usize = 1024;

/// Attention of a query of each head over many keys, by parts.
pub(super) fn decode_attention(shape: Shape) -> Case {
    let Shape {
        sequences,
        heads,
        key_heads,
        keys,
        width,
        ..
    } = shape;
    let rows = sequences * heads;
    let [of_queries, of_keys] = [rows, sequences * key_heads * keys].map(|it| it * width);
    Case {
        kernel: "decode_attention",
        dtype: DType::BF16,
        shape: vec![sequences, heads, key_heads, keys, width],
        bytes: (2 * (of_queries + of_keys) * size_of::<bf16>()) as u64,
        flops: (4 * of_queries * keys) as u64,
        blocks: vec![16, 64],
        elements: |block| block * 128,
        setup: Box::new(move |device| {
            let input = |seed, count| Buffer::from_slice(device, &random::<bf16>(seed, count));
            let (q, k, v) = (
                input(1, of_queries)?,
                input(2, of_keys)?,
                input(3, of_keys)?,
            );
            let out = Buffer::<bf16>::zeros(device, of_queries)?;
            let mut room = Buffer::zeros(device, parts(shape, PART, of_queries))?;
            Ok(problem_in_phases(out, move |out, setting: &Setting| {
                let split = Some(Split {
                    keys: PART,
                    parts: &mut room,
                });
                let options = Options {
                    split,
                    ..Options::default()
                };
                kernels::attention([&q, &k, &v], out, shape, options, setting)
            }))
        }),
    }
}

/// The same of keys in a cache that sequences fill but for one key: those of a sequence after each other, or in pages of so many tokens,
/// which lie in another order than in their sequences.
pub(super) fn cached_attention(shape: Shape, page: Option<usize>) -> Case {
    let plain = decode_attention(shape);
    let (of_queries, room) = (
        shape.sequences * shape.heads * shape.width,
        shape.keys.next_multiple_of(page.unwrap_or(1)),
    );
    Case {
        kernel: match page {
            Some(_) => "paged_attention",
            None => "cached_attention",
        },
        shape: plain.shape.iter().copied().chain(page).collect(),
        setup: Box::new(move |device| {
            let of_keys = shape.sequences * room * shape.key_heads * shape.width;
            let input = |seed, count| Buffer::from_slice(device, &random::<bf16>(seed, count));
            let (q, k, v) = (
                input(1, of_queries)?,
                input(2, of_keys)?,
                input(3, of_keys)?,
            );
            let pages = shape.sequences * room / page.unwrap_or(room);
            let tables: Vec<i32> = (0..pages).rev().map(|page| page as i32).collect();
            let tables = Buffer::from_slice(device, &tables)?;
            let lengths = vec![shape.keys as i32 - 1; shape.sequences];
            let lengths = Buffer::from_slice(device, &lengths)?;
            let out = Buffer::<bf16>::zeros(device, of_queries)?;
            let mut room = Buffer::zeros(device, parts(shape, PART, of_queries))?;
            Ok(problem_in_phases(out, move |out, setting: &Setting| {
                let options = Options {
                    keys: match page {
                        Some(page) => Keys::Pages {
                            tables: &tables,
                            lengths: &lengths,
                            page,
                        },
                        None => Keys::Lengths(&lengths),
                    },
                    split: Some(Split {
                        keys: PART,
                        parts: &mut room,
                    }),
                    ..Options::default()
                };
                kernels::attention([&q, &k, &v], out, shape, options, setting)
            }))
        }),
        ..plain
    }
}

/// The gradients of queries, keys and values.
pub(super) fn attention_backward(shape: Shape) -> Case {
    let forward = tensor_attention(shape);
    let rows = shape.heads * shape.keys;
    let count = rows * shape.width;
    Case {
        kernel: match shape.causal {
            true => "causal_attention_backward",
            false => "attention_backward",
        },
        bytes: (8 * count * size_of::<bf16>() + 4 * rows) as u64,
        flops: forward.flops / 2 * 5,
        blocks: vec![64, 32],
        setup: Box::new(move |device| {
            let input = |seed| Buffer::from_slice(device, &random::<bf16>(seed, count));
            let (q, k, v, gradient) = (input(1)?, input(2)?, input(3)?, input(4)?);
            let mut out = Buffer::<bf16>::zeros(device, count)?;
            let mut log_sums = Buffer::<f32>::zeros(device, rows)?;
            let options = Options {
                log_sums: Some(&mut log_sums),
                ..Options::default()
            };
            let setting = Setting::default();
            kernels::attention([&q, &k, &v], &mut out, shape, options, &setting)?;
            let zeros = || Buffer::<bf16>::zeros(device, count);
            let found = (zeros()?, zeros()?, zeros()?);
            Ok(problem_in_phases(found, move |found, setting: &Setting| {
                let given = Given {
                    out: &out,
                    gradient: &gradient,
                    log_sums: &log_sums,
                };
                let found = [&mut found.0, &mut found.1, &mut found.2];
                kernels::attention_backward([&q, &k, &v], given, found, shape, setting)
            }))
        }),
        ..forward
    }
}
