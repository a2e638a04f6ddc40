//! Layer normalisation of each row, with weight and bias; the means and the reciprocals of the
//! standard deviations are kept, as training needs them.

use exactile::prelude::*;
use exactile::{Number, Result};
use exactile_harness::demo::{Case, problem, random};

/// `BLOCK` is the next power of two of the number of columns.
#[kernel]
pub(crate) fn layer_norm<T: Float, const BLOCK: usize>(
    x: Ptr<T>,
    weight: Ptr<T>,
    bias: Ptr<T>,
    out: PtrMut<T>,
    means: PtrMut<f32>,
    scales: PtrMut<f32>,
    columns: i32,
    epsilon: f32,
) {
    let offsets = arange(0, BLOCK);
    let mask = offsets < columns;
    let row_index = program_id(0);
    let start = row_index * columns;
    let count = columns.to::<f32>();
    let row = load(x + start + offsets).mask(mask).to::<f32>();
    let mean = row.sum(0) / count;
    store(means + row_index, mean);
    let centred = select(mask, row - mean, 0.0);
    let variance = (centred * centred).sum(0) / count;
    let scale = rsqrt(variance + epsilon);
    let normal = centred * scale;
    store(scales + row_index, scale);
    let weight = load(weight + offsets).mask(mask).to::<f32>();
    let bias = load(bias + offsets).mask(mask).to::<f32>();
    store(out + start + offsets, (normal * weight + bias).to::<T>()).mask(mask);
}

/// The same by a grid of any size: each program takes a row, then one as far away as there are
/// programs. Weight and bias are loaded once, the next rows while one is worked on.
#[kernel]
pub(crate) fn layer_norm_loop<T: Float, const BLOCK: usize>(
    x: Ptr<T>,
    weight: Ptr<T>,
    bias: Ptr<T>,
    out: PtrMut<T>,
    means: PtrMut<f32>,
    scales: PtrMut<f32>,
    rows: i32,
    columns: i32,
    epsilon: f32,
) {
    let offsets = arange(0, BLOCK);
    let mask = offsets < columns;
    let count = columns.to::<f32>();
    let weight = load(weight + offsets).mask(mask).to::<f32>();
    let bias = load(bias + offsets).mask(mask).to::<f32>();
    let mine = range(program_id(0), rows).step(num_programs(0));
    for row_index in mine.stages(2) {
        let start = row_index * columns;
        let row = load(x + start + offsets).mask(mask).to::<f32>();
        let mean = row.sum(0) / count;
        let centred = select(mask, row - mean, 0.0);
        let variance = (centred * centred).sum(0) / count;
        let scale = rsqrt(variance + epsilon);
        let normal = centred * scale;
        store(means + row_index, mean);
        store(scales + row_index, scale);
        store(out + start + offsets, (normal * weight + bias).to::<T>()).mask(mask);
    }
}

/// With `width` 0 a program for each row, else `width` for each multiprocessor.
pub(crate) fn case<T: Float + Number>(rows: usize, columns: usize) -> Case {
    case_of::<T>("layer_norm", rows, columns, 0)
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
        bytes: ((2 * rows * columns + 2 * columns) * size_of::<T>() + 8 * rows) as u64,
        flops: (8 * rows * columns) as u64,
        blocks: vec![block, 2 * block, 4 * block],
        elements: |block| block,
        setup: Box::new(move |device| {
            let x = Buffer::from_slice(device, &random::<T>(4, rows * columns))?;
            let weight = Buffer::from_slice(device, &random::<T>(5, columns))?;
            let bias = Buffer::from_slice(device, &random::<T>(6, columns))?;
            let device = device.clone();
            let out = Buffer::<T>::zeros(&device, rows * columns)?;
            let means = Buffer::<f32>::zeros(&device, rows)?;
            let scales = Buffer::<f32>::zeros(&device, rows)?;
            let outputs = (out, means, scales);
            Ok(problem(outputs, move |(out, means, scales), setting| {
                let (block, schedule) = (setting.block, setting.schedule());
                let count = columns as i32;
                let width = match setting.width {
                    0 => programs,
                    width => width,
                };
                if width == 0 {
                    let config = layer_norm::Config::new(block).scheduled(schedule);
                    let arguments = (&x, &weight, &bias, out, means, scales, count, 1e-5);
                    return layer_norm::<T>(config)
                        .determinism(setting.determinism)
                        .launch(&device, rows, arguments);
                }
                let config = layer_norm_loop::Config::new(block).scheduled(schedule);
                let programs = rows.min(width * device.multiprocessors());
                let rows = rows as i32;
                let arguments = (&x, &weight, &bias, out, means, scales, rows, count, 1e-5);
                layer_norm_loop::<T>(config)
                    .determinism(setting.determinism)
                    .launch(&device, programs, arguments)
            }))
        }),
    }
}

/// What the demo runs; `quick` takes small inputs.
pub(crate) fn cases(quick: bool) -> Vec<Case> {
    if quick {
        return vec![
            case::<f32>(57, 1000),
            case::<f16>(19, 768),
            case_of::<f16>("layer_norm_loop", 57, 768, 2),
        ];
    }
    vec![
        case::<f32>(4096, 3000),
        case::<bf16>(4096, 4096),
        case_of::<bf16>("layer_norm_loop", 4096, 4096, 2),
    ]
}

fn main() -> Result<()> {
    exactile_harness::demo::main(&cases(true))
}
