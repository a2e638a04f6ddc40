//! Attention over pages, and what appends to them.

use exactile::{Buffer, Result};
use exactile_kernels::paged::{self, Shape as Pages};
use exactile_kernels::{Setting, paged_append, paged_decode};

use super::{integers, keep, read, sizes, ways};
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

/// Any number of heads a program puts the same elements at the same places.
#[test]
fn heads_are_appended_together() -> Result<()> {
    let shape = Pages {
        sequences: 3,
        heads: 4,
        width: 16,
        page: 2,
        pages: 2,
    };
    let own = numbers(3 * 4 * 16);
    let (tables, lengths) = ([5, 0, 3, 1, 2, 4], [3, 0, 2]);
    let mut golden = Vec::new();
    for (device, setting) in ways([1, 2, 4]) {
        let new = Buffer::from_slice(&device, &own)?;
        let places = [
            &Buffer::from_slice(&device, &tables)?,
            &Buffer::from_slice(&device, &lengths)?,
        ];
        let mut keys = Buffer::zeros(&device, 6 * 2 * 4 * 16)?;
        let mut values = Buffer::zeros(&device, 6 * 2 * 4 * 16)?;
        let pages = [&mut keys, &mut values];
        paged_append([&new, &new], pages, places, shape, &setting)?;
        keep(&mut golden, &keys);
        keep(&mut golden, &values);
    }
    for (sequence, length) in lengths.into_iter().enumerate() {
        let page = tables[sequence * 2 + length as usize / 2] as usize;
        let place = (page * 2 + length as usize % 2) * 64;
        assert_eq!(golden[place..][..64], own[sequence * 64..][..64]);
    }
    assert_eq!(golden.iter().filter(|x| **x != 0.0).count(), own.len());
    Ok(())
}
