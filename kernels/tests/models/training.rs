//! Gradients against plain Rust.

use exactile::{Buffer, Device, Error, Result, assert_bits_equal};
use exactile_kernels::adamw::{self, State, Step};
use exactile_kernels::group_norm::Affine;
use exactile_kernels::layer_norm_backward::{self, Gradients, Inputs};
use exactile_kernels::segment_sum::{self, Segments, places_reference};
use exactile_kernels::{Setting, batch_moments, batch_norm, embedding_backward};

use super::super::{assert_close, buffer, numbers, run, zeros};
use super::{devices, integers, keep, read, sizes};

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

/// Many numbers, some of them often, some never: sorted on the device they give the bits that sorting on the host gives.
#[test]
fn gradients_of_tables_are_sorted_on_the_device() -> Result<()> {
    let [rows, columns] = [700, 3];
    let indices: Vec<i32> = (0..1100i32)
        .map(|at| at * at % 641 + if at % 3 == 0 { 50 } else { 0 })
        .collect();
    let gradients = numbers(indices.len() * columns);
    let [starts, members] = places_reference(&indices, rows);
    let mut want = zeros(rows * columns);
    let segments = Segments {
        starts: &integers(&starts),
        members: &integers(&members),
        weights: None,
    };
    let setting = Setting::default();
    exactile_kernels::segment_sum(&buffer(&gradients), segments, &mut want, columns, &setting)?;
    let want = read(&want);
    assert_close(
        &want,
        &segment_sum::reference(&gradients, &starts, &members, None, columns),
    );
    for device in devices() {
        let (given, keys) = (
            Buffer::from_slice(&device, &gradients)?,
            Buffer::from_slice(&device, &indices)?,
        );
        let mut out = Buffer::zeros(&device, rows * columns)?;
        embedding_backward(&given, &keys, &mut out, [rows, columns], &setting)?;
        assert_bits_equal(&read(&out), &want);
    }
    Ok(())
}

#[test]
fn indices_beyond_a_table_are_told() -> Result<()> {
    let device = Device::cpu();
    for wrong in [-1, 4] {
        let gradients = Buffer::from_slice(&device, &numbers(6))?;
        let indices = Buffer::from_slice(&device, &[0, wrong, 3])?;
        let mut out = Buffer::zeros(&device, 8)?;
        embedding_backward(&gradients, &indices, &mut out, [4, 2], &Setting::default())?;
        let told = device.synchronize();
        assert!(
            matches!(told, Err(Error::Assertion { .. })),
            "{wrong}: {told:?}"
        );
    }
    // No index at all: every gradient is zero.
    let (gradients, indices) = (zeros(0), integers(&[]));
    let mut out = buffer(&numbers(8));
    embedding_backward(&gradients, &indices, &mut out, [4, 2], &Setting::default())?;
    assert_eq!(read(&out), [0.0; 8]);
    Ok(())
}
