//! The gradients of attention against plain Rust, and tile sizes and devices against each other.

use exactile::{Buffer, Device, Number, bf16};
use exactile_kernels::attention::Shape;
use exactile_kernels::attention_backward::Given;
use exactile_kernels::{Setting, attention_backward};

use super::super::numbers;

/// Of tokens that no tile divides.
const SHAPE: Shape = Shape::new(2, 70, 16, false);

/// What attention is of, what it gives, and the gradient of that, `[heads, tokens, width]` each; the logarithms of its sums.
struct Plain {
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
    out: Vec<f32>,
    gradient: Vec<f32>,
    log_sums: Vec<f32>,
    /// The gradients of queries, keys and values, from what is rounded to `f32`.
    wanted: [Vec<f64>; 3],
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    let products = a.iter().zip(b);
    products.map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
}

fn add(sum: &mut [f64], row: &[f32], factor: f64) {
    for (sum, &x) in sum.iter_mut().zip(row) {
        *sum += factor * f64::from(x);
    }
}

/// All in `f64`, from inputs that are rounded by `round`.
fn plain(shape: Shape, round: fn(f32) -> f32) -> Plain {
    let Shape {
        heads,
        queries: tokens,
        width,
        causal,
        ..
    } = shape;
    let count = heads * tokens * width;
    let all: Vec<f32> = numbers(4 * count)
        .into_iter()
        .map(|x| round(2.0 * x))
        .collect();
    let part = |at: usize| all[at * count..][..count].to_vec();
    let (q, k, v, gradient) = (part(0), part(1), part(2), part(3));
    let (mut out, mut log_sums) = (vec![0.0; count], Vec::new());
    let mut wanted = [(); 3].map(|()| vec![0.0; count]);
    let scale = 1.0 / (width as f64).sqrt();
    for row in 0..heads * tokens {
        let own = row * width..(row + 1) * width;
        let first = row / tokens * tokens;
        let keys = first..if causal { row + 1 } else { first + tokens };
        let at = |key: usize| key * width..(key + 1) * width;
        let logits = keys
            .clone()
            .map(|key| scale * dot(&q[own.clone()], &k[at(key)]));
        let weights: Vec<f64> = logits.map(f64::exp).collect();
        let sum: f64 = weights.iter().sum();
        let mut mean = vec![0.0; width];
        for (key, weight) in keys.clone().zip(&weights) {
            add(&mut mean, &v[at(key)], weight / sum);
        }
        for (out, mean) in out[own.clone()].iter_mut().zip(mean) {
            *out = round(mean as f32);
        }
        log_sums.push(sum.ln() as f32);
        let delta = dot(&out[own.clone()], &gradient[own.clone()]);
        for (key, weight) in keys.zip(weights) {
            let share = weight / sum;
            let slope = share * (dot(&gradient[own.clone()], &v[at(key)]) - delta) * scale;
            add(&mut wanted[0][own.clone()], &k[at(key)], slope);
            add(&mut wanted[1][at(key)], &q[own.clone()], slope);
            add(&mut wanted[2][at(key)], &gradient[own.clone()], share);
        }
    }
    Plain {
        q,
        k,
        v,
        out,
        gradient,
        log_sums,
        wanted,
    }
}

fn gradients<T: exactile::prelude::Float + Number>(
    device: &Device,
    shape: Shape,
    plain: &Plain,
    convert: fn(f32) -> T,
    [block, width]: [usize; 2],
) -> [Vec<T>; 3] {
    let upload = |numbers: &[f32]| {
        let numbers: Vec<T> = numbers.iter().map(|&x| convert(x)).collect();
        Buffer::from_slice(device, &numbers).expect("fits")
    };
    let [q, k, v] = [&plain.q, &plain.k, &plain.v].map(|it| upload(it));
    let [out, gradient] = [&plain.out, &plain.gradient].map(|it| upload(it));
    let log_sums = Buffer::from_slice(device, &plain.log_sums).expect("fits");
    let mut found = [(); 3].map(|()| Buffer::<T>::zeros(device, q.len()).expect("fits"));
    let [of_q, of_k, of_v] = &mut found;
    let given = Given {
        out: &out,
        gradient: &gradient,
        log_sums: &log_sums,
    };
    let setting = Setting {
        block,
        width,
        ..Setting::default()
    };
    attention_backward([&q, &k, &v], given, [of_q, of_k, of_v], shape, &setting)
        .unwrap_or_else(|error| panic!("{error}"));
    found.map(|it| it.to_vec().expect("is read"))
}

/// Three tiles on the CPU and on a GPU where there is one, and some as code of a GPU.
fn ways(tiles: [[usize; 2]; 3], lanes: &[[usize; 2]]) -> Vec<(Device, [usize; 2])> {
    let gpu = Device::cuda(0).inspect_err(|error| eprintln!("skipped on a GPU: {error}"));
    let devices = [Device::cpu()].into_iter().chain(gpu);
    let all = devices.flat_map(|device| tiles.map(|tile| (device.clone(), tile)));
    all.chain(lanes.iter().map(|&tile| (Device::lanes(), tile)))
        .collect()
}

#[test]
fn gradients_are_near_their_definition_and_follow_no_tile_size() {
    for causal in [false, true] {
        let shape = Shape { causal, ..SHAPE };
        let plain = plain(shape, |x| x);
        let golden = gradients(&Device::cpu(), shape, &plain, |x| x, [64, 64]);
        for (found, wanted) in golden.iter().zip(&plain.wanted) {
            for (at, (&found, &wanted)) in found.iter().zip(wanted).enumerate() {
                let error = (f64::from(found) - wanted).abs();
                assert!(
                    error < 2e-5,
                    "{at}: {found}, expected {wanted}, causal: {causal}"
                );
            }
        }
        for (device, tiles) in ways([[16, 32], [32, 16], [128, 64]], &[[16, 32], [64, 64]]) {
            let found = gradients(&device, shape, &plain, |x| x, tiles);
            assert!(found == golden, "{device}, {tiles:?}, causal: {causal}");
        }
    }
}

#[test]
fn gradients_by_tensor_cores_follow_no_tile_size_and_no_device() {
    for causal in [false, true] {
        let shape = Shape { causal, ..SHAPE };
        let plain = plain(shape, |x| bf16::from_f32(x).to_f32());
        let golden = gradients(&Device::cpu(), shape, &plain, bf16::from_f32, [32, 128]);
        for (found, wanted) in golden.iter().zip(&plain.wanted) {
            for (at, (found, &wanted)) in found.iter().zip(wanted).enumerate() {
                let error = (found.to_f64() - wanted).abs();
                assert!(
                    error < 0.05,
                    "{at}: {found}, expected {wanted}, causal: {causal}"
                );
            }
        }
        for (device, tiles) in ways([[64, 64], [64, 128], [128, 64]], &[[64, 64]]) {
            let found = gradients(&device, shape, &plain, bf16::from_f32, tiles);
            assert!(found == golden, "{device}, {tiles:?}, causal: {causal}");
        }
    }
}
