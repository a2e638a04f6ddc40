//! Kernels of language models and their training against plain Rust, and three tile sizes against each other.

mod attention;
mod attention_backward;
mod gpu;
mod gpu_layers;
mod paged;
mod products;
mod refusals;
mod scores;
mod tiles;
mod training;

use exactile::{Buffer, Device, F8E4M3, Result, assert_bits_equal};
use exactile_kernels::group_norm::Affine;
use exactile_kernels::rope::{Pairs, Table, reference as turned};
use exactile_kernels::routing::{self, Routes};
use exactile_kernels::segment_sum::{self, Segments};
use exactile_kernels::selective_scan::{self, Inputs};
use exactile_kernels::{
    Setting, add_rms_norm, batch_moments, conv2d, dequantise, dropout, embedding,
    embedding_backward, group_norm, quantise, rms_norm, rope, rope_by_table, swiglu_backward,
    transpose,
};

use super::{assert_close, buffer, numbers, run, zeros};

/// Settings with these tile sizes and second extents; 0 leaves one to the kernel.
fn tiles(tiles: [(usize, usize); 3]) -> [Setting; 3] {
    tiles.map(|(block, width)| Setting {
        block,
        width,
        ..Setting::default()
    })
}

/// Settings with these tile sizes.
fn sizes(blocks: [usize; 3]) -> [Setting; 3] {
    tiles(blocks.map(|block| (block, 0)))
}

/// Settings with these second extents.
fn widths(widths: [usize; 3]) -> [Setting; 3] {
    tiles(widths.map(|width| (0, width)))
}

fn integers(numbers: &[i32]) -> Buffer<i32> {
    Buffer::from_slice(&Device::cpu(), numbers).expect("fits")
}

/// Where kernels run: as code of the CPU, and as that of a GPU.
fn devices() -> [Device; 2] {
    [Device::cpu(), Device::lanes()]
}

/// Three sizes on the CPU, and the second of them as code of a GPU.
fn ways(counts: [usize; 3]) -> Vec<(Device, Setting)> {
    let settings = widths(counts);
    let lanes = (Device::lanes(), settings[1]);
    let all = settings.into_iter().map(|it| (Device::cpu(), it));
    all.chain([lanes]).collect()
}

/// Keeps the first result; later ones have its bits.
fn keep(golden: &mut Vec<f32>, got: &Buffer<f32>) {
    if golden.is_empty() {
        *golden = read(got);
    }
    assert_bits_equal(&read(got), golden);
}

fn read<T: exactile::Number>(buffer: &Buffer<T>) -> Vec<T> {
    buffer.to_vec().expect("is read")
}

#[test]
fn residuals_are_added_and_normalised() {
    let [rows, columns] = [3, 100];
    let (x, residual) = (numbers(rows * columns), numbers(rows * columns + 7));
    let (residual, weight) = (&residual[7..], numbers(columns + 9));
    let weight = &weight[9..];
    let (x_buffer, weights) = (buffer(&x), buffer(weight));
    let got = run(&sizes([128, 256, 512]), x.len(), |out, setting| {
        let mut kept = buffer(residual);
        add_rms_norm(
            &x_buffer,
            &mut kept,
            &weights,
            out,
            1e-5,
            [rows, columns],
            setting,
        )?;
        let sums: Vec<f32> = x
            .iter()
            .zip(residual)
            .map(|(x, residual)| x + residual)
            .collect();
        assert_bits_equal(&read(&kept), &sums);
        Ok(())
    });
    for (row, got) in got.chunks(columns).enumerate() {
        let at = row * columns..(row + 1) * columns;
        let (_, want) = rms_norm::reference(&x[at.clone()], &residual[at], weight, 1e-5);
        assert_close(got, &want);
    }
}

