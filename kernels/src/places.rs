//! The places at which each of some numbers stands, in their order: a stable sort by digits, in launches that every device
//! runs alike.

use exactile::Result;
use exactile::prelude::*;

use crate::setting::{Settable, Setting, extent};

/// The values of a digit.
const DIGITS: usize = 16;

/// Which of the digits, along axis 1, each key has at `shift`.
#[device]
fn digits(keys: Tile<i32>, mask: Tile<bool>, shift: Scalar<i32>) -> Tile<bool> {
    let all = arange(0, DIGITS).to::<i32>().expand(0);
    (((keys >> shift) & (DIGITS - 1)).expand(1) == all) & mask.expand(1)
}

/// How often each digit occurs among the `BLOCK` keys of a program.
#[kernel(BLOCK = 256, grid = n.div_ceil(BLOCK))]
pub fn count_digits<const BLOCK: usize>(
    keys: Ptr<i32>,
    counts: PtrMut<i32>,
    n: i32,
    rows: i32,
    shift: i32,
) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let key = load(keys + at).mask(at < n);
    device_assert((key >= 0) & (key < rows), "an index is that of a row");
    let counted = digits(key, at < n, shift).to::<i32>().sum(0);
    store(
        counts + arange(0, DIGITS) * num_programs(0) + program_id(0),
        counted,
    );
}

/// What all counts before each of `n` add up to, in one program.
#[kernel(BLOCK = 1024, grid = 1)]
pub fn add_counts<const BLOCK: usize>(counts: PtrMut<i32>, n: i32) {
    let mut sum = sum_accumulator::<i32>([]);
    for start in range(0, n).step(BLOCK) {
        let at = start + arange(0, BLOCK);
        let count = load(counts + at).mask(at < n);
        store(counts + at, sum.cumsum(count, 0) - count).mask(at < n);
    }
}

/// Moves keys and their places in the order of a digit; equal ones keep theirs. Without places those of the keys count.
#[kernel(BLOCK = 256, grid = n.div_ceil(BLOCK))]
pub fn order_digits<const BLOCK: usize>(
    keys: Ptr<i32>,
    places: Option<Ptr<i32>>,
    before: Ptr<i32>,
    out_keys: PtrMut<i32>,
    out_places: PtrMut<i32>,
    n: i32,
    shift: i32,
) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let mask = at < n;
    let key = load(keys + at).mask(mask);
    let own = digits(key, mask, shift);
    let first = load(before + arange(0, DIGITS) * num_programs(0) + program_id(0));
    let ranks = first.expand(0) + own.to::<i32>().cumsum(0) - 1;
    let to = select(own, ranks, 0).sum(1);
    let mut place = at.to::<i32>();
    if let Some(places) = places {
        place = load(places + at).mask(mask);
    }
    store(out_keys + to, key).mask(mask);
    store(out_places + to, place).mask(mask);
}

/// For each number up to `rows`, how many of `n` keys in order are less: `STEPS` halvings.
#[kernel(BLOCK = 256, grid = (rows + 1).div_ceil(BLOCK))]
pub fn starts<const STEPS: usize, const BLOCK: usize>(
    keys: Ptr<i32>,
    out: PtrMut<i32>,
    n: i32,
    rows: i32,
) {
    let row = program_id(0) * BLOCK + arange(0, BLOCK);
    let mut before = zeros::<i64>([BLOCK]);
    for step in 0..STEPS {
        let next = before + (1usize << (STEPS - 1 - step));
        let key = load(keys + next - 1).mask(next <= n).to::<i64>();
        before = select((next <= n) & (key < row), next, before);
    }
    store(out + row, before.to::<i32>()).mask(row <= rows);
}

/// Where the places of each number from 0 to `rows` begin among all places, and these: number `i` stands at the places
/// `starts[i]..starts[i + 1]`, in their order. A setting's `block` is the numbers of a program.
///
/// # Errors
/// What a launch refuses. A number below zero or not below `rows` is told by what waits next.
pub(crate) fn places(
    device: &Device,
    keys: &Buffer<i32>,
    rows: usize,
    setting: &Setting,
) -> Result<[Buffer<i32>; 2]> {
    let length = keys.len();
    let (n, count, level) = (extent(length)?, extent(rows)?, setting.determinism);
    let block = setting.block_or(256);
    let programs = length.div_ceil(block);
    let mut counts = Buffer::<i32>::zeros(device, programs * DIGITS)?;
    let width = (usize::BITS - rows.saturating_sub(1).leading_zeros()).max(1);
    let mut sorted: Option<[Buffer<i32>; 2]> = None;
    for shift in (0..width as i32).step_by(DIGITS.ilog2() as usize) {
        let (from, places) = match &sorted {
            Some([keys, places]) => (keys, Some(places)),
            None => (keys, None),
        };
        let mut next = [
            Buffer::zeros(device, length)?,
            Buffer::zeros(device, length)?,
        ];
        let [next_keys, next_places] = &mut next;
        let kernel = count_digits().block(block).by(setting);
        kernel.launch(device, (), (from, &mut counts, n, count, shift))?;
        let kernel = add_counts().determinism(level);
        let total = extent(programs * DIGITS)?;
        kernel.launch(device, (), (&mut counts, total))?;
        let kernel = order_digits().block(block).by(setting);
        let arguments = (from, places, &counts, next_keys, next_places, n, shift);
        kernel.launch(device, (), arguments)?;
        sorted = Some(next);
    }
    let [sorted, members] = sorted.expect("broken invariant: a number has a digit");
    let mut first = Buffer::zeros(device, rows + 1)?;
    let steps = (usize::BITS - length.leading_zeros()) as usize;
    let kernel = starts().steps(steps).by(setting);
    kernel.launch(device, (), (&sorted, &mut first, n, count))?;
    Ok([first, members])
}
