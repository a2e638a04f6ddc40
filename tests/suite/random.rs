//! Random numbers by counters: known answers, and the same bits everywhere.

use exactile::prelude::*;
use exactile_harness::testing::conformance::philox;

fn devices() -> Vec<Device> {
    vec![Device::interpreter(), Device::lanes(), Device::cpu()]
}

#[kernel]
fn words(key: Ptr<u32>, counter: Ptr<u32>, out: PtrMut<u32>) {
    let at = arange(0, 4);
    let key = [0, 1].map(|word| load(key + at * 2 + word));
    let counter = [0, 1, 2, 3].map(|word| load(counter + at * 4 + word));
    let found = philox4x32(key, counter);
    for (word, found) in found.into_iter().enumerate() {
        store(out + at * 4 + word, found);
    }
}

/// Keys, counters and results of `philox4x32 10` in the file `kat_vectors` of Random123.
#[test]
fn known_answers() {
    let ones = u32::MAX;
    let key = [0, 0, ones, ones, 0xa409_3822, 0x299f_31d0, 0, 0];
    let mut counter = [0; 16];
    counter[4..8].fill(ones);
    counter[8..12].copy_from_slice(&[0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344]);
    let zeros = [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8];
    let want = [
        zeros,
        [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd],
        [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
        zeros,
    ];
    for device in devices() {
        let [key, counter] =
            [&key[..], &counter].map(|it| Buffer::from_slice(&device, it).expect("fits"));
        let mut out = Buffer::<u32>::zeros(&device, 16).expect("fits");
        let launch = words();
        launch
            .run(&device, 1, (&key, &counter, &mut out))
            .expect("runs");
        assert_eq!(out.to_vec().expect("reads"), want.concat());
    }
}

#[kernel(BLOCK = 128)]
fn draw<const BLOCK: usize>(
    word: PtrMut<u32>,
    uniform: PtrMut<f32>,
    normal: PtrMut<f32>,
    seed: u64,
    first: i64,
) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    store(word + at, randint(seed, at + first));
    store(uniform + at, rand(seed, at + first));
    store(normal + at, randn(seed, at + first));
}

fn uniform(word: u32) -> f32 {
    let signed = word.cast_signed();
    let magnitude = if signed < 0 { -(signed + 1) } else { signed };
    magnitude as f32 * 4.656_612_6e-10
}

#[test]
fn draws_follow_seed_and_offset_alone() {
    const COUNT: usize = 1024;
    for (seed, first) in [(0, 0), (42, 1 << 33), (u64::MAX, -3)] {
        for (device, block) in devices().into_iter().zip([128, 256, 64]) {
            let mut word = Buffer::<u32>::zeros(&device, COUNT).expect("fits");
            let [mut flat, mut normal] =
                [(); 2].map(|()| Buffer::<f32>::zeros(&device, COUNT).expect("fits"));
            let kernel = draw().block(block);
            kernel
                .run(
                    &device,
                    COUNT / block,
                    (&mut word, &mut flat, &mut normal, seed, first),
                )
                .expect("runs");
            let [flat, normal] = [flat, normal].map(|it| it.to_vec().expect("reads"));
            let words = word.to_vec().expect("reads");
            for at in 0..COUNT {
                let offset = (first + at as i64).cast_unsigned();
                let [a, b, _, _] = philox(seed, offset);
                assert_eq!(words[at], a);
                assert_eq!(flat[at], uniform(a));
                assert!((0.0..1.0).contains(&flat[at]));
                let radius = (-2.0 * f64::from(uniform(a).max(1e-7)).ln()).sqrt();
                let angle = f64::from(uniform(b) * std::f32::consts::TAU);
                let want = radius * angle.cos();
                assert!(
                    (f64::from(normal[at]) - want).abs() < 1e-6,
                    "{} {want}",
                    normal[at]
                );
            }
            let mean = normal.iter().sum::<f32>() / COUNT as f32;
            let square = normal.iter().map(|x| x * x).sum::<f32>() / COUNT as f32;
            assert!(
                mean.abs() < 0.15 && (square - 1.0).abs() < 0.2,
                "{mean} {square}"
            );
        }
    }
}