#[test]
fn heads_turn_by_a_table() -> Result<()> {
    let shape @ [batch, positions, heads, width] = [2, 3, 2, 32];
    let x = numbers(shape.iter().product());
    let angle = |at: usize| {
        let pairs = width / 2;
        let (position, pair) = ((at / pairs) as f64, (at % pairs) as f64);
        position * 1e4f64.powf(-pair / pairs as f64)
    };
    let angles: Vec<f64> = (0..positions * width / 2).map(angle).collect();
    let table = |function: fn(f64) -> f64| -> Vec<f32> {
        angles.iter().map(|&angle| function(angle) as f32).collect()
    };
    let (cosines, sines) = (table(f64::cos), table(f64::sin));
    let mut golden = Vec::new();
    for device in devices() {
        let source = Buffer::from_slice(&device, &x)?;
        let (cosines, sines) = (
            Buffer::from_slice(&device, &cosines)?,
            Buffer::from_slice(&device, &sines)?,
        );
        let table = Table {
            cosines: &cosines,
            sines: &sines,
        };
        for setting in &widths([1, 2, 4]) {
            let mut out = Buffer::zeros(&device, x.len())?;
            rope_by_table(&source, &table, &mut out, shape, setting)?;
            keep(&mut golden, &out);
        }
    }
    let tokens = golden.chunks(heads * width).enumerate();
    assert_eq!(golden.len(), batch * positions * heads * width);
    for (token, got) in tokens {
        let heads = got
            .chunks(width)
            .zip(x[token * heads * width..].chunks(width));
        for (got, head) in heads {
            let position = (token % positions) as i32;
            assert_close(got, &turned(head, position, 1e4, Pairs::Halves));
        }
    }
    Ok(())
}

#[test]
fn heads_turn_by_their_position() -> Result<()> {
    let shape @ [tokens, heads, width] = [6, 2, 32];
    let positions = [0, 1, 7, 100, 5000, 3];
    let (x, places) = (numbers(tokens * heads * width), integers(&positions));
    for pairs in [Pairs::Halves, Pairs::Neighbours] {
        let mut golden = Vec::new();
        for (device, setting) in ways([1, 2, 4]) {
            let mut turning = Buffer::from_slice(&device, &x)?;
            rope(&mut turning, &places, 1e4, pairs, shape, &setting)?;
            keep(&mut golden, &turning);
        }
        for (head, got) in golden.chunks(width).enumerate() {
            let own = &x[head * width..][..width];
            let want = turned(own, positions[head / heads], 1e4, pairs);
            let near = got
                .iter()
                .zip(&want)
                .all(|(got, want)| (got - want).abs() < 2e-3);
            assert!(near, "{pairs:?}, head {head}: {got:?} {want:?}");
        }
    }
    Ok(())
}

#[test]
fn the_gate_has_gradients() {
    let n = 3000;
    let (gate, x, gradient) = (numbers(n), numbers(n + 50), numbers(n + 90));
    let given = [buffer(&gate), buffer(&x[50..]), buffer(&gradient[90..])];
    let [gates, xs, gradients] = &given;
    let mut golden = Vec::new();
    let got = run(&sizes([64, 512, 2048]), n, |out, setting| {
        let mut other = zeros(n);
        swiglu_backward([gates, xs, gradients], [out, &mut other], setting)?;
        keep(&mut golden, &other);
        Ok(())
    });
    for at in 0..n {
        let want = exactile_kernels::activation::swiglu_backward_reference(
            gate[at],
            x[at + 50],
            gradient[at + 90],
        );
        assert_close(&[got[at], golden[at]], &want);
    }
}

#[test]
fn dropout_follows_seed_and_place() {
    let n = 5000;
    let x = numbers(n);
    let given = buffer(&x);
    let got = run(&sizes([64, 512, 4096]), n, |out, setting| {
        dropout(&given, out, 0.25, 42, setting)
    });
    let kept = got.iter().zip(&x).filter(|(got, x)| {
        assert!(**got == 0.0 || **got == dropout::reference(**x, 0.25));
        **got != 0.0
    });
    assert!((3600..3900).contains(&kept.count()));
}

