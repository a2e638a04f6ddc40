//! The sums of all prefixes of each row: one program a row, the whole row in one tile.

use exactile::prelude::*;
use exactile::{Number, Result};
use exactile_harness::demo::{Case, problem, uniform};

/// `BLOCK` is the next power of two of the number of columns.
#[kernel]
pub(crate) fn cumsum<T: Float, const BLOCK: usize>(x: Ptr<T>, out: PtrMut<T>, columns: i32) {
    let offsets = arange(0, BLOCK);
    let mask = offsets < columns;
    let start = program_id(0) * columns;
    let row = load(x + start + offsets).mask(mask);
    store(out + start + offsets, row.cumsum(0)).mask(mask);
}

pub(crate) fn case<T: Float + Number>(rows: usize, columns: usize) -> Case {
    let block = columns.next_power_of_two();
    Case {
        kernel: "cumsum",
        dtype: <T as Number>::DTYPE,
        shape: vec![rows, columns],
        bytes: (2 * rows * columns * size_of::<T>()) as u64,
        flops: (rows * columns) as u64,
        blocks: vec![block, 2 * block],
        elements: |block| block,
        setup: Box::new(move |device| {
            let x = Buffer::from_slice(device, &uniform::<T>(5, rows * columns, 0.0, 1.0))?;
            let device = device.clone();
            let out = Buffer::<T>::zeros(&device, rows * columns)?;
            Ok(problem(out, move |out, setting| {
                let config = cumsum::Config::new(setting.block).scheduled(setting.schedule());
                cumsum::<T>(config).determinism(setting.determinism).launch(
                    &device,
                    rows,
                    (&x, out, columns as i32),
                )
            }))
        }),
    }
}

/// What the demo runs; `quick` takes small inputs.
pub(crate) fn cases(quick: bool) -> Vec<Case> {
    if quick {
        return vec![
            case::<f32>(123, 781),
            case::<f16>(61, 1000),
            case::<bf16>(61, 1000),
        ];
    }
    vec![
        case::<f32>(4096, 8192),
        case::<f32>(4096, 3000),
        case::<bf16>(4096, 4096),
    ]
}

fn main() -> Result<()> {
    exactile_harness::demo::main(&cases(true))
}
