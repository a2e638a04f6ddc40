//! Random numbers by counters: known answers, and the same bits everywhere.

use exactile::prelude::*;
use exactile_harness::testing::conformance::philox;

use crate::language::devices;

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

#[kernel]
fn long_words(key: Ptr<u64>, counter: Ptr<u64>, out: PtrMut<u64>) {
    let at = arange(0, 4);
    let key = [0, 1].map(|word| load(key + at * 2 + word));
    let counter = [0, 1, 2, 3].map(|word| load(counter + at * 4 + word));
    for (word, found) in philox4x64(key, counter).into_iter().enumerate() {
        store(out + at * 4 + word, found);
    }
    store(out + 16 + at, randint64(7, at.to::<i32>() - 2));
    store(out + 20 + at, randint64(load(out), at - 2));
    store(out + 24, randint64(7, scalar::<i64>(1)));
}

/// Philox of 64 bits as the paper has it.
fn long_philox(mut key: [u64; 2], mut counter: [u64; 4]) -> [u64; 4] {
    let product = |x: u64, factor: u64| {
        let product = u128::from(x) * u128::from(factor);
        ((product >> 64) as u64, product as u64)
    };
    for _ in 0..10 {
        let (high, low) = product(counter[0], 0xd2e7_470e_e14c_6c93);
        let (upper, lower) = product(counter[2], 0xca5a_8263_9512_1157);
        counter = [
            upper ^ counter[1] ^ key[0],
            lower,
            high ^ counter[3] ^ key[1],
            low,
        ];
        key[0] = key[0].wrapping_add(0x9e37_79b9_7f4a_7c15);
        key[1] = key[1].wrapping_add(0xbb67_ae85_84ca_a73b);
    }
    counter
}

/// Keys, counters and results of `philox4x64 10` in the file `kat_vectors` of Random123, and others.
#[test]
fn known_answers_of_64_bits() {
    let ones = u64::MAX;
    let key = [
        0,
        0,
        ones,
        ones,
        0x4528_21e6_38d0_1377,
        0xbe54_66cf_34e9_0c6c,
        5,
        9,
    ];
    let mut counter = [0; 16];
    counter[4..8].fill(ones);
    counter[8..12].copy_from_slice(&[
        0x243f_6a88_85a3_08d3,
        0x1319_8a2e_0370_7344,
        0xa409_3822_299f_31d0,
        0x082e_fa98_ec4e_6c89,
    ]);
    counter[12] = 3;
    let known = [
        [
            0x1655_4d9e_ca36_314c,
            0xdb20_fe9d_672d_0fdc,
            0xd7e7_72ce_e186_176b,
            0x7e68_b68a_ec7b_a23b,
        ],
        [
            0x87b0_92c3_013f_e90b,
            0x438c_3c67_be8d_0224,
            0x9cc7_d7c6_9cd7_77b6,
            0xa09c_aebf_594f_0ba0,
        ],
        [
            0xa528_f454_03e6_1d95,
            0x38c7_2dbd_566e_9788,
            0xa5a1_610e_72fd_18b5,
            0x57bd_43b5_e52b_7fe6,
        ],
    ];
    let first = |key: u64, offset: u64| long_philox([key, 0], [offset, 0, 0, 0])[0];
    let mut want = known.concat();
    want.extend(long_philox([5, 9], [3, 0, 0, 0]));
    let offsets: [i32; 4] = [-2, -1, 0, 1];
    want.extend(offsets.map(|it| first(7, u64::from(it as u32))));
    want.extend(offsets.map(|it| first(known[0][0], i64::from(it) as u64)));
    want.push(first(7, 1));
    for device in devices() {
        let [key, counter] =
            [&key[..], &counter].map(|it| Buffer::from_slice(&device, it).expect("fits"));
        let mut out = Buffer::<u64>::zeros(&device, 25).expect("fits");
        long_words()
            .run(&device, 1, (&key, &counter, &mut out))
            .expect("runs");
        assert_eq!(out.to_vec().expect("reads"), want, "{device}");
    }
}

#[kernel]
fn few_rounds<const ROUNDS: usize>(out: PtrMut<u32>) {
    let key = [scalar::<u32>(0xa409_3822_u32), scalar(0x299f_31d0_u32)];
    let counter =
        [0x243f_6a88_u32, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344].map(|it| scalar::<u32>(it));
    for (word, found) in philox4x32_rounds(ROUNDS, key, counter)
        .into_iter()
        .enumerate()
    {
        store(out + word, found);
    }
}

/// No round leaves the counter, 7 and 10 are those of `kat_vectors`.
#[test]
fn rounds_are_a_number() {
    let cases = [
        (0, [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344]),
        (7, [0x4dfc_caba, 0x190a_87f0, 0xc473_62ba, 0xb6b5_242a]),
        (10, [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]),
    ];
    for device in devices() {
        for (rounds, want) in cases {
            let mut out = Buffer::<u32>::zeros(&device, 4).expect("fits");
            let launch = few_rounds().rounds(rounds);
            launch.run(&device, 1, (&mut out,)).expect("runs");
            assert_eq!(out.to_vec().expect("reads"), want, "{device} {rounds}");
        }
    }
}
