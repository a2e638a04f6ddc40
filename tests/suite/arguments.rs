//! What a kernel takes: many parameters, structures, tuples, arrays and options of them, every number.

use exactile::Number;
use exactile::prelude::*;

use super::language::{devices, upload};

#[kernel]
fn sixty_four(
    out: PtrMut<i32>,
    x0: i32,
    x1: i32,
    x2: i32,
    x3: i32,
    x4: i32,
    x5: i32,
    x6: i32,
    x7: i32,
    x8: i32,
    x9: i32,
    x10: i32,
    x11: i32,
    x12: i32,
    x13: i32,
    x14: i32,
    x15: i32,
    x16: i32,
    x17: i32,
    x18: i32,
    x19: i32,
    x20: i32,
    x21: i32,
    x22: i32,
    x23: i32,
    x24: i32,
    x25: i32,
    x26: i32,
    x27: i32,
    x28: i32,
    x29: i32,
    x30: i32,
    x31: i32,
    x32: i32,
    x33: i32,
    x34: i32,
    x35: i32,
    x36: i32,
    x37: i32,
    x38: i32,
    x39: i32,
    x40: i32,
    x41: i32,
    x42: i32,
    x43: i32,
    x44: i32,
    x45: i32,
    x46: i32,
    x47: i32,
    x48: i32,
    x49: i32,
    x50: i32,
    x51: i32,
    x52: i32,
    x53: i32,
    x54: i32,
    x55: i32,
    x56: i32,
    x57: i32,
    x58: i32,
    x59: i32,
    x60: i32,
    x61: i32,
    x62: i32,
) {
    let all = [
        x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14, x15, x16, x17, x18, x19,
        x20, x21, x22, x23, x24, x25, x26, x27, x28, x29, x30, x31, x32, x33, x34, x35, x36, x37,
        x38, x39, x40, x41, x42, x43, x44, x45, x46, x47, x48, x49, x50, x51, x52, x53, x54, x55,
        x56, x57, x58, x59, x60, x61, x62,
    ];
    let mut sum = scalar::<i32>(0);
    for (weight, x) in all.into_iter().enumerate() {
        sum += x * (weight % 5);
    }
    store(out, sum);
}

#[test]
fn a_kernel_takes_sixty_four_parameters() {
    for device in devices() {
        let mut out = upload(&device, &[0i32]);
        sixty_four()
            .run(
                &device,
                1,
                (
                    &mut out, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19,
                    20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39,
                    40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59,
                    60, 61, 62,
                ),
            )
            .expect("runs");
        let want: i32 = (0..63).map(|x| x * (x % 5)).sum();
        assert_eq!(out.to_vec().expect("reads"), [want]);
    }
}

/// What one step of a fit knows beside the weights.
#[derive(Clone, Copy, KernelArguments)]
struct Step<T: Float> {
    rate: Scalar<T>,
    gradients: Ptr<T>,
    momentum: Momentum<T>,
}

#[derive(Clone, Copy, KernelArguments)]
struct Momentum<T: Float>(PtrMut<T>, [Scalar<T>; 2]);

#[device]
fn moved<T: Float>(step: Step<T>, at: Tile<i64>, inside: Tile<bool>) -> Tile<T> {
    let Momentum(means, [keeps, takes]) = step.momentum;
    let gradient = load(step.gradients + at).mask(inside);
    let mean = load(means + at).mask(inside) * keeps + gradient * takes;
    store(means + at, mean).mask(inside);
    mean * step.rate
}

#[kernel(BLOCK = 4)]
fn fit<T: Float, const BLOCK: usize>(
    weights: PtrMut<T>,
    step: Step<T>,
    bounds: (T, T),
    sides: [Tensor<T, 1>; 2],
    n: i32,
) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let inside = at < n;
    let (low, high) = bounds;
    let [left, right] = sides;
    let moved = load(weights + at).mask(inside) - moved(step, at, inside);
    let clamped = minimum(maximum(moved, low), high);
    let start = program_id(0) * BLOCK;
    let sides = left.tile([BLOCK]).at_offset([start]).load()
        + right.tile([BLOCK]).at_offset([start]).load();
    store(weights + at, clamped + sides).mask(inside);
}

#[test]
fn structures_tuples_and_arrays_are_parameters() {
    let n = 7;
    for device in devices() {
        let numbers = |scale: f32| -> Vec<f32> { (0..n).map(|i| scale * i as f32).collect() };
        let mut weights = upload(&device, &numbers(1.0));
        let gradients = upload(&device, &numbers(-2.0));
        let mut means = upload(&device, &numbers(0.5));
        let side = upload(&device, &numbers(8.0));
        for _ in 0..2 {
            let step = StepArguments {
                rate: 0.5,
                gradients: &gradients,
                momentum: MomentumArguments(&mut means, [0.25, 0.75]),
            };
            let views = [[3], [7]].map(|extents| side.view(extents).expect("fits"));
            fit::<f32>()
                .run(&device, 2, (&mut weights, step, (-1.0, 5.0), views, n))
                .expect("runs");
        }
        let (mut want, mut mean) = (numbers(1.0), numbers(0.5));
        for _ in 0..2 {
            for i in 0..n as usize {
                mean[i] = mean[i] * 0.25 + numbers(-2.0)[i] * 0.75;
                let side = 8.0 * i as f32;
                let both = if i < 3 { side + side } else { side };
                want[i] = (want[i] - mean[i] * 0.5).clamp(-1.0, 5.0) + both;
            }
        }
        assert_eq!(weights.to_vec().expect("reads"), want);
        assert_eq!(means.to_vec().expect("reads"), mean);
    }
}

