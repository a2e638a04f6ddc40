//! Products of matrices against plain Rust; tile sizes and devices against each other.

use exactile::{Buffer, Device, F8E4M3, Number, Result, bf16, f16};
use exactile_kernels::activation::Activation;
use exactile_kernels::{
    Setting, addmm, block_scaled_matmul, bmm, float8_matmul, grouped_matmul, linear, matmul,
    persistent_matmul, rows_matmul, scaled_matmul, tensor_matmul,
};

use super::super::{assert_close, numbers};

/// Floats of any width.
fn floats<T: Number>(numbers: &[f32], number: fn(f32) -> T) -> Vec<T> {
    numbers.iter().map(|&x| number(x)).collect()
}

/// Every element as an `f32`.
fn wide<T: Copy>(numbers: &[T], number: fn(T) -> f32) -> Vec<f32> {
    numbers.iter().map(|&x| number(x)).collect()
}

/// The result in all ways: three tiles on the CPU, one by the interpreter, three as code of a GPU, one of them
/// without a setting, and the same on a GPU where there is one. All have the same bits.
fn everywhere<T: Number + PartialEq>(
    len: usize,
    launch: impl Fn(&Device, &mut Buffer<T>, &Setting) -> Result<()>,
) -> Vec<T> {
    let tiled = |(block, width)| Setting {
        block,
        width,
        ..Setting::default()
    };
    let ways = [
        (Device::cpu(), (64, 64)),
        (Device::cpu(), (16, 32)),
        (Device::cpu(), (128, 16)),
        (Device::interpreter(), (32, 32)),
        (Device::lanes(), (64, 64)),
        (Device::lanes(), (64, 128)),
        (Device::lanes(), (0, 0)),
    ];
    let gpu = Device::cuda(0).inspect_err(|error| eprintln!("skipped on a GPU: {error}"));
    let tiles = [(64, 64), (64, 128), (0, 0)];
    let on_gpu = gpu
        .iter()
        .flat_map(|gpu| tiles.map(|tile| (gpu.clone(), tile)));
    let mut golden = None;
    for (device, tile) in ways.into_iter().chain(on_gpu) {
        let mut out = Buffer::<T>::zeros(&device, len).expect("fits");
        launch(&device, &mut out, &tiled(tile))
            .unwrap_or_else(|error| panic!("{device}, {tile:?}: {error}"));
        let found = out.to_vec().expect("is read");
        let golden = golden.get_or_insert_with(|| found.clone());
        let comparison = exactile::compare(&found[..], &golden[..]).expect("are alike");
        assert!(comparison.bits_equal(), "{device}, {tile:?}: {comparison}");
    }
    golden.expect("ran")
}

/// Within the last place of 8 bits, or a small part of the greatest term.
fn assert_near(got: &[f32], want: &[f32], least: f32) {
    assert_eq!(got.len(), want.len());
    for (at, (got, want)) in got.iter().zip(want).enumerate() {
        let near = (got - want).abs() <= least + want.abs() / 128.0;
        assert!(near, "{at}: {got}, expected {want}");
    }
}

const SHAPE: [usize; 3] = [70, 72, 88];

#[test]
fn layers_are_products_with_bias_and_activation() {
    let [m, n, k] = SHAPE;
    let all = numbers(m * k + n * k + n);
    let (x, rest) = all.split_at(m * k);
    let (weight, bias) = rest.split_at(n * k);
    let [x, weight, bias] = [x, weight, bias].map(|part| floats(part, bf16::from_f32));
    for activation in [
        None,
        Some(Activation::Relu),
        Some(Activation::Gelu),
        Some(Activation::Silu),
    ] {
        let with_bias = activation != Some(Activation::Relu);
        let got = everywhere(m * n, |device, out, setting| {
            let [x, weight, bias] =
                [&x, &weight, &bias].map(|part| Buffer::from_slice(device, part));
            let bias = Some(bias?).filter(|_| with_bias);
            let inputs = [&x?, &weight?];
            linear(inputs, bias.as_ref(), activation, out, SHAPE, setting)
        });
        let [x, weight, bias] = [&x, &weight, &bias].map(|part| wide(part, bf16::to_f32));
        let bias = Some(&bias[..]).filter(|_| with_bias);
        let want = linear::reference([&x, &weight], bias, activation, SHAPE);
        assert_near(&wide(&got, bf16::to_f32), &want, 1e-4);
    }
}

