//! Each kernel against what it computes in plain Rust, and every setting against the first one.

mod models;

use std::time::Duration;

use exactile::autotune::{Tune, Tuner};
use exactile::{
    Array, Buffer, Configure, Device, Result, Tolerance, assert_bits_equal, compare_within,
};
use exactile_kernels::layer_norm::{Inputs, Outputs};
use exactile_kernels::{
    Setting, activation, cumsum, gather, histogram, layer_norm, matmul, mean, softmax, sort, sum,
    swiglu, topk, topk_with_indices, tree, vector_add,
};

/// Settings of a space that are tried: each is compiled.
const TRIED: usize = 3;

/// Numbers whose sums betray their order.
fn numbers(len: usize) -> Vec<f32> {
    let random = |index: usize| {
        let bits = (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (bits >> 40) as f32 / (1u32 << 23) as f32 - 1.0
    };
    (0..len).map(random).collect()
}

fn buffer(numbers: &[f32]) -> Buffer<f32> {
    Buffer::from_slice(&Device::cpu(), numbers).expect("fits")
}

fn zeros(len: usize) -> Buffer<f32> {
    buffer(&vec![0.0; len])
}

/// The results without a setting, which all settings tried must repeat, and the code of a GPU under its interpreter.
fn run(
    space: &[Setting],
    len: usize,
    mut launch: impl FnMut(&mut Buffer<f32>, &Setting) -> Result<()>,
) -> Vec<f32> {
    let mut out = zeros(len);
    launch(&mut out, &Setting::default()).expect("runs");
    let golden = out.to_vec().expect("is read");
    for setting in space.iter().take(TRIED) {
        out.spoil().expect("is written");
        launch(&mut out, setting).unwrap_or_else(|error| panic!("{setting:?}: {error}"));
        assert_bits_equal(&out.to_vec().expect("is read"), &golden);
    }
    // The devices of the host share its memory, so the inputs may stay where they are.
    let mut lanes = Buffer::<f32>::zeros(&Device::lanes(), len).expect("fits");
    for setting in [&Setting::default()].into_iter().chain(space.first()) {
        lanes.spoil().expect("is written");
        launch(&mut lanes, setting).unwrap_or_else(|error| panic!("lanes, {setting:?}: {error}"));
        assert_bits_equal(&lanes.to_vec().expect("is read"), &golden);
    }
    golden
}

fn assert_close(got: &[f32], want: &[f32]) {
    let array = |numbers: &[f32]| Array::from_slice([numbers.len()], numbers).expect("fits");
    let tolerance = Tolerance::standard(exactile::DType::F32);
    let comparison = compare_within(&array(got), &array(want), tolerance).expect("alike");
    assert!(comparison.within_tolerance(), "{comparison}");
}

/// A ready kernel is tuned over the numbers that it states, of which the settings for `exactile tune` are made as well.
#[test]
fn ready_kernels_are_tuned_over_what_they_state() {
    let kernel = vector_add::vector_add::<f32>();
    let blocks = kernel.range_of("BLOCK");
    assert_eq!(blocks, [512, 1024, 2048, 4096, 8192]);
    let space = vector_add::space();
    assert!(space.iter().all(|it| blocks.contains(&it.block)));
    let (x, y, mut out) = (buffer(&numbers(3000)), buffer(&numbers(3000)), zeros(3000));
    let tuner = Tuner::forgetful().budget(Duration::from_millis(200));
    let arguments = (&x, &y, &mut out, 3000);
    let tuned = kernel.tune_by(&tuner, &Device::cpu(), (), arguments);
    let tuned = tuned.expect("is tuned").tuned;
    let tried = tuned.trials.iter().map(|(config, _)| config.block);
    let mut tried: Vec<usize> = tried.collect();
    tried.sort_unstable();
    assert_eq!(tried, blocks);
    let sums = numbers(3000).into_iter().map(|x| x + x);
    assert_bits_equal(&out.to_vec().expect("is read"), &sums.collect::<Vec<f32>>());
    let product = exactile_kernels::linear::linear::<f32>();
    let [rows, columns] = ["BM", "BN"].map(|it| product.range_of(it));
    for setting in exactile_kernels::linear::space() {
        assert!(rows.contains(&setting.block) && columns.contains(&setting.width));
    }
    assert!(product.range_of("FUNCTION").is_empty() && product.range_of("BK").is_empty());
}

#[test]
fn vectors_are_added() {
    let (x, y) = (numbers(3000), numbers(4000));
    let y = &y[1000..];
    let (x_buffer, y_buffer) = (buffer(&x), buffer(y));
    let got = run(&vector_add::space(), 3000, |out, setting| {
        vector_add(&x_buffer, &y_buffer, out, setting)
    });
    assert_bits_equal(&got, &vector_add::reference(&x, y));
}

#[test]
fn activations_are_near_their_functions() {
    let (x, gate) = (numbers(3000), numbers(4000));
    let gate = &gate[1000..];
    let (input, gate_buffer) = (buffer(&x), buffer(gate));
    for function in activation::Activation::ALL {
        let got = run(&activation::space(), 3000, |out, setting| {
            exactile_kernels::activation(function, &input, out, setting)
        });
        assert_close(&got, &activation::reference(function, &x));
    }
    let got = run(&activation::space(), 3000, |out, setting| {
        swiglu(&gate_buffer, &input, out, setting)
    });
    assert_close(&got, &activation::swiglu_reference(gate, &x));
}

#[test]
fn rows_become_shares() {
    for shape in [[5, 300], [9, 7]] {
        let x = numbers(shape[0] * shape[1]);
        let input = buffer(&x);
        let got = run(&softmax::space(shape), x.len(), |out, setting| {
            softmax(&input, out, shape, setting)
        });
        assert_close(&got, &softmax::reference(&x, shape[1]));
    }
}

#[test]
fn a_loop_over_rows_has_the_bits_of_a_program_for_each() {
    let shape = [5, 300];
    let input = buffer(&numbers(1500));
    let looped = Setting {
        width: 2,
        ..Setting::default()
    };
    run(&[looped], 1500, |out, setting| {
        softmax(&input, out, shape, setting)
    });
}

#[test]
fn rows_are_normalised() {
    let [rows, columns] = [4, 300];
    let (x, weight, bias) = (numbers(rows * columns), numbers(400), numbers(600));
    let (weight, bias) = (&weight[100..], &bias[300..]);
    let (x_buffer, weight_buffer, bias_buffer) = (buffer(&x), buffer(weight), buffer(bias));
    let (mut means, mut scales) = (zeros(rows), zeros(rows));
    let got = run(
        &layer_norm::space([rows, columns]),
        x.len(),
        |out, setting| {
            let inputs = Inputs {
                x: &x_buffer,
                weight: &weight_buffer,
                bias: &bias_buffer,
                epsilon: 1e-5,
            };
            let outputs = Outputs {
                out,
                means: &mut means,
                scales: &mut scales,
            };
            layer_norm(inputs, outputs, [rows, columns], setting)
        },
    );
    let (means, scales) = (
        means.to_vec().expect("is read"),
        scales.to_vec().expect("is read"),
    );
    for (row, x) in x.chunks(columns).enumerate() {
        let (out, mean, scale) = layer_norm::reference(x, weight, bias, 1e-5);
        assert_close(&got[row * columns..][..columns], &out);
        assert_close(&[means[row], scales[row]], &[mean, scale]);
    }
}

#[test]
fn sums_have_the_bits_of_the_tree() {
    let [rows, columns] = [5000, 37];
    let shape = [rows, columns];
    let x = numbers(rows * columns);
    let input = buffer(&x);
    let got = run(&sum::rows_space(shape), rows, |out, setting| {
        sum::rows(&input, out, shape, setting)
    });
    assert_bits_equal(&got, &sum::rows_reference(&x, columns));
    let mut parts = zeros(sum::column_parts(shape));
    let got = run(&sum::columns_space(), columns, |out, setting| {
        sum::columns(&input, &mut parts, out, shape, setting)
    });
    assert_bits_equal(&got, &sum::columns_reference(&x, columns));
    let mut parts = zeros(sum::all_parts(x.len()));
    let got = run(&sum::all_space(), 1, |out, setting| {
        sum::all(&input, &mut parts, out, setting)
    });
    assert_bits_equal(&got, &[tree::sum(&x)]);
}

#[test]
fn means_and_prefixes_have_the_bits_of_the_tree() {
    let shape = [3, 201, 18];
    let x = numbers(shape.iter().product());
    let input = buffer(&x);
    let got = run(&mean::space(shape), 3 * 18, |out, setting| {
        mean(&input, out, shape, setting)
    });
    assert_bits_equal(&got, &mean::reference(&x, shape));
    let shape = [54, 201];
    let got = run(&cumsum::space(shape), x.len(), |out, setting| {
        cumsum(&input, out, shape, setting)
    });
    assert_bits_equal(&got, &cumsum::reference(&x, 201));
}

#[test]
fn matrices_are_multiplied() {
    let shape = [40, 33, 50];
    let (a, b) = (numbers(40 * 50), numbers(50 * 33));
    let (a_buffer, b_buffer) = (buffer(&a), buffer(&b));
    let got = run(&matmul::space(), 40 * 33, |out, setting| {
        matmul(&a_buffer, &b_buffer, out, shape, setting)
    });
    assert_close(&got, &matmul::reference(&a, &b, shape));
}

#[test]
fn rows_are_sorted() {
    let shape = [6, 64];
    let mut x = numbers(6 * 64);
    x[3] = f32::NAN;
    x[5] = -0.0;
    x[9] = 0.0;
    x[60] = x[61];
    let input = buffer(&x);
    let got = run(&sort::space(shape), x.len(), |out, setting| {
        sort(&input, out, shape, setting)
    });
    assert_bits_equal(&got, &sort::reference(&x, 64));
    let (values, columns) = topk::reference(&x, 64, 4);
    let got = run(&topk::space(shape), 6 * 4, |out, setting| {
        topk(&input, out, shape, setting)
    });
    assert_bits_equal(&got, &values);
    let mut indices = Buffer::<i64>::zeros(&Device::cpu(), 6 * 4).expect("fits");
    let got = run(&topk::space(shape), 6 * 4, |out, setting| {
        topk_with_indices(&input, out, &mut indices, shape, setting)
    });
    assert_bits_equal(&got, &values);
    assert_eq!(indices.to_vec().expect("is read"), columns);
}

#[test]
fn numbers_are_counted_and_picked() {
    let device = Device::cpu();
    let x: Vec<i32> = (0..9000).map(|index| index * index % 23 - 3).collect();
    let input = Buffer::from_slice(&device, &x).expect("fits");
    let mut out = Buffer::<i32>::zeros(&device, 16).expect("fits");
    for setting in histogram::space().iter().take(TRIED) {
        histogram(&input, &mut out, setting).expect("runs");
        assert_eq!(
            out.to_vec().expect("is read"),
            histogram::reference(&x, 16),
            "{setting:?}"
        );
    }
    let shape = [3, 100];
    let x = numbers(300);
    let index: Vec<i64> = (0..300).map(|at| at * 37 % 100).collect();
    let index_buffer = Buffer::from_slice(&device, &index).expect("fits");
    let input = buffer(&x);
    let got = run(&gather::space(shape), 300, |out, setting| {
        gather(&input, &index_buffer, out, shape, setting)
    });
    let want = gather::reference(&x, &index, 100).expect("all indices are inside");
    assert_bits_equal(&got, &want);
}

#[test]
fn shapes_and_settings_that_do_not_fit_are_errors() {
    let (x, mut out) = (buffer(&numbers(12)), zeros(11));
    let refused = softmax(&x, &mut out, [3, 4], &Setting::default());
    let message = refused.expect_err("11 elements are no matrix").to_string();
    assert!(message.contains("found [11], expected [3, 4]"), "{message}");
    let mut out = zeros(12);
    let refused = sort(&x, &mut out, [1, 12], &Setting::default());
    assert!(refused.is_err(), "12 is no power of two");
    let mut parts = zeros(sum::all_parts(12));
    let odd = Setting {
        width: 3000,
        ..Setting::default()
    };
    let refused = sum::all(&x, &mut parts, &mut zeros(1), &odd);
    assert!(refused.is_err(), "3000 is no power of two");
}
