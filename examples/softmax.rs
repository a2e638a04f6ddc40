//! Softmax of each row, the whole row in one tile: one program a row, some rows a program, or a loop
//! over rows.

use exactile::prelude::*;
use exactile::{Number, Result};
use exactile_harness::demo::{Case, problem, random};

/// `BLOCK` is the next power of two of the number of columns.
#[kernel]
pub(crate) fn softmax<T: Float, const BLOCK: usize>(x: Ptr<T>, out: PtrMut<T>, columns: i32) {
    let offsets = arange(0, BLOCK);
    let mask = offsets < columns;
    let start = program_id(0) * columns;
    let row = load(x + start + offsets)
        .mask(mask)
        .other(f64::NEG_INFINITY);
    store(out + start + offsets, normalised(row.to()).to::<T>()).mask(mask);
}

/// Divides once: as an exact operation a division takes ten instructions.
#[device]
fn normalised(row: Tile<f32>) -> Tile<f32> {
    let e = exp(row - row.max(0));
    let weight = 1.0 / e.sum(0);
    e * weight
}

/// The same for rows too short to fill a program: `ROWS` of them at once.
#[kernel(ROWS = 4)]
pub(crate) fn softmax_rows<T: Float, const ROWS: usize, const BLOCK: usize>(
    x: Tensor<T, 2>,
    out: TensorMut<T, 2>,
) {
    let place = (program_id(0), 0);
    let rows = load(x.tile([ROWS, BLOCK]).at(place)).other(f64::NEG_INFINITY);
    let rows = rows.to::<f32>();
    let e = exp(rows - rows.max(1).expand(1));
    let weight = 1.0 / e.sum(1);
    let normalised = e * weight.expand(1);
    store(out.tile([ROWS, BLOCK]).at(place), normalised.to::<T>());
}

/// The same by a grid of any size: each program takes a row, then one as far away as there are
/// programs. The next rows are loaded while one is worked on.
#[kernel]
pub(crate) fn softmax_loop<T: Float, const BLOCK: usize>(
    x: Ptr<T>,
    out: PtrMut<T>,
    rows: i32,
    columns: i32,
) {
    let offsets = arange(0, BLOCK);
    let mask = offsets < columns;
    let mine = range(program_id(0), rows).step(num_programs(0));
    for row in mine.stages(2) {
        let start = row * columns;
        let row = load(x + start + offsets)
            .mask(mask)
            .other(f64::NEG_INFINITY);
        store(out + start + offsets, normalised(row.to()).to::<T>()).mask(mask);
    }
}

/// A tile longer than a row takes several rows. With `width` 0 there is a program for each tile, else
/// `width` programs for each multiprocessor.
pub(crate) fn case<T: Float + Number>(rows: usize, columns: usize) -> Case {
    case_of::<T>("softmax", rows, columns, 0)
}

/// With `width` 0 as many programs for each multiprocessor as `programs` says.
fn case_of<T: Float + Number>(
    kernel: &'static str,
    rows: usize,
    columns: usize,
    programs: usize,
) -> Case {
    let block = columns.next_power_of_two();
    Case {
        kernel,
        dtype: <T as Number>::DTYPE,
        shape: vec![rows, columns],
        bytes: (2 * rows * columns * size_of::<T>()) as u64,
        flops: (5 * rows * columns) as u64,
        blocks: vec![block, 2 * block, 4 * block],
        elements: |block| block,
        setup: Box::new(move |device| {
            let x = Buffer::from_slice(device, &random::<T>(3, rows * columns))?;
            let device = device.clone();
            let out = Buffer::<T>::zeros(&device, rows * columns)?;
            Ok(problem(out, move |out, setting| {
                let (block, schedule) = (setting.block, setting.schedule());
                let together = block / columns.next_power_of_two();
                if together > 1 {
                    let config = softmax_rows::Config {
                        rows: together,
                        ..softmax_rows::Config::new(block / together)
                    }
                    .scheduled(schedule);
                    let (x, out) = (x.view([rows, columns])?, out.view_mut([rows, columns])?);
                    return softmax_rows::<T>(config)
                        .determinism(setting.determinism)
                        .launch(&device, rows.div_ceil(together), (x, out));
                }
                let width = match setting.width {
                    0 => programs,
                    width => width,
                };
                if width == 0 {
                    let config = softmax::Config::new(block).scheduled(schedule);
                    return softmax::<T>(config)
                        .determinism(setting.determinism)
                        .launch(&device, rows, (&x, out, columns as i32));
                }
                let config = softmax_loop::Config::new(block).scheduled(schedule);
                let programs = rows.min(width * device.multiprocessors());
                softmax_loop::<T>(config)
                    .determinism(setting.determinism)
                    .launch(&device, programs, (&x, out, rows as i32, columns as i32))
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
            case_of::<f32>("softmax_loop", 123, 781, 2),
        ];
    }
    vec![
        case::<f32>(4096, 4096),
        case::<f32>(1823, 781),
        case::<f16>(4096, 5000),
        case::<bf16>(4096, 5000),
        case_of::<f32>("softmax_loop", 4096, 4096, 2),
    ]
}

fn main() -> Result<()> {
    exactile_harness::demo::main(&cases(true))
}
