//! What appends to pages.

use exactile::{Buffer, Result};
use exactile_kernels::paged::Shape as Pages;
use exactile_kernels::paged_append;

use super::{keep, ways};
use crate::numbers;

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