#[kernel(BLOCK = 4)]
fn affine<T: Float, const BLOCK: usize>(
    x: Ptr<T>,
    scale: Option<Ptr<T>>,
    bias: Option<Ptr<T>>,
    shift: Option<T>,
    rows: Option<Tensor<T, 1>>,
    out: PtrMut<T>,
    copy: Option<PtrMut<T>>,
) {
    let at = arange(0, BLOCK);
    let mut y = load(x + at);
    if let Some(scale) = scale {
        y *= load(scale + at);
    }
    if let Some(bias) = bias {
        y += load(bias + at);
    }
    if let Some(shift) = shift {
        y += shift;
    }
    if let Some(rows) = rows {
        y += rows.tile([BLOCK]).at([0]).load();
    }
    store(out + at, y);
    if let Some(copy) = copy {
        store(copy + at, y);
    }
}

/// Kernels with and without a parameter are two, also where the rest of their arguments is the same.
#[test]
fn options_are_there_or_not() {
    for device in devices() {
        let x = upload(&device, &[1.0f32, 2.0, 3.0, 4.0]);
        let by = upload(&device, &[10.0f32, 20.0, 30.0, 40.0]);
        let mut out = upload(&device, &[0.0f32; 4]);
        let mut copy = upload(&device, &[0.0f32; 4]);
        let kernel = affine::<f32>();
        kernel.check().expect("is a kernel with all of them");
        for _ in 0..3 {
            kernel
                .run(
                    &device,
                    1,
                    (&x, Some(&by), None, None, None, &mut out, None),
                )
                .expect("scales");
            assert_eq!(out.to_vec().expect("reads"), [10.0, 40.0, 90.0, 160.0]);
            kernel
                .run(
                    &device,
                    1,
                    (&x, None, Some(&by), None, None, &mut out, None),
                )
                .expect("adds");
            assert_eq!(out.to_vec().expect("reads"), [11.0, 22.0, 33.0, 44.0]);
            let view = by.view([2]).expect("fits");
            let arguments = (
                &x,
                None,
                None,
                Some(0.5),
                Some(view),
                &mut out,
                Some(&mut copy),
            );
            kernel.run(&device, 1, arguments).expect("adds two");
            assert_eq!(out.to_vec().expect("reads"), [11.5, 22.5, 3.5, 4.5]);
            assert_eq!(copy.to_vec().expect("reads"), [11.5, 22.5, 3.5, 4.5]);
        }
    }
}

#[kernel]
fn keeps<T: Element>(out: PtrMut<T>, number: T, others: [T; 2], last: Option<T>) {
    store(out, number);
    store(out + 1, others[0]);
    store(out + 2, others[1]);
    if let Some(last) = last {
        store(out + 3, last);
    }
}

fn kept<T: Number + Element>(numbers: [T; 4]) {
    for device in devices() {
        let mut out = upload(&device, &[T::default(); 4]);
        let [a, b, c, d] = numbers;
        keeps::<T>()
            .run(&device, 1, (&mut out, a, [b, c], Some(d)))
            .expect("runs");
        let bits = |numbers: &[T]| -> Vec<u64> { numbers.iter().map(|it| it.to_bits()).collect() };
        assert_eq!(bits(&out.to_vec().expect("reads")), bits(&numbers));
    }
}

#[test]
fn every_number_is_a_parameter() {
    kept([false, true, true, false]);
    kept([i8::MIN, -1, 5, i8::MAX]);
    kept([i16::MIN, -1, 5, i16::MAX]);
    kept([i32::MIN, -1, 5, i32::MAX]);
    kept([i64::MIN, -1, 5, i64::MAX]);
    kept([0u8, 1, 200, u8::MAX]);
    kept([0u16, 1, 200, u16::MAX]);
    kept([0u32, 1, 200, u32::MAX]);
    kept([0u64, 1, 200, u64::MAX]);
    kept([0.0f32, -0.0, 1e-45, f32::INFINITY]);
    kept([0.0f64, -0.0, 5e-324, f64::INFINITY]);
    kept([0, 1, 0x8000, 0x7bff].map(f16::from_bits));
    kept([0, 1, 0x8000, 0x7f7f].map(bf16::from_bits));
    kept([0, 1, 0x80, 0x7e].map(F8E4M3::from_bits));
    kept([0, 1, 0x80, 0x7c].map(F8E5M2::from_bits));
}
