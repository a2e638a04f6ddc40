//! A step of AdamW: weights, means of gradients and of their squares, in one pass.

use exactile::prelude::*;
use exactile::{Number, Result};

use crate::setting::{Settable, Setting, check_shape, extent};
use crate::space;

/// The numbers of a step.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// How far a step goes.
    pub rate: f32,
    /// How much of the mean of gradients is kept.
    pub keep_mean: f32,
    /// How much of the mean of squares is kept.
    pub keep_square: f32,
    /// What is added to the root of the mean of squares.
    pub epsilon: f32,
    /// The share of a weight that each step takes away, times the rate.
    pub decay: f32,
    /// What gradients are multiplied by first: the inverse of the scale of the loss, or 1.
    pub unscale: f32,
    /// Whether the weights are to raise the function, not to lower it.
    pub ascend: bool,
    /// The number of this step, from 1.
    pub count: i32,
}

/// What a step keeps for the next one.
#[derive(Debug)]
pub struct State<'a> {
    /// The means of gradients.
    pub means: &'a mut Buffer<f32>,
    /// The means of squares.
    pub squares: &'a mut Buffer<f32>,
    /// The greatest means of squares so far, by which a step is divided in place of the last ones (AMSGrad).
    pub greatest: Option<&'a mut Buffer<f32>>,
    /// One number, which is not zero where a gradient of the step is infinite or NaN: such a step changes nothing.
    pub overflow: Option<&'a Buffer<f32>>,
}

/// `BLOCK` weights a program. `scale` and `root_scale` make up for means that began with zero.
#[kernel(BLOCK = 1024, grid = n.div_ceil(BLOCK))]
pub fn adamw<T: Float, #[meta(512..=4096)] const BLOCK: usize>(
    weights: PtrMut<T>,
    gradients: Ptr<T>,
    means: PtrMut<f32>,
    squares: PtrMut<f32>,
    greatest: Option<PtrMut<f32>>,
    overflow: Option<Ptr<f32>>,
    rate: f32,
    keep_mean: f32,
    keep_square: f32,
    epsilon: f32,
    decay: f32,
    scale: f32,
    root_scale: f32,
    unscale: f32,
    ascend: bool,
    n: i32,
) {
    if let Some(overflow) = overflow {
        if load(overflow) != 0.0 {
            return;
        }
    }
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let mask = at < n;
    let gradient = load(gradients + at).mask(mask).to::<f32>() * unscale;
    let gradient = select(ascend, -gradient, gradient);
    let weight = load(weights + at).mask(mask).to::<f32>() * (1.0 - rate * decay);
    let mean = load(means + at).mask(mask) * keep_mean + gradient * (1.0 - keep_mean);
    let square = load(squares + at).mask(mask) * keep_square;
    let square = square + gradient * gradient * (1.0 - keep_square);
    let mut divisor = square;
    if let Some(greatest) = greatest {
        divisor = maximum(load(greatest + at).mask(mask), square);
        store(greatest + at, divisor).mask(mask);
    }
    let step = rate * (mean * scale) / (sqrt(divisor) * root_scale + epsilon);
    store(weights + at, (weight - step).to::<T>()).mask(mask);
    store(means + at, mean).mask(mask);
    store(squares + at, square).mask(mask);
}

impl Step {
    /// What means of gradients, and roots of means of squares, are multiplied by.
    fn scales(&self) -> [f32; 2] {
        let left = |keep: f32| 1.0 - f64::from(keep).powi(self.count);
        [
            (1.0 / left(self.keep_mean)) as f32,
            (1.0 / left(self.keep_square)).sqrt() as f32,
        ]
    }
}

/// A step of all weights, in `f32`. A setting's `block` is the weights of a program.
///
/// # Errors
/// Buffers of other lengths than the weights, and what a launch refuses.
pub fn launch<T: Float + Number>(
    weights: &mut Buffer<T>,
    gradients: &Buffer<T>,
    state: State<'_>,
    step: Step,
    setting: &Setting,
) -> Result<()> {
    let n = weights.len();
    let greatest = state.greatest.as_ref().map_or(n, |greatest| greatest.len());
    for len in [
        gradients.len(),
        state.means.len(),
        state.squares.len(),
        greatest,
    ] {
        check_shape(len, &[n])?;
    }
    if let Some(overflow) = state.overflow {
        check_shape(overflow.len(), &[1])?;
    }
    let kernel = adamw::<T>().block(setting.block_or(1024)).by(setting);
    let device = weights.device().clone();
    let ([scale, root_scale], n) = (step.scales(), extent(n)?);
    let arguments = (
        weights,
        gradients,
        state.means,
        state.squares,
        state.greatest,
        state.overflow,
        step.rate,
        step.keep_mean,
        step.keep_square,
        step.epsilon,
        step.decay,
        scale,
        root_scale,
        step.unscale,
        step.ascend,
        n,
    );
    kernel.launch(&device, (), arguments)
}

/// A weight after a step, with its mean, its mean of squares and the greatest one. The last is what the step is divided
/// by where `greatest` is given.
pub fn reference(
    weight: f32,
    gradient: f32,
    [mean, square]: [f32; 2],
    greatest: Option<f32>,
    step: Step,
) -> [f32; 4] {
    let [mean, square] = [mean, square].map(f64::from);
    let sign = if step.ascend { -1.0 } else { 1.0 };
    let gradient = sign * f64::from(gradient) * f64::from(step.unscale);
    let [keep, keep_square] = [step.keep_mean, step.keep_square].map(f64::from);
    let mean = mean * keep + gradient * (1.0 - keep);
    let square = square * keep_square + gradient * gradient * (1.0 - keep_square);
    let divisor = greatest.map_or(square, |greatest| square.max(f64::from(greatest)));
    let hat = mean / (1.0 - keep.powi(step.count));
    let root = (divisor / (1.0 - keep_square.powi(step.count))).sqrt();
    let [rate, decay, epsilon] = [step.rate, step.decay, step.epsilon].map(f64::from);
    let weight = f64::from(weight) * (1.0 - rate * decay) - rate * hat / (root + epsilon);
    [weight, mean, square, divisor].map(|number| number as f32)
}

/// The settings worth trying.
pub fn space() -> Vec<Setting> {
    let blocks = adamw::<f32>().range_of("BLOCK");
    space::space(&blocks, &[0], &[None], |block, _| block)
}
