//! `f16`, whose range is short, and rows whose logits are far apart.

use exactile::{Buffer, Device, bf16, f16};
use exactile_kernels::Setting;
use exactile_kernels::attention::{
    Extremes, Half, Options, Shape, Split, launch as attention, parts,
};

use super::{GROUPED, Problem, tiled};

/// Results, and the greatest and the least logits.
type Found<T> = (Vec<T>, [Vec<f32>; 2]);

/// One launch; `greatest` are given to it.
fn launched<T: Half>(
    device: &Device,
    problem: &Problem,
    (greatest, setting): (Option<&[f32]>, &Setting),
    from: fn(f64) -> T,
) -> Found<T> {
    let shape = problem.shape;
    let on = |numbers: &Vec<bf16>| {
        let numbers: Vec<T> = numbers.iter().map(|it| from(it.to_f64())).collect();
        Buffer::from_slice(device, &numbers).expect("fits")
    };
    let [q, k, v] = problem.arrays.each_ref().map(on);
    let (len, rows) = (q.len(), q.len() / shape.width);
    let floats = |len: usize| Buffer::<f32>::zeros(device, len).expect("fits");
    let (mut most, mut least) = (floats(rows), floats(rows));
    let mut room = floats(parts(shape, problem.extra.split, len));
    let greatest = greatest.map(|it| Buffer::from_slice(device, it).expect("fits"));
    let options = Options {
        extremes: Some(Extremes {
            greatest: &mut most,
            least: &mut least,
        }),
        greatest: greatest.as_ref(),
        split: (problem.extra.split > 0).then_some(Split {
            keys: problem.extra.split,
            parts: &mut room,
        }),
        ..Options::default()
    };
    let mut out = Buffer::zeros(device, len).expect("fits");
    attention([&q, &k, &v], &mut out, shape, options, setting)
        .unwrap_or_else(|error| panic!("{device}, {setting:?}: {error}"));
    let read = |of: &Buffer<f32>| of.to_vec().expect("is read");
    (out.to_vec().expect("is read"), [read(&most), read(&least)])
}

#[test]
fn halves_follow_neither_rows_nor_devices() {
    let long = Shape {
        keys: 300,
        ..GROUPED
    };
    for (shape, split) in [(GROUPED, 0), (long, 0), (long, 128)] {
        let problem = Problem::new(shape).with(|it| it.split = split);
        let usual = (None, &Setting::default());
        let golden = launched(&Device::cpu(), &problem, usual, f16::from_f64);
        for (device, block) in [
            (Device::cpu(), 16),
            (Device::cpu(), 128),
            (Device::lanes(), 64),
        ] {
            let setting = tiled((block, 128));
            let found = launched(&device, &problem, (None, &setting), f16::from_f64);
            assert!(found == golden, "{device}, {block}");
        }
        for (row, got) in golden.0.chunks(shape.width).enumerate().step_by(7) {
            let (sequence, rest) = (
                row / (shape.queries * shape.heads),
                row % (shape.queries * shape.heads),
            );
            let (_, want, _) = problem.row(sequence, rest % shape.heads, rest / shape.heads);
            for (got, want) in got.iter().zip(&want) {
                let error = (got.to_f64() - want).abs();
                assert!(
                    error < 1e-3 * (1.0 + want.abs()),
                    "{row}: {got}, expected {want}"
                );
            }
        }
    }
}

#[test]
fn halves_take_keys_by_128() {
    let shape = Shape::new(1, 16, 16, false);
    let x = Buffer::<f16>::zeros(&Device::cpu(), 256).expect("fits");
    let mut out = Buffer::<f16>::zeros(&Device::cpu(), 256).expect("fits");
    let told = attention(
        [&x; 3],
        &mut out,
        shape,
        Options::default(),
        &tiled((16, 64)),
    );
    let told = told.expect_err("is refused").to_string();
    let want = "64 keys at a time, of which f16 takes 128 unless the greatest logits are given";
    assert!(told.contains(want), "{told}");
}

/// Rows whose values of the greatest logit are zero, so that keys far below are all there is. The first ones are 130 powers of two below
/// and hold back the power of the others, 125 below: these are lost where they are scaled by it, and kept in the greatest one's tile.
fn far_apart() -> Problem {
    let shape = Shape {
        sequences: 1,
        heads: 1,
        key_heads: 1,
        queries: 4,
        keys: 64,
        width: 16,
        causal: false,
        tokens_first: true,
    };
    let mut problem = Problem::new(shape);
    let [q, k, v] = &mut problem.arrays;
    q.fill(bf16::from_f32(1.0));
    for (at, row) in k.chunks_mut(16).enumerate() {
        // A sixteenth of the logit, times four.
        row.fill(bf16::from_f32(match at {
            0..16 => -22.5,
            40 => 0.0,
            _ => -21.625,
        }));
    }
    for (at, row) in v.chunks_mut(16).enumerate() {
        row.fill(bf16::from_f32([1_048_576.0, 0.0][usize::from(at == 40)]));
    }
    problem
}

/// What is beyond the range of weights is told, and a launch that is given the greatest logits has one answer.
#[test]
fn rows_beyond_the_range_are_told_and_redone() {
    let problem = far_apart();
    let tiles = [(16, 16), (16, 32), (64, 64)].map(tiled);
    let once = |device: &Device, greatest, setting| {
        launched(device, &problem, (greatest, setting), bf16::from_f64)
    };
    let [greatest, least] = once(&Device::cpu(), None, &tiles[0]).1;
    let spread = 90.0 * std::f32::consts::LOG2_E;
    for (greatest, least) in greatest.iter().zip(&least) {
        assert!(
            (greatest - least - spread).abs() < 1e-3,
            "{greatest}, {least}"
        );
    }
    let [small, .., large] = &tiles;
    let [small, large] = [small, large].map(|tile| once(&Device::cpu(), None, tile).0);
    assert!(small != large, "tiles lose other keys");
    let mut golden = None;
    for setting in &tiles {
        for device in [Device::cpu(), Device::lanes()] {
            let extremes = once(&device, None, setting).1;
            assert!(extremes == [greatest.clone(), least.clone()], "{device}");
            let (found, _) = once(&device, Some(&greatest), setting);
            assert!(
                *golden.get_or_insert(found.clone()) == found,
                "{device}, {setting:?}"
            );
            assert!(found.iter().all(|it| it.to_f64() > 0.0), "{device}");
        }
    }
}
