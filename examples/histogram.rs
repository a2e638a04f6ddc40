//! Counts of the integers below a number of bins, over a long array.
//!
//! A few programs on each multiprocessor go through the array in turns. Each keeps its counters in
//! shared memory until it ends and then adds them to the result.

use exactile::prelude::*;
use exactile::{Error, Result};
use exactile_harness::demo::{Case, problem_in_phases, uniform};

/// Adds the counts of `BINS` numbers in `x` to `out`; `BLOCK` numbers are loaded at once.
#[kernel(BLOCK = 4096)]
pub(crate) fn count<const BINS: usize, const BLOCK: usize>(x: Ptr<i32>, out: PtrMut<i32>, n: i64) {
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
#[kernel]
pub(crate) fn clear<const BINS: usize>(out: PtrMut<i32>) {
    store(out + arange(0, BINS), zeros::<i32>([BINS]));
}

/// Programs that fill a device: a GPU by their warps.
fn programs(device: &Device, warps: u32) -> usize {
    let each = match warps {
        0 => 6,
        warps => (48 / warps as usize).clamp(1, 6),
    };
    device.multiprocessors() * each
}

/// `bins` is a power of two.
pub(crate) fn case(bins: usize, n: usize) -> Case {
    Case {
        kernel: "histogram",
        dtype: <i32 as exactile::Number>::DTYPE,
        shape: vec![n],
        bytes: ((n + bins) * size_of::<i32>()) as u64,
        flops: n as u64,
        blocks: vec![4096, 8192, 16384],
        elements: |block| block,
        setup: Box::new(move |device| {
            let x = Buffer::from_slice(device, &uniform::<i32>(11, n, 0.0, bins as f64))?;
            let device = device.clone();
            let length = i64::try_from(n).map_err(|error| Error::Invalid(error.to_string()))?;
            let out = Buffer::<i32>::zeros(&device, bins)?;
            Ok(problem_in_phases(out, move |out, setting| {
                clear(clear::Config::new(bins)).launch(&device, 1, (&mut *out,))?;
                let config = count::Config {
                    block: setting.block,
                    ..count::Config::new(bins)
                }
                .scheduled(setting.schedule());
                count(config).determinism(setting.determinism).launch(
                    &device,
                    programs(&device, setting.warps),
                    (&x, out, length),
                )
            }))
        }),
    }
}

/// What the demo runs; `quick` takes small inputs.
pub(crate) fn cases(quick: bool) -> Vec<Case> {
    if quick {
        return vec![case(256, 100_003), case(2, 65_536)];
    }
    vec![case(256, 1 << 28), case(4096, 1 << 26)]
}

fn main() -> Result<()> {
    exactile_harness::demo::main(&cases(true))
}