#[test]
fn layers_of_single_precision_are_chains() {
    let shape @ [m, n, k] = [9, 33, 50];
    let all = numbers(m * k + n * k);
    let (x, weight) = all.split_at(m * k);
    let got = everywhere(m * n, |device, out, setting| {
        let [x, weight] = [x, weight].map(|part| Buffer::from_slice(device, part));
        linear([&x?, &weight?], None, None, out, shape, setting)
    });
    let chain = |at: usize| {
        let terms = x[at / n * k..][..k].iter().zip(&weight[at % n * k..][..k]);
        terms.fold(0.0, |sum: f32, (x, w)| x.mul_add(*w, sum))
    };
    assert_eq!(got, (0..m * n).map(chain).collect::<Vec<f32>>());
    assert_close(&got, &linear::reference([x, weight], None, None, shape));
}

/// Of `f64` by the tensor cores of a GPU that has them for it, and of `f32` that is added so: both are the chain.
#[test]
fn products_of_double_precision_are_chains() {
    let shape @ [m, n, k] = [70, 66, 50];
    let all = numbers(m * k + k * n);
    let doubles: Vec<f64> = all.iter().map(|&x| f64::from(x).exp()).collect();
    let chain = |[a, b]: [&[f64]; 2], at: usize| {
        let terms = (0..k).map(|term| (a[at / n * k + term], b[term * n + at % n]));
        terms.fold(0.0, |sum: f64, (a, b)| a.mul_add(b, sum))
    };
    let (a, b) = doubles.split_at(m * k);
    let got = everywhere::<f64>(m * n, |device, out, setting| {
        let [a, b] = [a, b].map(|part| Buffer::from_slice(device, part));
        matmul(&a?, &b?, out, shape, setting)
    });
    let expected: Vec<f64> = (0..m * n).map(|at| chain([a, b], at)).collect();
    assert_eq!(got, expected);
    let (a, b) = all.split_at(m * k);
    let got = everywhere::<f64>(m * n, |device, out, setting| {
        let [a, b] = [a, b].map(|part| Buffer::from_slice(device, part));
        matmul(&a?, &b?, out, shape, setting)
    });
    let [a, b] = [a, b].map(|part| part.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>());
    let expected: Vec<f64> = (0..m * n).map(|at| chain([&a, &b], at)).collect();
    assert_eq!(got, expected);
}

#[test]
fn matrices_are_multiplied_by_tensor_cores() {
    let [m, n, k] = SHAPE;
    let all = floats(&numbers(m * k + k * n), f16::from_f32);
    let (a, b) = all.split_at(m * k);
    let got = everywhere(m * n, |device, out, setting| {
        let [a, b] = [a, b].map(|part| Buffer::from_slice(device, part));
        tensor_matmul(&a?, &b?, out, SHAPE, setting)
    });
    // Programs of their own for all tiles have the bits of some that take tiles in turns.
    let in_turns = everywhere(m * n, |device, out, setting| {
        let [a, b] = [a, b].map(|part| Buffer::from_slice(device, part));
        persistent_matmul([&a?, &b?], out, SHAPE, setting)
    });
    assert!(in_turns == got);
    let [a, b] = [a, b].map(|part| wide(part, f16::to_f32));
    assert_near(
        &wide(&got, f16::to_f32),
        &matmul::reference(&a, &b, SHAPE),
        1e-3,
    );
}

