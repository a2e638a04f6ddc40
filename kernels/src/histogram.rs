//! Counts of the integers below a number of bins, over a long array.
//!
//! A few programs on each multiprocessor go through the array in turns. Each keeps its counters in
//! shared memory until it ends and then adds them to the result.

use exactile::prelude::*;
use exactile::{Error, Result};

use crate::setting::{Settable, Setting, ensure};
use crate::space;

/// Adds the counts of `BINS` numbers in `x` to `out`; `BLOCK` numbers are loaded at once.
#[kernel(BLOCK = 4096)]
pub fn count<const BINS: usize, #[meta(4096, 2048, 8192, 1024, 16384)] const BLOCK: usize>(
    x: Ptr<i32>,
    out: PtrMut<i32>,
    n: i64,
) {
    let programs = num_programs(0);
    let turns = (n + (programs * BLOCK - 1)) / (programs * BLOCK);
    let mut counts = zeros::<i32>([BINS]);
    for turn in range(0, turns) {
        let offsets = (turn * programs + program_id(0)) * BLOCK + arange(0, BLOCK);
        let inside = offsets < n;
        counts += histogram_masked(load(x + offsets).mask(inside), inside, BINS);
    }
    atomic_add(out + arange(0, BINS), counts);
}

/// Sets `BINS` counts to zero.
#[kernel(grid = 1)]
pub fn clear<const BINS: usize>(out: PtrMut<i32>) {
    store(out + arange(0, BINS), zeros::<i32>([BINS]));
}

/// Programs that fill a device: a GPU by their warps.
fn programs(device: &Device, warps: Option<u32>) -> usize {
    let each = match warps {
        None => 6,
        Some(warps) => (48 / warps as usize).clamp(1, 6),
    };
    device.multiprocessors() * each
}

/// Counts how often each integer from 0 to the length of `out`, a power of two, occurs in `x`; others are
/// not counted. A setting's `block` is the numbers that a program loads at once.
pub fn launch(x: &Buffer<i32>, out: &mut Buffer<i32>, setting: &Setting) -> Result<()> {
    let (bins, device) = (out.len(), out.device().clone());
    ensure(bins.is_power_of_two(), || {
        format!("{bins} bins are no power of two")
    })?;
    let length = i64::try_from(x.len()).map_err(|error| Error::Invalid(error.to_string()))?;
    clear().bins(bins).launch(&device, (), (&mut *out,))?;
    let kernel = count().bins(bins).block(setting.block_or(4096)).by(setting);
    kernel.launch(
        &device,
        programs(&device, setting.schedule.warps),
        (x, out, length),
    )
}

/// What it computes.
pub fn reference(x: &[i32], bins: usize) -> Vec<i32> {
    let mut counts = vec![0; bins];
    for &number in x {
        if let Ok(number) = usize::try_from(number)
            && let Some(count) = counts.get_mut(number)
        {
            *count += 1;
        }
    }
    counts
}

/// The settings worth trying.
pub fn space() -> Vec<Setting> {
    let blocks = count().range_of("BLOCK");
    space::space(&blocks, &[0], &[None], |block, _| block)
}
