//! Correctly rounded functions at the arguments that are hardest.

use exactile::prelude::*;

use super::language::{devices, upload};

const COUNT: usize = 256;

#[kernel]
fn correct(x: Ptr<f32>, out: PtrMut<f32>) {
    let at = arange(0, COUNT);
    let x = load(x + at);
    let results = [
        cr_exp(x),
        cr_exp2(x),
        cr_log(x),
        cr_log2(x),
        cr_sin(x),
        cr_cos(x),
        cr_tanh(x),
        cr_erf(x),
    ];
    for (row, result) in results.into_iter().enumerate() {
        store(out + at + row * COUNT, result);
    }
}

/// Arguments whose values are so near to the middle between two numbers that `f64` misses them, with the bits of
/// CORE-MATH.
const NEAR: [(usize, u32, u32); 11] = [
    (1, 0x3b42_9d37, 0x3f80_4385),
    (1, 0xbcf3_a937, 0x3f7a_c6b1),
    (2, 0x3c41_3d3a, 0xc08e_158f),
    (2, 0x4117_8feb, 0x400f_e5e7),
    (2, 0x4c5d_65a5, 0x418f_034b),
    (2, 0x65d8_90d3, 0x4254_d1f9),
    (2, 0x6f31_a8ec, 0x4284_5a89),
    (4, 0x4619_9998, 0xbeb1_fa5d),
    (4, 0xc619_9998, 0x3eb1_fa5d),
    (5, 0x5f18_b878, 0x3f7f_14bb),
    (5, 0xe115_cb11, 0x3f78_142f),
];

#[test]
fn correctly_rounded_functions_round_what_is_hardest() {
    let mut numbers = vec![0.0f32; COUNT];
    for (number, (_, bits, _)) in numbers.iter_mut().zip(NEAR) {
        *number = f32::from_bits(bits);
    }
    for device in devices() {
        let x = upload(&device, &numbers);
        let mut out = Buffer::<f32>::zeros(&device, 8 * COUNT).expect("allocates");
        let kernel = correct();
        kernel.run(&device, 1, (&x, &mut out)).expect("runs");
        let found = out.to_vec().expect("reads back");
        for (at, (row, argument, want)) in NEAR.into_iter().enumerate() {
            let found = found[row * COUNT + at].to_bits();
            assert_eq!(found, want, "{device}: function {row} at {argument:#x}");
        }
    }
}