#[test]
fn products_are_scaled_and_added() {
    let [m, n, k] = SHAPE;
    let all = numbers(m * k + k * n + m * n);
    let (a, rest) = all.split_at(m * k);
    let (b, addend) = rest.split_at(k * n);
    let [a, b, addend] = [a, b, addend].map(|part| floats(part, f16::from_f32));
    // A matrix, a row for all rows, nothing, and numbers that a factor of 0 keeps away.
    let spoiled = vec![f16::NAN; m * n];
    for (addend, scales) in [
        (Some(&addend[..]), [1.0, 1.0]),
        (Some(&addend[..n]), [-0.5, 3.0]),
        (None, [2.0, 7.0]),
        (Some(&spoiled), [1.0, 0.0]),
    ] {
        let got = everywhere(m * n, |device, out, setting| {
            let [a, b] = [&a, &b].map(|part| Buffer::from_slice(device, part));
            let addend = addend.map(|part| Buffer::from_slice(device, part));
            let addend = addend.transpose()?;
            addmm([&a?, &b?], addend.as_ref(), scales, out, SHAPE, setting)
        });
        let [a, b] = [&a, &b].map(|part| wide(part, f16::to_f32));
        let addend = addend.filter(|_| scales[1] != 0.0);
        let addend = addend.map(|part| wide(part, f16::to_f32));
        let want = addmm::reference([&a, &b], addend.as_deref(), scales, SHAPE);
        assert_near(&wide(&got, f16::to_f32), &want, 1e-3);
    }
}

#[test]
fn batches_of_matrices_are_multiplied() {
    // Products that a step divides, and those that it does not.
    for shape @ [batch, m, n, k] in [[3, 20, 40, 24], [2, 70, 40, 128]] {
        let all = numbers(batch * (m * k + k * n));
        let (a, b) = all.split_at(batch * m * k);
        let [a, b] = [a, b].map(|part| floats(part, bf16::from_f32));
        let got = everywhere(batch * m * n, |device, out, setting| {
            let [a, b] = [&a, &b].map(|part| Buffer::from_slice(device, part));
            bmm([&a?, &b?], out, shape, setting)
        });
        let [a, b] = [&a, &b].map(|part| wide(part, bf16::to_f32));
        let want = bmm::reference([&a, &b], [m, n, k]);
        assert_near(&wide(&got, bf16::to_f32), &want, 1e-4);
    }
}

/// What the next matrix holds does not leak into the sums, be it infinite.
#[test]
fn matrices_behind_each_other_stay_apart() {
    let shape @ [batch, m, n, k] = [2, 16, 16, 24];
    let a = vec![bf16::ONE; batch * m * k];
    let mut b = vec![bf16::ONE; batch * k * n];
    b[k * n..].fill(bf16::INFINITY);
    let got = everywhere(batch * m * n, |device, out, setting| {
        let [a, b] = [&a, &b].map(|part| Buffer::from_slice(device, part));
        bmm([&a?, &b?], out, shape, setting)
    });
    let (first, second) = got.split_at(m * n);
    assert!(first.iter().all(|&x| x == bf16::from_f32(24.0)));
    assert!(second.iter().all(|&x| x == bf16::INFINITY));
}

/// Sums of no products are zero, and a layer of them is its bias.
#[test]
fn layers_of_nothing_are_their_bias() {
    let bias = floats(&numbers(20), bf16::from_f32);
    let got = everywhere(3 * 20, |device, out, setting| {
        let [x, weight] = [(); 2].map(|()| Buffer::<bf16>::zeros(device, 0));
        let bias = Buffer::from_slice(device, &bias)?;
        linear([&x?, &weight?], Some(&bias), None, out, [3, 20, 0], setting)
    });
    assert_eq!(got, bias.repeat(3));
}

