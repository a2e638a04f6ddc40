//! Scores of classes and of tokens against plain Rust.

use exactile::{Buffer, Device, Result};
use exactile_kernels::sampling::{self, Draw};
use exactile_kernels::{Setting, cross_entropy, log_softmax};

use super::super::{assert_close, buffer, numbers, run};
use super::{integers, read, sizes};

#[test]
fn classes_have_losses() {
    let [rows, columns] = [4, 5003];
    let x: Vec<f32> = numbers(rows * columns).iter().map(|x| x * 9.0).collect();
    let classes = [5002, 0, -1, 1234];
    let (scores, chosen) = (buffer(&x), integers(&classes));
    let got = run(&sizes([256, 1024, 8192]), rows, |out, setting| {
        cross_entropy(&scores, &chosen, out, [rows, columns], setting)
    });
    let want: Vec<f32> = x
        .chunks(columns)
        .zip(classes)
        .map(|(row, class)| cross_entropy::reference(row, class))
        .collect();
    assert_close(&got, &want);
}

/// As many classes as GPT-2 has tokens, in chunks.
#[test]
fn vocabularies_have_losses() {
    let [rows, columns] = [2, 50_257];
    let x: Vec<f32> = numbers(rows * columns).iter().map(|x| x * 9.0).collect();
    let classes = [50_256, 7];
    let (scores, chosen) = (buffer(&x), integers(&classes));
    let got = run(&sizes([1024, 4096, 16_384]), rows, |out, setting| {
        cross_entropy(&scores, &chosen, out, [rows, columns], setting)
    });
    let losses = x.chunks(columns).zip(classes);
    let want: Vec<f32> = losses
        .map(|(row, class)| cross_entropy::reference(row, class))
        .collect();
    assert_close(&got, &want);
}

#[test]
fn rows_become_logarithms_of_shares() {
    let shape @ [_, columns] = [3, 2503];
    let x: Vec<f32> = numbers(3 * 2503).iter().map(|x| x * 9.0).collect();
    let scores = buffer(&x);
    let got = run(&sizes([256, 1024, 4096]), x.len(), |out, setting| {
        log_softmax(&scores, out, shape, setting)
    });
    for (got, row) in got.chunks(columns).zip(x.chunks(columns)) {
        assert_close(got, &log_softmax::reference(row));
    }
}

/// The tokens of many rows with the same scores, in tiles of at least so many columns.
fn drawn(
    device: &Device,
    scores: &[f32],
    rows: usize,
    draw: Draw,
    (block, warps): (usize, u32),
) -> Result<Vec<i32>> {
    let all = Buffer::from_slice(device, &scores.repeat(rows))?;
    let mut tokens = Buffer::zeros(device, rows)?;
    let setting = Setting {
        block,
        schedule: exactile::Schedule::AUTO.warps(warps),
        ..Setting::default()
    };
    exactile_kernels::sampling(&all, &mut tokens, draw, [rows, scores.len()], &setting)?;
    Ok(read(&tokens))
}

/// Each column that may be drawn is, as often as its size says, and no other.
#[test]
fn tokens_are_drawn_by_their_scores() -> Result<()> {
    let scores: Vec<f32> = numbers(50).iter().map(|x| x * 2.0).collect();
    let rows = 1500;
    for (best, share) in [(8, 0.6), (8, 1.0), (1, 1.0), (16, 0.01)] {
        let draw = Draw {
            best,
            heat: 0.7,
            share,
            seed: 5,
        };
        let golden = drawn(&Device::cpu(), &scores, rows, draw, (0, 1))?;
        for (device, block, warps) in [
            (Device::interpreter(), 64, 1),
            (Device::cpu(), 128, 1),
            (Device::cpu(), 512, 1),
            (Device::lanes(), 0, 1),
            (Device::lanes(), 128, 4),
        ] {
            let found = drawn(&device, &scores, 40, draw, (block, warps))?;
            assert_eq!(found, golden[..40], "{device}, {block}");
        }
        let kept = sampling::reference(&scores, draw);
        let whole: f64 = kept.iter().map(|(_, size)| size).sum();
        let mut found = 0;
        for (token, size) in &kept {
            let times = golden.iter().filter(|&found| found == token).count();
            let want = size / whole * rows as f64;
            assert!(
                (times as f64 - want).abs() < 5.0 * want.sqrt(),
                "{token}: {times}, {want}"
            );
            found += times;
        }
        assert_eq!(found, rows);
    }
    Ok(())
}
