//! Elements of each row by their indices: `out[r, c] = x[r, index[r, c]]`, as `torch.gather` along
//! the last axis.

use exactile::prelude::*;
use exactile::{Number, Result};
use exactile_harness::demo::{Case, problem, random};

/// `BLOCK` is a power of two that holds a row; an index is below the number of columns.
#[kernel]
pub(crate) fn gather_rows<T: Numeric, const BLOCK: usize>(
    x: Ptr<T>,
    index: Ptr<i64>,
    out: PtrMut<T>,
    columns: i32,
) {
    let offsets = arange(0, BLOCK);
    let mask = offsets < columns;
    let start = program_id(0) * columns;
    let row = load(x + start + offsets).mask(mask);
    let indices = load(index + start + offsets).mask(mask);
    store(out + start + offsets, gather(row, indices, 0)).mask(mask);
}

/// Indices below `columns`, each about as often.
fn indices(columns: usize, n: usize) -> Vec<i64> {
    let mixed = |index: usize| (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    (0..n)
        .map(|index| (mixed(index) % columns as u64) as i64)
        .collect()
}

pub(crate) fn case<T: Numeric + Number>(rows: usize, columns: usize) -> Case {
    let block = columns.next_power_of_two();
    let n = rows * columns;
    Case {
        kernel: "gather",
        dtype: <T as Number>::DTYPE,
        shape: vec![rows, columns],
        bytes: (n * (2 * size_of::<T>() + size_of::<i64>())) as u64,
        flops: 0,
        blocks: vec![block, 2 * block],
        elements: |block| block,
        setup: Box::new(move |device| {
            let x = Buffer::from_slice(device, &random::<T>(7, n))?;
            let index = Buffer::from_slice(device, &indices(columns, n))?;
            let device = device.clone();
            let out = Buffer::<T>::zeros(&device, n)?;
            Ok(problem(out, move |out, setting| {
                let config = gather_rows::Config::new(setting.block).scheduled(setting.schedule());
                gather_rows::<T>(config)
                    .determinism(setting.determinism)
                    .launch(&device, rows, (&x, &index, out, columns as i32))
            }))
        }),
    }
}

/// What the demo runs; `quick` takes small inputs.
pub(crate) fn cases(quick: bool) -> Vec<Case> {
    if quick {
        return vec![case::<f32>(57, 1000), case::<bf16>(19, 32)];
    }
    vec![case::<f32>(16384, 1024), case::<f32>(4096, 4096)]
}

fn main() -> Result<()> {
    exactile_harness::demo::main(&cases(true))
}