/// Groups of no row, of one, and of more than a tile; rows behind the last group keep what they have.
#[test]
fn rows_meet_the_matrix_of_their_group() {
    let starts = [0, 0, 1, 90, 90, 140];
    for [rows, n, k] in [[150, 40, 24], [150, 24, 64]] {
        let groups = starts.len() - 1;
        let all = numbers(rows * k + groups * k * n);
        let (x, weights) = all.split_at(rows * k);
        let [x, weights] = [x, weights].map(|part| floats(part, bf16::from_f32));
        let got = everywhere(rows * n, |device, out, setting| {
            let [x, weights] = [&x, &weights].map(|part| Buffer::from_slice(device, part));
            let starts = Buffer::from_slice(device, &starts)?;
            grouped_matmul([&x?, &weights?], &starts, out, [rows, n, k], setting)
        });
        let [x, weights] = [&x, &weights].map(|part| wide(part, bf16::to_f32));
        let mut want = grouped_matmul::reference([&x, &weights], &starts, [n, k]);
        want.resize(rows * n, 0.0);
        assert_near(&wide(&got, bf16::to_f32), &want, 1e-4);
    }
}

#[test]
fn bytes_are_multiplied_and_scaled() {
    let [m, n, k] = SHAPE;
    let byte = |at: usize| (at * 89 % 251) as u8 as i8;
    let [a, b] = [m * k, n * k].map(|len| (0..len).map(byte).collect::<Vec<i8>>());
    let scales = numbers(m + n);
    let (rows, columns) = scales.split_at(m);
    let run = |device: &Device| {
        let [a, b] = [&a, &b].map(|part| Buffer::from_slice(device, part).expect("fits"));
        let [rows, columns] =
            [rows, columns].map(|part| Buffer::from_slice(device, part).expect("fits"));
        ([a, b], [rows, columns])
    };
    let got = everywhere::<f32>(m * n, |device, out, setting| {
        let ([a, b], [rows, columns]) = run(device);
        scaled_matmul([&a, &b], [&rows, &columns], out, SHAPE, setting)
    });
    let want = scaled_matmul::reference([&a, &b], [rows, columns], SHAPE);
    assert_eq!(got, want);
    let got = everywhere::<bf16>(m * n, |device, out, setting| {
        let ([a, b], [rows, columns]) = run(device);
        scaled_matmul([&a, &b], [&rows, &columns], out, SHAPE, setting)
    });
    assert_eq!(got, floats(&want, bf16::from_f32));
}

/// Rows, columns and products end within tiles, and rows of bytes no vector divides.
#[test]
fn bytes_and_floats_of_rows_are_multiplied() {
    for shape @ [m, n, k] in [[72, 136, 272], [65, 9, 133]] {
        let byte = |at: usize| (at * 89 % 251) as u8 as i8;
        let [a, b] = [m * k, n * k].map(|len| (0..len).map(byte).collect::<Vec<i8>>());
        let got = everywhere::<i32>(m * n, |device, out, setting| {
            let [a, b] = [&a, &b].map(|part| Buffer::from_slice(device, part));
            rows_matmul([&a?, &b?], out, shape, setting)
        });
        let want = |at: usize| {
            let terms = a[at / n * k..][..k].iter().zip(&b[at % n * k..][..k]);
            terms.map(|(&a, &b)| i32::from(a) * i32::from(b)).sum()
        };
        assert_eq!(got, (0..m * n).map(want).collect::<Vec<i32>>());
        let all = numbers(m * k + n * k);
        let (a, b) = all.split_at(m * k);
        let got = everywhere::<f32>(m * n, |device, out, setting| {
            let [a, b] = [a, b].map(|part| Buffer::from_slice(device, part));
            rows_matmul([&a?, &b?], out, shape, setting)
        });
        let want = |at: usize| {
            let terms = a[at / n * k..][..k].iter().zip(&b[at % n * k..][..k]);
            terms.map(|(a, b)| a * b).sum::<f32>()
        };
        let want: Vec<f32> = (0..m * n).map(want).collect();
        let greatest = want.iter().fold(0.0, |most: f32, x| most.max(x.abs()));
        assert_near(&got, &want, greatest * 1e-3);
    }
}

