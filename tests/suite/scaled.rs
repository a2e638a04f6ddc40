//! Operands of matrix products that are narrow: of both floats of 8 bits, and with scales of their blocks.

use exactile::prelude::*;
use exactile_core::random::Random;

use super::language::{devices, upload};

#[kernel]
fn multiplies(a: Ptr<F8E4M3>, b: Ptr<F8E5M2>, out: PtrMut<f32>, other: PtrMut<f32>) {
    let (row, column) = (arange(0, 16).expand(1), arange(0, 16).expand(0));
    let (left, right) = (load(a + row * 16 + column), load(b + row * 16 + column));
    store(out + row * 16 + column, dot(left, right, zeros([16, 16])));
    let sum = dot_with(Precision::Ieee, right, left, zeros([16, 16]));
    store(other + row * 16 + column, sum);
}

/// The chain of fused multiply-adds over the exact numbers.
fn chain(a: &[f32], b: &[f32], [m, n, k]: [usize; 3]) -> Vec<f32> {
    let product = |at: usize| {
        let (row, column) = (at / n, at % n);
        (0..k).fold(0.0, |sum: f32, inner| {
            a[row * k + inner].mul_add(b[inner * n + column], sum)
        })
    };
    (0..m * n).map(product).collect()
}

#[test]
fn floats_of_eight_bits_of_both_kinds_multiply() {
    let mut random = Random::new(41);
    let mut byte = || (random.bits() & 0xff) as u8;
    let a: Vec<F8E4M3> = (0..256).map(|_| F8E4M3::from_bits(byte() & 0xbf)).collect();
    let b: Vec<F8E5M2> = (0..256).map(|_| F8E5M2::from_bits(byte() & 0xbf)).collect();
    let left: Vec<f32> = a.iter().map(|&x| x.to_f32()).collect();
    let right: Vec<f32> = b.iter().map(|&x| x.to_f32()).collect();
    let wants = [chain(&left, &right, [16; 3]), chain(&right, &left, [16; 3])];
    for device in devices() {
        let (a, b) = (upload(&device, &a), upload(&device, &b));
        let mut out = Buffer::<f32>::zeros(&device, 256).expect("fits");
        let mut other = Buffer::<f32>::zeros(&device, 256).expect("fits");
        multiplies()
            .run(&device, 1, (&a, &b, &mut out, &mut other))
            .expect("runs");
        assert_eq!(out.to_vec().expect("reads"), wants[0], "{device}");
        assert_eq!(other.to_vec().expect("reads"), wants[1], "{device}");
    }
}

#[kernel]
fn refuses(a: Ptr<F8E4M3>, b: Ptr<F8E5M2>, out: PtrMut<f32>) {
    let at = arange(0, 32).expand(1) * 32 + arange(0, 32).expand(0);
    let sum = dot_with(
        Precision::Hopper,
        load(a + at),
        load(b + at),
        zeros([32, 32]),
    );
    store(out + at, sum);
}

#[test]
fn tensor_cores_take_operands_of_one_type() {
    let errors = refuses().trace().expect_err("is refused");
    let text = errors.to_string();
    assert!(
        text.contains("`dot` with precision `hopper` of `tile<32x32xf8e4m3>`"),
        "{text}"
    );
    assert!(text.contains("`Precision::Ieee`"), "{text}");
}

#[kernel]
fn leaves_nan_to_others(a: Ptr<f32>, out: PtrMut<f32>) {
    let at = arange(0, 32).expand(1) * 32 + arange(0, 32).expand(0);
    let sum = dot_with(Precision::Cut, load(a + at), load(a + at), zeros([32, 32]));
    store(out + at, sum);
}

#[test]
fn products_that_do_not_look_for_nan_are_for_the_compiler() {
    let errors = leaves_nan_to_others().trace().expect_err("is refused");
    let text = errors.to_string();
    let told =
        "`Precision::Cut` is for the compiler, which looks for NaN: take `Precision::Hopper`";
    assert!(text.contains(told), "{text}");
}

const ROWS: usize = 4;
const COLUMNS: usize = 8;
const INNER: usize = 64;

#[kernel]
fn multiplies_blocks<T: SingleFloat, U: SingleFloat>(
    a: Ptr<T>,
    a_scales: Ptr<u8>,
    b: Ptr<T>,
    b_scales: Ptr<u8>,
    scaled: PtrMut<U>,
    out: PtrMut<f32>,
) {
    let (row, column) = (arange(0, ROWS).expand(1), arange(0, COLUMNS).expand(0));
    let (across, down) = (arange(0, INNER).expand(0), arange(0, INNER).expand(1));
    let blocks = arange(0, INNER / 32);
    let left = load(a + row * INNER + across);
    let left = left.block_scaled::<f32>(load(a_scales + row * (INNER / 32) + blocks.expand(0)), 1);
    let right = load(b + down * COLUMNS + column);
    let right = right.block_scaled::<f32>(load(b_scales + blocks.expand(1) * COLUMNS + column), 0);
    store(scaled + row * INNER + across, left.to::<U>());
    let sum = dot(left, right, zeros([ROWS, COLUMNS]));
    store(out + row * COLUMNS + column, sum);
}