#[test]
fn groups_and_columns_are_normalised() {
    let [images, channels, pixels, groups] = [2, 6, 35, 3];
    let (x, weight, bias) = (numbers(images * channels * pixels), numbers(6), numbers(12));
    let (given, weights, biases) = (buffer(&x), buffer(&weight), buffer(&bias[6..]));
    let got = run(&sizes([16, 64, 128]), x.len(), |out, setting| {
        let affine = Affine {
            weight: &weights,
            bias: &biases,
        };
        let shape = [images, channels, pixels];
        group_norm(&given, affine, out, (groups, 1e-5), shape, setting)
    });
    let own = channels / groups * pixels;
    let mut want = Vec::new();
    for (group, values) in x.chunks(own).enumerate() {
        let (mean, variance) = group_norm::reference(values);
        for (at, &value) in values.iter().enumerate() {
            let channel = group % groups * (channels / groups) + at / pixels;
            let normal = (f64::from(value) - mean) / (variance + 1e-5).sqrt();
            want.push(normal as f32 * weight[channel] + bias[6 + channel]);
        }
    }
    assert_close(&got, &want);
    let [rows, columns] = [100, 40];
    let x = numbers(rows * columns);
    let given = buffer(&x);
    let mut variances = Vec::new();
    let means = run(&sizes([4, 32, 128]), columns, |out, setting| {
        let mut squares = zeros(columns);
        batch_moments(&given, out, &mut squares, [rows, columns], setting)?;
        keep(&mut variances, &squares);
        Ok(())
    });
    for column in 0..columns {
        let values: Vec<f32> = x.iter().skip(column).step_by(columns).copied().collect();
        let (mean, variance) = group_norm::reference(&values);
        assert_close(
            &[means[column], variances[column]],
            &[mean as f32, variance as f32],
        );
    }
}

#[test]
fn blocks_are_quantised() -> Result<()> {
    let [blocks, block] = [37, 64];
    let mut x = numbers(blocks * block);
    x[..block].fill(0.0);
    let given = buffer(&x);
    for (device, setting) in ways([1, 4, 32]) {
        let (mut out, mut scales) = (Buffer::<i8>::zeros(&device, x.len())?, zeros(blocks));
        quantise(&given, &mut out, &mut scales, [blocks, block], &setting)?;
        for (at, own) in x.chunks(block).enumerate() {
            let (want, scale) = quantise::reference(own);
            assert_eq!(read(&out)[at * block..][..block], want);
            assert_eq!(read(&scales)[at], scale);
        }
        let mut out = Buffer::<F8E4M3>::zeros(&device, x.len())?;
        quantise(&given, &mut out, &mut scales, [blocks, block], &setting)?;
        let mut again = Buffer::zeros(&device, x.len())?;
        dequantise(&out, &scales, &mut again, [blocks, block], &setting)?;
        let near = read(&again)
            .iter()
            .zip(&x)
            .all(|(got, x): (&f32, &f32)| (got - x).abs() <= 0.04);
        assert!(near, "{setting:?}");
    }
    Ok(())
}

#[test]
fn segments_are_summed() -> Result<()> {
    let columns = 70;
    let (x, weight) = (numbers(50 * columns), numbers(90));
    let starts = [0, 0, 3, 40, 90];
    let members: Vec<i32> = (0..90).map(|at| at * 7 % 50).collect();
    let (rows, begins, rows_of) = (buffer(&x), integers(&starts), integers(&members));
    let weights = buffer(&weight);
    for weighted in [false, true] {
        let segments = Segments {
            starts: &begins,
            members: &rows_of,
            weights: weighted.then_some(&weights),
        };
        let got = run(&sizes([2, 16, 64]), 4 * columns, |out, setting| {
            exactile_kernels::segment_sum(&rows, segments, out, columns, setting)
        });
        let weight = weighted.then_some(&weight[..]);
        assert_close(
            &got,
            &segment_sum::reference(&x, &starts, &members, weight, columns),
        );
    }
    let (table, indices) = (numbers(20 * columns), [3, 0, 3, 19, 3, 7]);
    let (given, places) = (buffer(&table), integers(&indices));
    let got = run(&sizes([16, 64, 128]), 6 * columns, |out, setting| {
        embedding(&given, &places, out, columns, setting)
    });
    assert_bits_equal(&got, &embedding::reference(&table, &indices, columns));
    let across = run(&sizes([16, 32, 64]), 20 * columns, |out, setting| {
        transpose(&given, out, [20, columns], setting)
    });
    assert_bits_equal(&across, &transpose::reference(&table, [20, columns]));
    let gradients = buffer(&got);
    let sums = run(&sizes([1, 4, 16]), 20 * columns, |out, setting| {
        embedding_backward(&gradients, &places, out, [20, columns], setting)
    });
    let [starts, members] = segment_sum::places_reference(&indices, 20);
    let want = segment_sum::reference(&got, &starts, &members, None, columns);
    assert_close(&sums, &want);
    Ok(())
}