/// NaN whose bits do not count in TF32 are no infinities.
#[test]
fn nan_of_rows_stays_nan() {
    let shape @ [m, n, k] = [72, 136, 272];
    let all = numbers(m * k + n * k);
    let (a, b) = all.split_at(m * k);
    let [mut a, mut b] = [a, b].map(<[f32]>::to_vec);
    a[5 * k + 7] = f32::from_bits(0x7f80_0001);
    a[71 * k + 271] = f32::INFINITY;
    b[9 * k + 270] = f32::from_bits(0xff80_1fff);
    let got = everywhere::<f32>(m * n, |device, out, setting| {
        let [a, b] = [&a, &b].map(|part| Buffer::from_slice(device, part));
        rows_matmul([&a?, &b?], out, shape, setting)
    });
    for (at, sum) in got.iter().enumerate() {
        match (at / n, at % n) {
            (5, _) | (_, 9) => assert!(sum.is_nan(), "{at}: {sum}"),
            (71, _) => assert!(!sum.is_finite(), "{at}: {sum}"),
            _ => assert!(sum.is_finite(), "{at}: {sum}"),
        }
    }
}

/// Sums keep 13 bits of fraction; rows, columns and products end within tiles, and rows of bytes no vector divides.
#[test]
fn small_floats_are_multiplied_as_they_are() {
    for shape @ [m, n, k] in [[72, 136, 272], [65, 9, 133]] {
        let all = numbers(m * k + n * k);
        let (a, b) = all.split_at(m * k);
        let [a, b] = [a, b].map(|part| floats(part, F8E4M3::from_f32));
        let [got, promoted] = [false, true].map(|is_promoted| {
            everywhere::<f32>(m * n, |device, out, setting| {
                let [a, b] = [&a, &b].map(|part| Buffer::from_slice(device, part));
                float8_matmul([&a?, &b?], (0.5, is_promoted), out, shape, setting)
            })
        });
        let [a, b] = [&a, &b].map(|part| wide(part, F8E4M3::to_f32));
        let element = |at: usize| {
            let terms = a[at / n * k..][..k].iter().zip(&b[at % n * k..][..k]);
            0.5 * terms.map(|(a, b)| a * b).sum::<f32>()
        };
        let want: Vec<f32> = (0..m * n).map(element).collect();
        let greatest = want.iter().fold(0.0, |most: f32, x| most.max(x.abs()));
        assert_near(&got, &want, greatest * 1e-3);
        assert_near(&promoted, &want, greatest * 5e-4);
    }
}

/// Blocks that end within the matrices, and scales far apart.
#[test]
fn blocks_of_small_floats_are_multiplied_and_scaled() {
    let shape @ [m, n, k] = [40, 144, 272];
    let all = numbers(m * k + n * k);
    let (a, b) = all.split_at(m * k);
    let [a, b] = [a, b].map(|part| floats(part, |x| F8E4M3::from_f32(x * 400.0)));
    let scale = |at: usize| [0.25, 1e-3, 3.0, 0.7, 1e3][at % 5];
    let [rows, scales] = [m * 3, 2 * 3].map(|len| (0..len).map(scale).collect::<Vec<f32>>());
    let got = everywhere::<f32>(m * n, |device, out, setting| {
        let [a, b] = [&a, &b].map(|part| Buffer::from_slice(device, part));
        let [rows, scales] = [&rows, &scales].map(|part| Buffer::from_slice(device, part));
        block_scaled_matmul([&a?, &b?], [&rows?, &scales?], out, shape, setting)
    });
    let [a, b] = [&a, &b].map(|part| wide(part, F8E4M3::to_f32));
    let want = scaled_matmul::blocks_reference([&a, &b], [&rows, &scales], shape);
    let greatest = want.iter().fold(0.0, |most: f32, x| most.max(x.abs()));
    assert_near(&got, &want, greatest * 1e-3);
}
