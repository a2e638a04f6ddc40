//! The convolution of images with small windows.

use exactile::prelude::*;
use exactile::{Number, Result};

use crate::setting::{Settable, Setting, check_shape, ensure, extent};
use crate::space;

/// `PIXELS` pixels of a row and `CHANNELS` channels of the result a program: chains of fused multiply-adds over channels
/// and the window, in order.
#[kernel(
    PIXELS = 32, CHANNELS = 16,
    grid = (
        rows * columns.div_ceil(PIXELS),
        outputs.div_ceil(CHANNELS),
        out.len() / (outputs * rows * columns).max(1),
    )
)]
pub fn conv2d<
    T: Float,
    const HEIGHT: usize,
    const WIDTH: usize,
    #[meta(32, 64, 16)] const PIXELS: usize,
    #[meta(16..=32)] const CHANNELS: usize,
>(
    x: Ptr<T>,
    weights: Ptr<T>,
    out: PtrMut<T>,
    inputs: i32,
    outputs: i32,
    rows: i32,
    columns: i32,
) {
    let tiles = (columns + (PIXELS - 1)) / PIXELS;
    let (row, column) = (program_id(0) / tiles, program_id(0) % tiles * PIXELS);
    let pixel = (column + arange(0, PIXELS)).expand(0);
    let channel = (program_id(1) * CHANNELS + arange(0, CHANNELS)).expand(1);
    let mut sum = zeros::<f32>([CHANNELS, PIXELS]);
    for input in range(0, inputs) {
        let image = (program_id(2) * inputs + input) * rows;
        for i in 0..HEIGHT {
            for j in 0..WIDTH {
                let (y, x_at) = (
                    row + i as i64 - HEIGHT as i64 / 2,
                    pixel + j as i64 - WIDTH as i64 / 2,
                );
                let inside = (x_at >= 0) & (x_at < columns) & ((y >= 0) & (y < rows));
                let place = (image + y) * columns + x_at;
                let value = load(x + place).mask(inside).to::<f32>();
                let window = (channel * inputs + input) * (HEIGHT * WIDTH) + (i * WIDTH + j);
                let weight = load(weights + window).mask(channel < outputs).to::<f32>();
                sum = fma(weight, value, sum);
            }
        }
    }
    let place = ((program_id(2) * outputs + channel) * rows + row) * columns + pixel;
    store(out + place, sum.to::<T>()).mask((channel < outputs) & (pixel < columns));
}

/// What is convolved.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Images.
    pub images: usize,
    /// Channels of an image.
    pub inputs: usize,
    /// Channels of the result.
    pub outputs: usize,
    /// Rows and columns of an image.
    pub extents: [usize; 2],
    /// Rows and columns of the window, each odd.
    pub window: [usize; 2],
}

/// `[images, inputs, rows, columns]` with `[outputs, inputs, height, width]`, zeros around the image, in `f32` and
/// rounded once. A setting's `block` is the pixels of a program, `width` its channels.
pub fn launch<T: Float + Number>(
    x: &Buffer<T>,
    weights: &Buffer<T>,
    out: &mut Buffer<T>,
    shape: Shape,
    setting: &Setting,
) -> Result<()> {
    let Shape {
        images,
        inputs,
        outputs,
        extents: [rows, columns],
        window: [height, width],
    } = shape;
    ensure(height % 2 == 1 && width % 2 == 1, || {
        format!("a window of {height} x {width}, expected odd extents")
    })?;
    check_shape(x.len(), &[images, inputs, rows, columns])?;
    check_shape(weights.len(), &[outputs, inputs, height, width])?;
    check_shape(out.len(), &[images, outputs, rows, columns])?;
    let kernel = conv2d::<T>()
        .height(height)
        .width(width)
        .pixels(setting.block_or(32))
        .channels(setting.width_or(16))
        .by(setting);
    let device = out.device().clone();
    let [inputs, outputs, rows, columns] = [inputs, outputs, rows, columns].map(extent);
    let arguments = (x, weights, out, inputs?, outputs?, rows?, columns?);
    kernel.launch(&device, (), arguments)
}

/// What it computes, rounded once.
pub fn reference(x: &[f32], weights: &[f32], shape: Shape) -> Vec<f32> {
    let Shape {
        images,
        inputs,
        outputs,
        extents: [rows, columns],
        window: [height, width],
    } = shape;
    let mut out = Vec::new();
    for at in 0..images * outputs * rows * columns {
        let (image, output) = (
            at / (outputs * rows * columns),
            at / (rows * columns) % outputs,
        );
        let (row, column) = (at / columns % rows, at % columns);
        let mut sum = 0.0;
        for tap in 0..inputs * height * width {
            let (input, i, j) = (tap / (height * width), tap / width % height, tap % width);
            let (y, z) = (
                (row + i).wrapping_sub(height / 2),
                (column + j).wrapping_sub(width / 2),
            );
            if y < rows && z < columns {
                let value = x[((image * inputs + input) * rows + y) * columns + z];
                sum +=
                    f64::from(value) * f64::from(weights[output * inputs * height * width + tap]);
            }
        }
        out.push(sum as f32);
    }
    out
}

/// The settings worth trying.
pub fn space() -> Vec<Setting> {
    let kernel = conv2d::<f32>();
    let [pixels, channels] = ["PIXELS", "CHANNELS"].map(|it| kernel.range_of(it));
    space::space(&pixels, &channels, &[None], |pixels, channels| {
        pixels * channels
    })
}
