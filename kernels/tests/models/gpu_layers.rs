//! Layers of models over three tile sizes, on the CPU and on a GPU where there is one.

use exactile::{Buffer, F8E4M3, Result};
use exactile_kernels::layer_norm::{Inputs, Outputs};
use exactile_kernels::routing::Routes;
use exactile_kernels::{
    add_rms_norm, conv2d, dequantise, gather, histogram, layer_norm, quantise, routing,
    selective_scan, swiglu_backward,
};

use super::super::numbers;
use super::gpu::{given, same};
use super::{sizes, widths};

fn as_floats(numbers: &[i32]) -> Vec<f32> {
    numbers.iter().map(|&number| number as f32).collect()
}

#[test]
fn images_have_the_bits_of_the_cpu() {
    let shape = exactile_kernels::conv2d::Shape {
        images: 2,
        inputs: 3,
        outputs: 5,
        extents: [7, 19],
        window: [3, 5],
    };
    same("conv2d", sizes([8, 16, 64]), |device, setting| {
        let x = given(device, &numbers(2 * 3 * 7 * 19))?;
        let weights = given(device, &numbers(5 * 3 * 15))?;
        let mut out = Buffer::zeros(device, 2 * 5 * 7 * 19)?;
        conv2d(&x, &weights, &mut out, shape, setting)?;
        out.to_vec()
    });
}

#[test]
fn states_have_the_bits_of_the_cpu() {
    let (shape @ [sequences, steps, channels], states) = ([2, 50, 3], 4);
    let count = sequences * steps * channels;
    let magnitudes = |len| -> Vec<f32> { numbers(len).iter().map(|x| x.abs()).collect() };
    let rates: Vec<f32> = magnitudes(channels * states).iter().map(|x| -x).collect();
    same("selective_scan", sizes([4, 16, 64]), |device, setting| {
        let inputs = [
            numbers(count),
            magnitudes(count),
            rates.clone(),
            numbers(sequences * steps * states),
        ];
        let [x, deltas, a, b] = inputs.map(|numbers| given(device, &numbers));
        let b = b?;
        let inputs = exactile_kernels::selective_scan::Inputs {
            x: &x?,
            deltas: &deltas?,
            a: &a?,
            b: &b,
            c: &b,
        };
        let mut out = Buffer::zeros(device, count)?;
        selective_scan(inputs, &mut out, states, shape, setting)?;
        out.to_vec()
    });
}

#[test]
fn rows_of_layers_have_the_bits_of_the_cpu() {
    let shape @ [rows, columns] = [3, 100];
    let x = numbers(rows * columns);
    same("add_rms_norm", sizes([128, 256, 512]), |device, setting| {
        let weight = given(device, &x[..columns])?;
        let (mut kept, mut out) = (given(device, &x)?, Buffer::zeros(device, x.len())?);
        add_rms_norm(
            &given(device, &x)?,
            &mut kept,
            &weight,
            &mut out,
            1e-5,
            shape,
            setting,
        )?;
        Ok([kept.to_vec()?, out.to_vec()?].concat())
    });
    same("layer_norm", sizes([128, 256, 512]), |device, setting| {
        let weight = given(device, &x[..columns])?;
        let mut all = [x.len(), rows, rows].map(|len| Buffer::zeros(device, len).expect("fits"));
        let [out, means, scales] = &mut all;
        let inputs = Inputs {
            x: &given(device, &x)?,
            weight: &weight,
            bias: &weight,
            epsilon: 1e-5,
        };
        layer_norm(inputs, Outputs { out, means, scales }, shape, setting)?;
        let all: Result<Vec<Vec<f32>>> = all.iter().map(Buffer::to_vec).collect();
        Ok(all?.concat())
    });
    same(
        "swiglu_backward",
        sizes([64, 512, 2048]),
        |device, setting| {
            let x = given(device, &x)?;
            let (mut gates, mut values) = (
                Buffer::zeros(device, x.len())?,
                Buffer::zeros(device, x.len())?,
            );
            swiglu_backward([&x, &x, &x], [&mut gates, &mut values], setting)?;
            Ok([gates.to_vec()?, values.to_vec()?].concat())
        },
    );
}

#[test]
fn small_numbers_have_the_bits_of_the_cpu() {
    let shape @ [blocks, block] = [37, 64];
    let x = numbers(blocks * block);
    same("quantise", widths([1, 4, 32]), |device, setting| {
        let given = given(device, &x)?;
        let mut scales = Buffer::<f32>::zeros(device, blocks)?;
        let mut bytes = Buffer::<i8>::zeros(device, x.len())?;
        quantise(&given, &mut bytes, &mut scales, shape, setting)?;
        let bytes: Vec<f32> = bytes.to_vec()?.into_iter().map(f32::from).collect();
        let mut narrow = Buffer::<F8E4M3>::zeros(device, x.len())?;
        quantise(&given, &mut narrow, &mut scales, shape, setting)?;
        let mut again = Buffer::zeros(device, x.len())?;
        dequantise(&narrow, &scales, &mut again, shape, setting)?;
        Ok([bytes, scales.to_vec()?, again.to_vec()?].concat())
    });
}

#[test]
fn choices_have_the_bits_of_the_cpu() {
    let [tokens, columns, chosen] = [37, 12, 2];
    let x = numbers(tokens * columns);
    same("routing", widths([1, 8, 64]), |device, setting| {
        let mut experts = Buffer::zeros(device, tokens * chosen)?;
        let mut shares = Buffer::zeros(device, tokens * chosen)?;
        let mut counts = Buffer::zeros(device, columns)?;
        let routes = Routes {
            experts: &mut experts,
            shares: &mut shares,
            counts: &mut counts,
        };
        routing(
            &given(device, &x)?,
            routes,
            chosen,
            [tokens, columns],
            setting,
        )?;
        let whole = [experts.to_vec()?, counts.to_vec()?].concat();
        Ok([as_floats(&whole), shares.to_vec()?].concat())
    });
    same("gather", sizes([16, 32, 64]), |device, setting| {
        let index: Vec<i64> = (0..444).map(|at| at * 37 % 12).collect();
        let index = Buffer::from_slice(device, &index)?;
        let mut out = Buffer::zeros(device, x.len())?;
        gather(
            &given(device, &x)?,
            &index,
            &mut out,
            [tokens, columns],
            setting,
        )?;
        out.to_vec()
    });
    same("histogram", sizes([256, 1024, 4096]), |device, setting| {
        let x: Vec<i32> = (0..9000).map(|index| index * index % 23 - 3).collect();
        let mut out = Buffer::<i32>::zeros(device, 16)?;
        histogram(&Buffer::from_slice(device, &x)?, &mut out, setting)?;
        Ok(as_floats(&out.to_vec()?))
    });
}