fn scale(byte: u8) -> f64 {
    match byte {
        255 => f64::NAN,
        exponent => 2f64.powi(i32::from(exponent) - 127),
    }
}

macro_rules! blocks_of {
    ($($name:ident $T:ty, $U:ty;)*) => { $(
        #[test]
        fn $name() {
            let mut random = Random::new(43);
            let mut byte = || (random.bits() & 0xff) as u8;
            let a: Vec<$T> = (0..ROWS * INNER).map(|_| <$T>::from_bits(byte() & 0xbf)).collect();
            let b: Vec<$T> = (0..INNER * COLUMNS).map(|_| <$T>::from_bits(byte() & 0xbf)).collect();
            let a_scales = [0, 1, 254, 255, 127, 100, 130, 119];
            let b_scales: Vec<u8> = (0..INNER / 32 * COLUMNS).map(|_| 120 + byte() % 16).collect();
            let left: Vec<f32> = (0..a.len())
                .map(|at| f64::from(a[at].to_f32()) * scale(a_scales[at / 32]))
                .map(|x| x as f32)
                .collect();
            let right: Vec<f32> = (0..b.len())
                .map(|at| f64::from(b[at].to_f32()) * scale(b_scales[at / COLUMNS / 32 * COLUMNS + at % COLUMNS]))
                .map(|x| x as f32)
                .collect();
            let want = chain(&left, &right, [ROWS, COLUMNS, INNER]);
            for device in devices() {
                let (a, b) = (upload(&device, &a), upload(&device, &b));
                let scales = (upload(&device, &a_scales), upload(&device, &b_scales));
                let mut scaled = Buffer::<$U>::zeros(&device, ROWS * INNER).expect("fits");
                let mut out = Buffer::<f32>::zeros(&device, ROWS * COLUMNS).expect("fits");
                multiplies_blocks::<$T, $U>()
                    .run(&device, 1, (&a, &scales.0, &b, &scales.1, &mut scaled, &mut out))
                    .expect("runs");
                for (at, (found, &want)) in scaled.to_vec().expect("reads").into_iter().zip(&left).enumerate() {
                    let want = <$U>::from_f32(want);
                    let same = found.to_bits() == want.to_bits() || (found.is_nan() && want.is_nan());
                    assert!(same, "{at}: {found:?}, not {want:?}");
                }
                exactile::assert_bits_equal(&out.to_vec().expect("reads"), &want);
            }
        }
    )* };
}

trait FromSingle {
    fn from_f32(x: f32) -> Self;
}
impl FromSingle for half::bf16 {
    fn from_f32(x: f32) -> Self {
        half::bf16::from_f32(x)
    }
}
impl FromSingle for f32 {
    fn from_f32(x: f32) -> Self {
        x
    }
}

blocks_of! {
    blocks_of_e4m3_in_singles F8E4M3, f32;
    blocks_of_e5m2_in_singles F8E5M2, f32;
    blocks_of_e4m3_in_brains F8E4M3, half::bf16;
}

#[kernel]
fn scales_that_do_not_fit(a: Ptr<F8E4M3>, scales: Ptr<u8>, out: PtrMut<f32>) {
    let at = arange(0, 64).reshape([2, 32]);
    let scales = load(scales + arange(0, 4).reshape([4, 1]));
    store(out + at, load(a + at).block_scaled::<f32>(scales, 1));
}

#[test]
fn scales_have_the_shape_of_the_blocks() {
    let errors = scales_that_do_not_fit().trace();
    let text = errors.expect_err("does not fit").to_string();
    let want = "`block_scaled` along axis 1: scales of shape [4, 1] for numbers of shape [2, 32]";
    assert!(text.contains(want), "{text}");
}

#[kernel]
fn unpacks(x: Ptr<u8>, scales: Ptr<u8>, out: PtrMut<half::bf16>) {
    let (row, column) = (arange(0, 16).expand(1), arange(0, 16).expand(0));
    let numbers = unpack_e2m1(load(x + row * 16 + column));
    let scales = load(scales + row);
    store(
        out + row * 32 + arange(0, 32).expand(0),
        numbers.block_scaled(scales, 1),
    );
}

#[test]
fn bytes_hold_two_floats() {
    let magnitudes = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    let number = |code: u8| match code & 8 {
        0 => magnitudes[usize::from(code)],
        _ => -magnitudes[usize::from(code & 7)],
    };
    let bytes: Vec<u8> = (0..=255).collect();
    let scales: Vec<u8> = (0..16).map(|row| 110 + 2 * row).collect();
    let want: Vec<half::bf16> = bytes
        .iter()
        .flat_map(|&byte| {
            [byte & 15, byte >> 4].map(|code| (number(code), scales[usize::from(byte) / 16]))
        })
        .map(|(number, byte)| half::bf16::from_f64(number * scale(byte)))
        .collect();
    for device in devices() {
        let (x, scales) = (upload(&device, &bytes), upload(&device, &scales));
        let mut out = Buffer::<half::bf16>::zeros(&device, 512).expect("fits");
        unpacks()
            .run(&device, 1, (&x, &scales, &mut out))
            .expect("runs");
        exactile::assert_bits_equal(&out.to_vec().expect("reads"), &want);
    }
}
