//! The greatest elements of each row, with and without their indices.

use exactile::prelude::*;
use exactile::{Number, Result};
use exactile_harness::demo::{Case, problem, random};

/// The `K` greatest elements of each row, the greatest first. `COLUMNS` is the length of a row, a
/// power of two; a program takes `ROWS` rows.
#[kernel(ROWS = 4, K = 32)]
pub(crate) fn topk<T: Numeric, const ROWS: usize, const COLUMNS: usize, const K: usize>(
    x: Tensor<T, 2>,
    out: TensorMut<T, 2>,
) {
    let place = (program_id(0), 0);
    let rows = load(x.tile([ROWS, COLUMNS]).at(place));
    store(out.tile([ROWS, K]).at(place), rows.topk(K, 1));
}

/// The same with the column of each element; of equal elements the first.
#[kernel(ROWS = 4, K = 32)]
pub(crate) fn topk_indices<T: Numeric, const ROWS: usize, const COLUMNS: usize, const K: usize>(
    x: Tensor<T, 2>,
    out: TensorMut<T, 2>,
    indices: TensorMut<i64, 2>,
) {
    let place = (program_id(0), 0);
    let rows = load(x.tile([ROWS, COLUMNS]).at(place));
    let (values, columns) = rows.topk_with_indices(K, 1);
    store(out.tile([ROWS, K]).at(place), values);
    store(indices.tile([ROWS, K]).at(place), columns);
}

/// How many elements of a row the cases take.
const KEPT: usize = 32;

pub(crate) fn case<T: Numeric + Number>(rows: usize, columns: usize) -> Case {
    Case {
        kernel: "topk",
        dtype: <T as Number>::DTYPE,
        shape: vec![rows, columns],
        bytes: (rows * (columns + KEPT) * size_of::<T>()) as u64,
        flops: 0,
        blocks: vec![4, 1, 8],
        elements: |_| 1024,
        setup: Box::new(move |device| {
            let x = Buffer::from_slice(device, &random::<T>(8, rows * columns))?;
            let device = device.clone();
            let out = Buffer::<T>::zeros(&device, rows * KEPT)?;
            Ok(problem(out, move |out, setting| {
                let config = topk::Config {
                    rows: setting.block,
                    k: KEPT,
                    ..topk::Config::new(columns)
                }
                .scheduled(setting.schedule());
                let (view, greatest) = (x.view([rows, columns])?, out.view_mut([rows, KEPT])?);
                topk::<T>(config).determinism(setting.determinism).launch(
                    &device,
                    rows.div_ceil(setting.block),
                    (view, greatest),
                )
            }))
        }),
    }
}

/// The same for the kernel that gives indices too; values and indices are compared.
pub(crate) fn case_with_indices<T: Numeric + Number>(rows: usize, columns: usize) -> Case {
    Case {
        kernel: "topk_indices",
        bytes: (rows * (columns * size_of::<T>() + KEPT * (size_of::<T>() + 8))) as u64,
        setup: Box::new(move |device| {
            let x = Buffer::from_slice(device, &random::<T>(8, rows * columns))?;
            let device = device.clone();
            let values = Buffer::<T>::zeros(&device, rows * KEPT)?;
            let indices = Buffer::<i64>::zeros(&device, rows * KEPT)?;
            Ok(problem(
                (values, indices),
                move |(values, indices), setting| {
                    let config = topk_indices::Config {
                        rows: setting.block,
                        k: KEPT,
                        ..topk_indices::Config::new(columns)
                    }
                    .scheduled(setting.schedule());
                    let arguments = (
                        x.view([rows, columns])?,
                        values.view_mut([rows, KEPT])?,
                        indices.view_mut([rows, KEPT])?,
                    );
                    topk_indices::<T>(config)
                        .determinism(setting.determinism)
                        .launch(&device, rows.div_ceil(setting.block), arguments)
                },
            ))
        }),
        ..case::<T>(rows, columns)
    }
}

/// What the demo runs; `quick` takes small inputs.
pub(crate) fn cases(quick: bool) -> Vec<Case> {
    if quick {
        return vec![
            case::<f32>(21, 1024),
            case::<bf16>(10, 256),
            case_with_indices::<f32>(21, 1024),
        ];
    }
    vec![
        case::<f32>(16384, 1024),
        case_with_indices::<f32>(16384, 1024),
    ]
}

fn main() -> Result<()> {
    exactile_harness::demo::main(&cases(true))
}
