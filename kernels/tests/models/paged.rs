//! Attention over pages, and what appends to them.

use exactile_kernels::paged::{self, Shape as Pages};
use exactile_kernels::{Setting, paged_append, paged_decode};

use super::{integers, read, sizes};
use crate::{assert_close, buffer, numbers, run};

/// The rows of a head of a sequence in pages of 8 tokens of 3 heads.
fn paged_rows(from: &[f32], pages: &[i32], head: usize, length: i32) -> Vec<Vec<f32>> {
    let token = |token: usize| {
        let page = pages[token / 8] as usize;
        from[((page * 8 + token % 8) * 3 + head) * 16..][..16].to_vec()
    };
    (0..length as usize).map(token).collect()
}

#[test]
fn new_tokens_attend_to_pages() {
    let shape = Pages {
        sequences: 2,
        heads: 3,
        width: 16,
        page: 8,
        pages: 6,
    };
    let (lengths, own) = ([37, 9], 2 * 3 * 16);
    let tables: Vec<i32> = (0..12).map(|at| at * 5 % 12).collect();
    let all = 12 * 8 * 3 * 16;
    let (mut keys, mut values) = (buffer(&numbers(all)), buffer(&numbers(all + 11)[11..]));
    let (new_keys, new_values) = (
        buffer(&numbers(own + 3)[3..]),
        buffer(&numbers(own + 5)[5..]),
    );
    let (pages, before) = (
        integers(&tables),
        integers(&lengths.map(|length| length - 1)),
    );
    let query = numbers(own + 70);
    let queries = buffer(&query[70..]);
    let places = [&pages, &before];
    let new = [&new_keys, &new_values];
    paged_append(
        new,
        [&mut keys, &mut values],
        places,
        shape,
        &Setting::default(),
    )
    .expect("runs");
    let ends = integers(&lengths);
    let got = run(&sizes([2, 16, 64]), own, |out, setting| {
        paged_decode(
            &queries,
            [&keys, &values],
            [&pages, &ends],
            out,
            shape,
            setting,
        )
    });
    let (keys, values) = (read(&keys), read(&values));
    for (at, got) in got.chunks(16).enumerate() {
        let (sequence, head) = (at / 3, at % 3);
        let rows = |from| paged_rows(from, &tables[sequence * 6..], head, lengths[sequence]);
        let (own_keys, own_values) = (rows(&keys), rows(&values));
        assert_eq!(
            own_keys.last().map(Vec::as_slice),
            Some(&read(&new_keys)[at * 16..][..16])
        );
        assert_close(
            got,
            &paged::reference(&query[70 + at * 16..][..16], &own_keys, &own_values),
        );
    }
}
