//! Kernels of several steps: attention in `f32`, a convolution, a network of comparisons. Compilers take long for them.

use exactile::prelude::*;
use exactile::{DType, Result};
use exactile_kernels::Setting;

use crate::demo::{Case, problem, random};

/// Features of a key.
const FEATURES: usize = 64;

/// Attention of one head, `KEYS` keys at a time, with the greatest score and the sum of weights so far, which depend on
/// that number.
#[kernel(order = "tile")]
fn attention<const QUERIES: usize, const KEYS: usize, const DEPTH: usize>(
    q: Ptr<f32>,
    k: Ptr<f32>,
    v: Ptr<f32>,
    out: PtrMut<f32>,
    n: i32,
) {
    let (rows, depth) = (
        program_id(0) * QUERIES + arange(0, QUERIES),
        arange(0, DEPTH),
    );
    let places = rows.expand(1) * DEPTH + depth.expand(0);
    let inside = rows.expand(1) < n;
    let queries = load(q + places).mask(inside).other(0.0);
    let mut greatest = full::<f32>([QUERIES], f64::NEG_INFINITY);
    let mut sum = zeros::<f32>([QUERIES]);
    let mut mean = zeros::<f32>([QUERIES, DEPTH]);
    for first in range(0, n).step(KEYS) {
        let columns = first + arange(0, KEYS);
        let keys = load(k + columns.expand(0) * DEPTH + depth.expand(1))
            .mask(columns.expand(0) < n)
            .other(0.0);
        let scores = dot(queries, keys, zeros::<f32>([QUERIES, KEYS])) * 0.125;
        let scores = select(columns.expand(0) < n, scores, f64::NEG_INFINITY);
        let next = maximum(greatest, scores.max(1));
        let weights = exp(scores - next.expand(1));
        let kept = exp(greatest - next);
        sum = sum * kept + weights.sum(1);
        let values = load(v + columns.expand(1) * DEPTH + depth.expand(0))
            .mask(columns.expand(1) < n)
            .other(0.0);
        mean = dot(weights, values, mean * kept.expand(1));
        greatest = next;
    }
    store(out + places, mean / sum.expand(1)).mask(inside);
}

pub(super) fn flash_attention(n: usize) -> Case {
    Case {
        kernel: "attention",
        dtype: DType::F32,
        shape: vec![n, FEATURES],
        bytes: (4 * n * FEATURES * size_of::<f32>()) as u64,
        flops: (4 * n * n * FEATURES) as u64,
        blocks: vec![64, 32],
        elements: |block| 64 * block,
        setup: Box::new(move |device| {
            let input = |seed| Buffer::from_slice(device, &random::<f32>(seed, n * FEATURES));
            let (q, k, v) = (input(1)?, input(2)?, input(3)?);
            let out = Buffer::<f32>::zeros(device, n * FEATURES)?;
            let device = device.clone();
            Ok(problem(out, move |out, setting| {
                let kernel = attention()
                    .queries(setting.block)
                    .keys(64)
                    .depth(FEATURES)
                    .schedule(setting.schedule);
                let programs = n.div_ceil(setting.block);
                kernel.determinism(setting.determinism).launch(
                    &device,
                    programs,
                    (&q, &k, &v, out, n as i32),
                )
            }))
        }),
    }
}

