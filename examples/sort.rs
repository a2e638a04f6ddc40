//! Sorts each row: NaN last, -0 before +0.

use exactile::prelude::*;
use exactile::{Number, Result};
use exactile_harness::demo::{Case, problem, random};

/// `COLUMNS` is the length of a row, a power of two; a program sorts `ROWS` rows.
#[kernel(ROWS = 4)]
pub(crate) fn sort<T: Numeric, const ROWS: usize, const COLUMNS: usize>(
    x: Tensor<T, 2>,
    out: TensorMut<T, 2>,
) {
    let place = (program_id(0), 0);
    let rows = load(x.tile([ROWS, COLUMNS]).at(place));
    store(out.tile([ROWS, COLUMNS]).at(place), rows.sort(1));
}

pub(crate) fn case<T: Numeric + Number>(rows: usize, columns: usize) -> Case {
    Case {
        kernel: "sort",
        dtype: <T as Number>::DTYPE,
        shape: vec![rows, columns],
        bytes: (2 * rows * columns * size_of::<T>()) as u64,
        flops: 0,
        blocks: vec![4, 1, 8],
        elements: |_| 1024,
        setup: Box::new(move |device| {
            let x = Buffer::from_slice(device, &random::<T>(7, rows * columns))?;
            let device = device.clone();
            let out = Buffer::<T>::zeros(&device, rows * columns)?;
            Ok(problem(out, move |out, setting| {
                let config = sort::Config {
                    rows: setting.block,
                    ..sort::Config::new(columns)
                }
                .scheduled(setting.schedule());
                let (view, sorted) = (x.view([rows, columns])?, out.view_mut([rows, columns])?);
                sort::<T>(config).determinism(setting.determinism).launch(
                    &device,
                    rows.div_ceil(setting.block),
                    (view, sorted),
                )
            }))
        }),
    }
}

/// What the demo runs; `quick` takes small inputs.
pub(crate) fn cases(quick: bool) -> Vec<Case> {
    if quick {
        return vec![case::<f32>(21, 1024), case::<f16>(10, 256)];
    }
    vec![case::<f32>(16384, 1024), case::<f16>(16384, 1024)]
}

fn main() -> Result<()> {
    exactile_harness::demo::main(&cases(true))
}
