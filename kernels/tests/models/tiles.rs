//! What else runs over three tile sizes on every device, and that no ready kernel is left out.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use exactile::{Buffer, Device, Error, Result};
use exactile_kernels::activation::Activation;
use exactile_kernels::layer_norm_backward::{Gradients, Inputs};
use exactile_kernels::segment_sum::Segments;
use exactile_kernels::spmm::{self, Csr};
use exactile_kernels::{Setting, activation, layer_norm_backward, segment_sum, swiglu};

use super::super::{assert_close, numbers};
use super::gpu::{given, same};
use super::{sizes, tiles};

#[test]
fn activations_have_the_bits_of_the_cpu() {
    let x = numbers(3000);
    for function in Activation::ALL {
        let name = format!("{function:?}");
        same(&name, sizes([64, 512, 2048]), |device, setting| {
            let mut out = Buffer::zeros(device, x.len())?;
            activation(function, &given(device, &x)?, &mut out, setting)?;
            out.to_vec()
        });
    }
    same("swiglu", sizes([64, 512, 2048]), |device, setting| {
        let (x, mut out) = (given(device, &x)?, Buffer::zeros(device, x.len())?);
        swiglu(&x, &x, &mut out, setting)?;
        out.to_vec()
    });
}

#[test]
fn gradients_of_normalisations_have_the_bits_of_the_cpu() {
    let shape @ [rows, columns] = [37, 100];
    let x = numbers(rows * columns);
    let settings = tiles([(4, 32), (32, 64), (64, 128)]);
    same("layer_norm_backward", settings, |device, setting| {
        let (x, weight) = (given(device, &x)?, given(device, &x[..columns])?);
        let moments = given(device, &numbers(rows))?;
        let inputs = Inputs {
            x: &x,
            weight: &weight,
            gradient: &x,
            means: &moments,
            scales: &moments,
        };
        let lens = [x.len(), columns, columns];
        let mut all = lens.map(|len| Buffer::zeros(device, len).expect("fits"));
        let [own, weights, biases] = &mut all;
        let gradients = Gradients {
            x: own,
            weight: weights,
            bias: biases,
        };
        layer_norm_backward(inputs, gradients, shape, setting)?;
        let all: Result<Vec<Vec<f32>>> = all.iter().map(Buffer::to_vec).collect();
        Ok(all?.concat())
    });
}

/// Segments of no member, of a few and of more than a tile, with weights and without.
#[test]
fn segments_have_the_bits_of_the_cpu() {
    let columns = 70;
    let (x, weight) = (numbers(50 * columns), numbers(90));
    let members: Vec<i32> = (0..90).map(|at| at * 7 % 50).collect();
    for weighted in [false, true] {
        let name = format!("segment_sum, weighted: {weighted}");
        let settings = tiles([(2, 16), (16, 128), (64, 32)]);
        same(&name, settings, |device, setting| {
            let weights = given(device, &weight)?;
            let starts = Buffer::from_slice(device, &[0, 0, 3, 40, 90])?;
            let members = Buffer::from_slice(device, &members)?;
            let segments = Segments {
                starts: &starts,
                members: &members,
                weights: weighted.then_some(&weights),
            };
            let mut out = Buffer::zeros(device, 4 * columns)?;
            segment_sum(&given(device, &x)?, segments, &mut out, columns, setting)?;
            out.to_vec()
        });
    }
}

/// Rows of no number, of one, of two at one place, and of more than a tile.
const STARTS: [i32; 5] = [0, 0, 1, 3, 93];

#[test]
fn sparse_matrices_are_multiplied() {
    let shape @ [m, n, k] = [4, 70, 33];
    let (values, dense) = (numbers(93), numbers(k * n + 5));
    let dense = &dense[5..];
    let columns: Vec<i32> = (0..93).map(|at| at.max(2) * 7 % 33).collect();
    let run = |device: &Device, setting: &Setting| {
        let (starts, columns) = (
            Buffer::from_slice(device, &STARTS)?,
            Buffer::from_slice(device, &columns)?,
        );
        let values = given(device, &values)?;
        let matrix = Csr {
            starts: &starts,
            columns: &columns,
            values: &values,
        };
        let mut out = Buffer::zeros(device, m * n)?;
        spmm::launch(matrix, &given(device, dense)?, &mut out, shape, setting)?;
        out.to_vec()
    };
    same("spmm", tiles([(2, 16), (16, 128), (64, 32)]), run);
    for device in [Device::cpu(), Device::lanes()] {
        let got = run(&device, &Setting::default()).expect("runs");
        assert_close(&got, &spmm::reference(&STARTS, &columns, &values, dense, n));
    }
}

#[test]
fn columns_beyond_a_matrix_are_told() -> Result<()> {
    let device = Device::cpu();
    let (starts, columns) = (
        Buffer::from_slice(&device, &[0, 1])?,
        Buffer::from_slice(&device, &[3])?,
    );
    let values = given(&device, &[1.0])?;
    let matrix = Csr {
        starts: &starts,
        columns: &columns,
        values: &values,
    };
    let (dense, mut out) = (given(&device, &numbers(6))?, Buffer::zeros(&device, 2)?);
    let setting = Setting::default();
    spmm::launch(matrix, &dense, &mut out, [1, 2, 3], &setting)?;
    let told = device.synchronize();
    assert!(matches!(told, Err(Error::OutOfBounds { .. })), "{told:?}");
    let refused = spmm::launch(matrix, &dense, &mut out, [2, 1, 6], &setting);
    let message = refused.expect_err("one row is not two").to_string();
    assert!(message.contains("found [2], expected [3]"), "{message}");
    Ok(())
}

/// The names under which the package offers its launches: the last words of what `pub use` in `lib.rs` lists.
fn offered(library: &str) -> Vec<&str> {
    let items = library.split(';').map(str::trim_start);
    let uses = items.filter_map(|item| item.strip_prefix("pub use "));
    let listed = uses.flat_map(|item| item.split([',', '{', '}']));
    listed
        .filter_map(|name| name.trim().rsplit([':', ' ']).next())
        .filter(|name| name.starts_with(char::is_lowercase))
        .collect()
}

#[test]
fn every_kernel_runs_over_three_tile_sizes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| fs::read_to_string(folder.join(path)).expect("is read");
    let library = read("src/lib.rs");
    let names = offered(&library);
    assert!(names.contains(&"softmax") && names.contains(&"batch_moments"));
    let tests = [
        "gpu",
        "gpu_layers",
        "tiles",
        "products",
        "attention",
        "attention_backward",
    ];
    let tests = tests.map(|name| read(&format!("tests/models/{name}.rs")));
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    let words: BTreeSet<&str> = tests
        .iter()
        .flat_map(|text| text.split(|character| !is_word(character)))
        .collect();
    for name in names {
        assert!(
            words.contains(name),
            "no test runs `{name}` over three tile sizes"
        );
    }
}
