//! What puts new keys and values into pages, over which [`attention`](crate::attention()) goes.

use exactile::prelude::*;
use exactile::{Number, Result};

use crate::setting::{Settable, Setting, check_shape, extent};

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

/// Puts the new keys and values of `[sequences, heads, width]` behind the first `lengths` tokens of each sequence. A
/// setting's `width` is the heads of a program, as far as they divide those of a token.
pub fn launch<T: Float + Number>(
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
