//! Gradients against plain Rust.

use exactile::Result;
use exactile_kernels::adamw::{self, State, Step};
use exactile_kernels::group_norm::Affine;
use exactile_kernels::layer_norm_backward::{self, Gradients, Inputs};
use exactile_kernels::{Setting, batch_moments, batch_norm};

use super::super::{assert_close, buffer, numbers, run, zeros};
use super::{keep, sizes};

#[test]
fn normalisations_have_gradients() {
    let shape @ [rows, columns] = [37, 100];
    let (x, gradient, weight) = (numbers(3700), numbers(3800), numbers(300));
    let (gradient, weight) = (&gradient[100..], &weight[200..]);
    let (means, scales): (Vec<f32>, Vec<f32>) = x
        .chunks(columns)
        .map(|row| {
            let mean = row.iter().sum::<f32>() / columns as f32;
            let squares = row.iter().map(|x| (x - mean).powi(2));
            let variance = squares.sum::<f32>() / columns as f32;
            (mean, 1.0 / variance.sqrt())
        })
        .unzip();
    let given = [&x[..], weight, gradient, &means, &scales].map(buffer);
    let (mut weights, mut biases) = (Vec::new(), Vec::new());
    let got = run(&sizes([4, 32, 64]), rows * columns, |out, setting| {
        let [x, weight, gradient, means, scales] = &given;
        let inputs = Inputs {
            x,
            weight,
            gradient,
            means,
            scales,
        };
        let (mut weight_sums, mut bias_sums) = (zeros(columns), zeros(columns));
        let gradients = Gradients {
            x: out,
            weight: &mut weight_sums,
            bias: &mut bias_sums,
        };
        exactile_kernels::layer_norm_backward(inputs, gradients, shape, setting)?;
        keep(&mut weights, &weight_sums);
        keep(&mut biases, &bias_sums);
        Ok(())
    });
    let want = layer_norm_backward::reference([&x, weight, gradient], [&means, &scales]);
    for (got, want) in [got, weights, biases].iter().zip(&want) {
        assert_close(got, want);
    }
}

/// The numbers of a step that all tests take.
const STEP: Step = Step {
    rate: 0.01,
    keep_mean: 0.9,
    keep_square: 0.99,
    epsilon: 1e-8,
    decay: 0.1,
    unscale: 1.0,
    ascend: false,
    count: 3,
};

/// A step of 2000 weights: with the greatest means of squares or without, and with a gradient that is no number or
/// without. The last is each weight, its mean, its mean of squares and the greatest one, as plain Rust has them.
fn step_of_weights(step: Step, with_greatest: bool, overflows: bool) {
    let n = 2000;
    let (weight, gradient) = (numbers(n), &numbers(n + 30)[30..]);
    let mean = &numbers(n + 60)[60..];
    let squared = |from: usize| -> Vec<f32> {
        let all = numbers(n + from);
        all[from..].iter().map(|x| x * x).collect()
    };
    let (square, most) = (squared(90), squared(120));
    let (gradients, overflow) = (buffer(gradient), buffer(&[f32::from(u8::from(overflows))]));
    let mut kept = [const { Vec::new() }; 3];
    let got = run(&sizes([64, 1024, 4096]), n, |out, setting| {
        out.copy_from_slice(&weight)?;
        let [mut means, mut squares, mut greatest] = [mean, &square, &most].map(buffer);
        let state = State {
            means: &mut means,
            squares: &mut squares,
            greatest: with_greatest.then_some(&mut greatest),
            overflow: Some(&overflow),
        };
        exactile_kernels::adamw(out, &gradients, state, step, setting)?;
        for (kept, got) in kept.iter_mut().zip([&means, &squares, &greatest]) {
            keep(kept, got);
        }
        Ok(())
    });
    for at in 0..n {
        let old = [weight[at], mean[at], square[at], most[at]];
        let greatest = with_greatest.then_some(most[at]);
        let moments = [mean[at], square[at]];
        let mut want = adamw::reference(weight[at], gradient[at], moments, greatest, step);
        if overflows {
            want = old;
        } else if !with_greatest {
            want[3] = most[at];
        }
        assert_close(&[got[at], kept[0][at], kept[1][at], kept[2][at]], &want);
    }
}

#[test]
fn weights_take_a_step() {
    step_of_weights(STEP, false, false);
    let unscaled = Step {
        unscale: 1.0 / 1024.0,
        ascend: true,
        ..STEP
    };
    step_of_weights(unscaled, true, false);
    step_of_weights(STEP, true, true);
}

#[test]
fn batches_are_normalised() -> Result<()> {
    let shape @ [rows, channels] = [100, 40];
    let x = numbers(rows * channels);
    let (weight, bias) = (numbers(channels), numbers(2 * channels));
    let (given, weights, biases) = (buffer(&x), buffer(&weight), buffer(&bias[channels..]));
    let (mut means, mut variances) = (zeros(channels), zeros(channels));
    let moments = [&mut means, &mut variances];
    let [mean, variance] = moments;
    batch_moments(&given, mean, variance, shape, &Setting::default())?;
    let got = run(&sizes([4, 32, 128]), x.len(), |out, setting| {
        let affine = Affine {
            weight: &weights,
            bias: &biases,
        };
        let moments = [&means, &variances];
        batch_norm(&given, moments, affine, out, (shape, 1e-5), setting)
    });
    for column in 0..channels {
        let own = |from: &[f32]| -> Vec<f32> {
            from.iter()
                .skip(column)
                .step_by(channels)
                .copied()
                .collect()
        };
        let (mean, variance) = exactile_kernels::group_norm::reference(&own(&x));
        let normal = |&x: &f32| {
            let normal = (f64::from(x) - mean) / (variance + 1e-5).sqrt();
            normal as f32 * weight[column] + bias[channels + column]
        };
        let want: Vec<f32> = own(&x).iter().map(normal).collect();
        assert_close(&own(&got), &want);
    }
    Ok(())
}
