//! Attention by tensor cores against plain Rust, and tile sizes against each other.

use exactile::{Buffer, Device, bf16};
use exactile_kernels::Setting;
use exactile_kernels::attention::{Shape, launch, space};

use super::super::numbers;

const SHAPE: Shape = Shape {
    heads: 2,
    tokens: 256,
    width: 64,
    causal: false,
};

/// Causal, and of tokens that no tile divides.
const UNEVEN: Shape = Shape {
    tokens: 200,
    causal: true,
    ..SHAPE
};

fn inputs(device: &Device, shape: Shape) -> [Buffer<bf16>; 3] {
    let count = shape.heads * shape.tokens * shape.width;
    let all = numbers(3 * count);
    let part = |at: usize| {
        let part = all[at * count..][..count].iter();
        let part: Vec<bf16> = part.map(|&x| bf16::from_f32(x * 2.0)).collect();
        Buffer::from_slice(device, &part).expect("fits")
    };
    [part(0), part(1), part(2)]
}

/// The results and the logarithms of the sums.
fn attention(device: &Device, shape: Shape, setting: &Setting) -> (Vec<bf16>, Vec<f32>) {
    let [q, k, v] = &inputs(device, shape);
    let mut out = Buffer::zeros(device, q.len()).expect("fits");
    let mut sums = Buffer::zeros(device, shape.heads * shape.tokens).expect("fits");
    launch([q, k, v], &mut out, Some(&mut sums), shape, setting)
        .unwrap_or_else(|error| panic!("{error}"));
    (
        out.to_vec().expect("is read"),
        sums.to_vec().expect("is read"),
    )
}

#[test]
fn attention_is_near_its_definition_in_plain_rust() {
    for shape in [SHAPE, UNEVEN] {
        let (got, sums) = attention(&Device::cpu(), shape, &Setting::default());
        let [q, k, v] = inputs(&Device::cpu(), shape).map(|it| it.to_vec().expect("is read"));
        let Shape { tokens, width, .. } = shape;
        let number = |x: &[bf16], row: usize, at: usize| x[row * width + at].to_f64();
        for row in (0..got.len() / width).step_by(7) {
            let first = row / tokens * tokens;
            let last = if shape.causal {
                row + 1
            } else {
                first + tokens
            };
            let weights: Vec<f64> = (first..last)
                .map(|key| {
                    let products = (0..width).map(|at| number(&q, row, at) * number(&k, key, at));
                    (products.sum::<f64>() / (width as f64).sqrt()).exp()
                })
                .collect();
            let sum: f64 = weights.iter().sum();
            assert!(
                (f64::from(sums[row]) - sum.ln()).abs() < 4e-3,
                "row {row}: {}",
                sums[row]
            );
            for at in 0..width {
                let products = weights.iter().enumerate();
                let products = products.map(|(key, weight)| weight * number(&v, first + key, at));
                let want = products.sum::<f64>() / sum;
                let got = got[row * width + at].to_f64();
                assert!(
                    (got - want).abs() < 1e-2,
                    "row {row}, {at}: {got}, expected {want}"
                );
            }
        }
    }
}

#[test]
fn bits_follow_no_tile_size_and_no_device() {
    let tiled = |block, width| Setting {
        block,
        width,
        ..Setting::default()
    };
    for shape in [SHAPE, UNEVEN] {
        let golden = attention(&Device::cpu(), shape, &Setting::default());
        for (block, width) in [(64, 64), (16, 32), (128, 256)] {
            let found = attention(&Device::cpu(), shape, &tiled(block, width));
            assert!(found == golden, "{block} x {width}");
        }
        let gpu = Device::cuda(0).inspect_err(|error| eprintln!("skipped on a GPU: {error}"));
        for device in [Device::lanes()].into_iter().chain(gpu) {
            for setting in [tiled(64, 64), tiled(128, 128), tiled(64, 256)] {
                let found = attention(&device, shape, &setting);
                assert!(found == golden, "{device}, {setting:?}");
            }
        }
    }
}

#[test]
fn every_setting_worth_trying_has_the_bits_of_a_cpu() {
    // More tiles of keys than slots, so that each slot is filled again.
    let shape = Shape {
        heads: 1,
        tokens: 640,
        ..SHAPE
    };
    let golden = attention(&Device::cpu(), shape, &Setting::default());
    for setting in space() {
        let found = attention(&Device::lanes(), shape, &setting);
        assert!(found == golden, "lanes, {setting:?}");
    }
}