#[test]
fn tokens_find_experts() -> Result<()> {
    let [tokens, columns, chosen] = [37, 12, 2];
    let scores = numbers(tokens * columns);
    let given = buffer(&scores);
    for (device, setting) in ways([1, 8, 64]) {
        let mut experts = Buffer::zeros(&device, tokens * chosen)?;
        let mut counts = Buffer::zeros(&device, columns)?;
        let mut shares = Buffer::zeros(&device, tokens * chosen)?;
        let routes = Routes {
            experts: &mut experts,
            shares: &mut shares,
            counts: &mut counts,
        };
        exactile_kernels::routing(&given, routes, chosen, [tokens, columns], &setting)?;
        let mut tallies = vec![0; columns];
        for (token, row) in scores.chunks(columns).enumerate() {
            let (want, share) = routing::reference(row, chosen);
            assert_eq!(read(&experts)[token * chosen..][..chosen], want);
            assert_close(&read(&shares)[token * chosen..][..chosen], &share);
            want.iter()
                .for_each(|&expert| tallies[expert as usize] += 1);
        }
        assert_eq!(read(&counts), tallies);
    }
    Ok(())
}

#[test]
fn images_are_convolved() {
    let shape = exactile_kernels::conv2d::Shape {
        images: 2,
        inputs: 3,
        outputs: 5,
        extents: [7, 19],
        window: [3, 5],
    };
    let (x, weight) = (numbers(2 * 3 * 7 * 19), numbers(5 * 3 * 15));
    let (given, weights) = (buffer(&x), buffer(&weight));
    let got = run(&sizes([8, 16, 64]), 2 * 5 * 7 * 19, |out, setting| {
        conv2d(&given, &weights, out, shape, setting)
    });
    assert_close(&got, &conv2d::reference(&x, &weight, shape));
}

#[test]
fn states_follow_time() {
    let ([sequences, steps, channels], states) = ([2, 50, 3], 4);
    let count = sequences * steps * channels;
    let (x, delta) = (numbers(count), numbers(count + 5));
    let delta: Vec<f32> = delta[5..].iter().map(|x| x.abs()).collect();
    let a: Vec<f32> = numbers(channels * states)
        .iter()
        .map(|x| -x.abs())
        .collect();
    let (b, c) = (
        numbers(sequences * steps * states),
        numbers(sequences * steps * states + 9),
    );
    let c = &c[9..];
    let given = [&x, &delta, &a, &b].map(|x| buffer(x));
    let reads = buffer(c);
    let got = run(&sizes([4, 16, 64]), count, |out, setting| {
        let [x, deltas, a, b] = &given;
        let inputs = Inputs {
            x,
            deltas,
            a,
            b,
            c: &reads,
        };
        exactile_kernels::selective_scan(inputs, out, states, [sequences, steps, channels], setting)
    });
    for sequence in 0..sequences {
        for channel in 0..channels {
            let own = |from: &[f32]| -> Vec<f32> {
                let at = |time| from[(sequence * steps + time) * channels + channel];
                (0..steps).map(at).collect()
            };
            let part = sequence * steps * states..(sequence + 1) * steps * states;
            let rates = &a[channel * states..][..states];
            let want = selective_scan::reference(
                &own(&x),
                &own(&delta),
                rates,
                &b[part.clone()],
                &c[part],
            );
            assert_close(&own(&got), &want);
        }
    }
}

/// What a tuner chooses from is not empty.
#[test]
fn spaces_hold_settings() {
    let spaces = [
        exactile_kernels::cross_entropy::space(),
        dropout::space(),
        embedding::space(),
        group_norm::space(),
        group_norm::moments_space(),
        conv2d::space(),
        segment_sum::space(),
        exactile_kernels::spmm::space(),
        exactile_kernels::persistent_matmul::space(),
        rms_norm::space([3, 100]),
        exactile_kernels::linear::space(),
        exactile_kernels::addmm::space(),
        exactile_kernels::bmm::space(),
        exactile_kernels::grouped_matmul::space(),
        exactile_kernels::scaled_matmul::space(),
        exactile_kernels::log_softmax::space(),
        exactile_kernels::sampling::space([3, 100]),
        exactile_kernels::layer_norm_backward::space(),
        quantise::space(64),
        routing::space(12),
        selective_scan::space(4),
        exactile_kernels::adamw::space(),
        exactile_kernels::attention_backward::space(),
        exactile_kernels::rope::space(32),
    ];
    assert!(spaces.iter().all(|space| !space.is_empty()));
}