/// A convolution by 3 x 3 filters as a product of matrices that are never stored: images `[batch, height,
/// width, channels]`, filters `[3, 3, channels, filters]`, zeros around the images.
#[kernel]
fn convolution<const BM: usize, const BN: usize, const BK: usize>(
    x: Ptr<f32>,
    w: Ptr<f32>,
    out: PtrMut<f32>,
    pixels: i32,
    height: i32,
    width: i32,
    channels: i32,
    filters: i32,
) {
    let pixel = program_id(0) * BM + arange(0, BM);
    let (image, row) = (pixel / width / height, pixel / width % height);
    let column = pixel % width;
    let filter = program_id(1) * BN + arange(0, BN);
    let mut acc = zeros::<f32>([BM, BN]);
    for k0 in range(0, channels * 9).step(BK) {
        let rk = k0 + arange(0, BK);
        let (tap, channel) = (rk / channels, rk % channels);
        let y = row.expand(1) + (tap / 3).expand(0) - 1;
        let z = column.expand(1) + (tap % 3).expand(0) - 1;
        let inside = (y >= 0) & (y < height) & (z >= 0) & (z < width);
        let known = (pixel.expand(1) < pixels) & (tap.expand(0) < 9);
        let places = ((image.expand(1) * height + y) * width + z) * channels + channel.expand(0);
        let ta = load(x + places).mask(inside & known).other(0.0);
        let tb = load(w + rk.expand(1) * filters + filter.expand(0))
            .mask((tap.expand(1) < 9) & (filter.expand(0) < filters))
            .other(0.0);
        acc = dot(ta, tb, acc);
    }
    store(out + pixel.expand(1) * filters + filter.expand(0), acc)
        .mask((pixel.expand(1) < pixels) & (filter.expand(0) < filters));
}

/// `shape` is the batch, both extents of an image, its channels and the filters.
pub(super) fn conv2d(shape @ [batch, height, width, channels, filters]: [usize; 5]) -> Case {
    let pixels = batch * height * width;
    let (input, weights, output) = (pixels * channels, 9 * channels * filters, pixels * filters);
    Case {
        kernel: "conv2d",
        dtype: DType::F32,
        shape: shape.to_vec(),
        bytes: ((input + weights + output) * size_of::<f32>()) as u64,
        flops: (2 * pixels * weights) as u64,
        blocks: vec![64, 32],
        elements: |block| block * block,
        setup: Box::new(move |device| {
            let x = Buffer::from_slice(device, &random::<f32>(1, input))?;
            let w = Buffer::from_slice(device, &random::<f32>(2, weights))?;
            let out = Buffer::<f32>::zeros(device, output)?;
            let device = device.clone();
            Ok(problem(out, move |out, setting: &Setting| {
                let block = setting.block;
                let kernel = convolution()
                    .bm(block)
                    .bn(block)
                    .bk(32)
                    .schedule(setting.schedule);
                let grid = (pixels.div_ceil(block), filters.div_ceil(block));
                let [height, width, channels] = [height, width, channels].map(|it| it as i32);
                let extents = (pixels as i32, height, width, channels, filters as i32);
                let (pixels, height, width, channels, filters) = extents;
                kernel.determinism(setting.determinism).launch(
                    &device,
                    grid,
                    (&x, &w, out, pixels, height, width, channels, filters),
                )
            }))
        }),
    }
}

/// Sorts each row of `BLOCK` numbers by comparing every element with a partner, looked up by its index.
#[kernel]
fn network<const BLOCK: usize>(x: Ptr<f32>, out: PtrMut<f32>) {
    let index = arange(0, BLOCK);
    let places = program_id(0) * BLOCK + index;
    let mut row = load(x + places);
    for stage in 0..BLOCK.ilog2() {
        for step in 0..stage + 1 {
            let (size, distance) = (2 << stage, 1 << (stage - step));
            let other = gather(row, index ^ distance, 0);
            let upward = (index & size) == 0;
            let first = (index & distance) == 0;
            row = select(upward == first, minimum(row, other), maximum(row, other));
        }
    }
    store(out + places, row);
}

pub(super) fn bitonic(rows: usize, columns: usize) -> Case {
    let n = rows * columns;
    Case {
        kernel: "bitonic",
        dtype: DType::F32,
        shape: vec![rows, columns],
        bytes: (2 * n * size_of::<f32>()) as u64,
        flops: 0,
        blocks: vec![columns],
        elements: |block| block,
        setup: Box::new(move |device| {
            let x = Buffer::from_slice(device, &random::<f32>(1, n))?;
            let out = Buffer::<f32>::zeros(device, n)?;
            let device = device.clone();
            Ok(problem(out, move |out, setting: &Setting| -> Result<()> {
                let kernel = network().block(columns).schedule(setting.schedule);
                let kernel = kernel.determinism(setting.determinism);
                kernel.launch(&device, rows, (&x, out))
            }))
        }),
    }
}
