//! Gradients against plain Rust.

use exactile_kernels::layer_norm_backward::{self, Gradients, Inputs};

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
