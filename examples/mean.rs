//! The mean of a tensor `[outer, middle, inner]` over its middle axis.
//!
//! The accumulator adds the tiles of the loop in the order of one tree over the whole axis, so the
//! tile sizes never change bits.

use exactile::prelude::*;
use exactile::{Number, Result};
use exactile_harness::demo::{Case, linspace, problem};

#[kernel(ROWS = 64, COLUMNS = 16)]
pub(crate) fn mean<T: Float, const ROWS: usize, const COLUMNS: usize>(
    x: Tensor<T, 3>,
    out: TensorMut<T, 2>,
) {
    let (column, outer) = (program_id(0), program_id(1));
    let tiles = x.tile([1, ROWS, COLUMNS]);
    let mut sum = sum_accumulator::<f32>([1, COLUMNS]).at_most(256);
    for row in range(0, x.extent(1)).step(ROWS) {
        let tile = load(tiles.at_offset((outer, row, column * COLUMNS)));
        sum.add(tile, 1);
    }
    let mean = sum.finish() / x.extent(1).to::<f32>();
    store(out.tile([1, COLUMNS]).at((outer, column)), mean.to::<T>());
}

pub(crate) fn case<T: Float + Number>(outer: usize, middle: usize, inner: usize) -> Case {
    let n = outer * middle * inner;
    Case {
        kernel: "mean",
        dtype: <T as Number>::DTYPE,
        shape: vec![outer, middle, inner],
        bytes: ((n + outer * inner) * size_of::<T>()) as u64,
        flops: n as u64,
        blocks: vec![64, 32, 128],
        elements: |block| block * 16,
        setup: Box::new(move |device| {
            let x = Buffer::from_slice(device, &linspace::<T>(-100.0, 100.0, n))?;
            let device = device.clone();
            let out = Buffer::<T>::zeros(&device, outer * inner)?;
            Ok(problem(out, move |out, setting| {
                let config = mean::Config {
                    rows: setting.block,
                    columns: match setting.width {
                        0 => inner.next_power_of_two().min(64),
                        width => width,
                    },
                    ..mean::Config::new()
                }
                .scheduled(setting.schedule());
                let grid = (inner.div_ceil(config.columns), outer);
                let arguments = (
                    x.view([outer, middle, inner])?,
                    out.view_mut([outer, inner])?,
                );
                mean::<T>(config)
                    .determinism(setting.determinism)
                    .launch(&device, grid, arguments)
            }))
        }),
    }
}

/// What the demo runs; `quick` takes small inputs.
pub(crate) fn cases(quick: bool) -> Vec<Case> {
    if quick {
        return vec![case::<f32>(13, 1001, 16), case::<bf16>(7, 300, 33)];
    }
    vec![case::<f32>(2048, 4096, 16), case::<f32>(64, 4096, 64)]
}

fn main() -> Result<()> {
    exactile_harness::demo::main(&cases(true))
}
