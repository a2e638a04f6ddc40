//! A step of AdamW: weights, means of gradients and of their squares, in one pass.

use exactile::prelude::*;
use exactile::{Number, Result};

use crate::setting::{Setting, check_shape, extent};
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
    /// The number of this step, from 1.
    pub count: i32,
}

/// `BLOCK` weights a program. `scale` and `root_scale` make up for means that began with zero.
#[kernel(BLOCK = 1024)]
pub fn adamw<T: Float, const BLOCK: usize>(
    weights: PtrMut<T>,
    gradients: Ptr<T>,
    means: PtrMut<f32>,
    squares: PtrMut<f32>,
    rate: f32,
    keep_mean: f32,
    keep_square: f32,
    epsilon: f32,
    decay: f32,
    scale: f32,
    root_scale: f32,
    n: i32,
) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let mask = at < n;
    let gradient = load(gradients + at).mask(mask).to::<f32>();
    let weight = load(weights + at).mask(mask).to::<f32>() * (1.0 - rate * decay);
    let mean = load(means + at).mask(mask) * keep_mean + gradient * (1.0 - keep_mean);
    let square = load(squares + at).mask(mask) * keep_square;
    let square = square + gradient * gradient * (1.0 - keep_square);
    let step = rate * (mean * scale) / (sqrt(square) * root_scale + epsilon);
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
pub fn launch<T: Float + Number>(
    weights: &mut Buffer<T>,
    gradients: &Buffer<T>,
    [means, squares]: [&mut Buffer<f32>; 2],
    step: Step,
    setting: &Setting,
) -> Result<()> {
    let n = weights.len();
    for len in [gradients.len(), means.len(), squares.len()] {
        check_shape(len, &[n])?;
    }
    let config = adamw::Config {
        block: setting.block_or(1024),
        ..adamw::Config::new()
    }
    .scheduled(setting.schedule);
    let (device, programs) = (weights.device().clone(), n.div_ceil(config.block));
    let Step {
        rate,
        keep_mean,
        keep_square,
        epsilon,
        decay,
        ..
    } = step;
    let ([scale, root_scale], n) = (step.scales(), extent(n)?);
    adamw::<T>(config).determinism(setting.determinism).launch(
        &device,
        programs,
        (
            weights,
            gradients,
            means,
            squares,
            rate,
            keep_mean,
            keep_square,
            epsilon,
            decay,
            scale,
            root_scale,
            n,
        ),
    )
}

/// A weight after a step, with its means.
pub fn reference(weight: f32, gradient: f32, means: [f32; 2], step: Step) -> [f32; 3] {
    let [gradient, mean, square] = [gradient, means[0], means[1]].map(f64::from);
    let [keep, keep_square] = [step.keep_mean, step.keep_square].map(f64::from);
    let mean = mean * keep + gradient * (1.0 - keep);
    let square = square * keep_square + gradient * gradient * (1.0 - keep_square);
    let hat = mean / (1.0 - keep.powi(step.count));
    let root = (square / (1.0 - keep_square.powi(step.count))).sqrt();
    let [rate, decay, epsilon] = [step.rate, step.decay, step.epsilon].map(f64::from);
    let weight = f64::from(weight) * (1.0 - rate * decay) - rate * hat / (root + epsilon);
    [weight as f32, mean as f32, square as f32]
}

/// The settings worth trying.
pub fn space() -> Vec<Setting> {
    let blocks = [512, 1024, 2048, 4096];
    space::space(&blocks, &[0], &[None], |block, _| block)
}
