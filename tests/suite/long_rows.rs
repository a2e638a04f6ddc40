//! Long rows that no vector divides, which bulk copies bring to shared memory as long as it has room.

use exactile::prelude::*;
use exactile::{ListingStage, Number, Target, bf16};
use exactile_kernels::softmax::softmax;

/// Numbers of all kinds.
fn numbers<T>([rows, columns]: [usize; 2], number: fn(f32) -> T) -> Vec<T> {
    let number = |at: usize| number((at * 7919 % 4001) as f32 / 64.0 - 31.0);
    (0..rows * columns).map(number).collect()
}

/// Whether code for an H100 copies the rows of a softmax of this shape.
fn is_copied<T: Float + Number>(shape: [usize; 2], number: fn(f32) -> T) -> bool {
    lanes(shape, number).contains("copy_span")
}

/// What a lane of an H100 does for a softmax of this shape.
fn lanes<T: Float + Number>(shape: [usize; 2], number: fn(f32) -> T) -> String {
    let device = Device::cpu();
    let [rows, columns] = shape;
    let x = Buffer::from_slice(&device, &numbers(shape, number)).expect("fits");
    let mut out = Buffer::<T>::zeros(&device, rows * columns).expect("fits");
    let kernel = softmax::<T>().block(columns.next_power_of_two());
    let inspection = kernel
        .inspect(&device, rows, (&x, &mut out, columns as i32))
        .expect("compiles");
    let lanes = inspection.on(Target::SM_90A).text(ListingStage::Lane);
    lanes.expect("compiles")
}

/// The bits of a softmax.
fn bits<T: Float + Number>(device: &Device, shape: [usize; 2], number: fn(f32) -> T) -> Vec<u64> {
    let [rows, columns] = shape;
    let x = Buffer::from_slice(device, &numbers(shape, number)).expect("fits");
    let mut out = Buffer::<T>::zeros(device, rows * columns).expect("fits");
    let kernel = softmax::<T>().block(columns.next_power_of_two());
    kernel
        .launch(device, rows, (&x, &mut out, columns as i32))
        .expect("runs");
    let out = out.to_vec().expect("reads");
    out.into_iter().map(Number::to_bits).collect()
}

#[test]
fn rows_are_copied_where_there_is_room() {
    let half = bf16::from_f32;
    for (columns, copied) in [
        (8191, false),
        (9001, true),
        (14_337, false),
        (18_000, false),
        (18_001, true),
        (30_001, false),
        (50_257, true),
        (57_345, false),
    ] {
        assert_eq!(is_copied([1, columns], |it| it), copied, "{columns} of f32");
    }
    for (columns, copied) in [
        (12_289, false),
        (16_389, true),
        (32_768, false),
        (32_776, true),
        (50_176, true),
        (50_257, true),
        (57_344, false),
    ] {
        assert_eq!(is_copied([1, columns], half), copied, "{columns} of bf16");
    }
}

#[test]
fn rows_too_long_to_hold_are_read_again_by_two_thread_blocks() {
    let again = "lane warps=16 occupancy=2 ";
    for columns in [50_176, 50_257] {
        let text = lanes([1, columns], bf16::from_f32);
        assert!(text.contains(again), "{columns} of bf16");
    }
    assert!(!lanes([1, 30_001], bf16::from_f32).contains("occupancy"));
    assert!(!lanes([1, 50_257], |it: f32| it).contains("occupancy"));
}

#[test]
fn copied_rows_have_the_bits_of_the_cpu() {
    let (cpu, lanes, gpu) = (Device::cpu(), Device::lanes(), Device::cuda(0).ok());
    let (wide, half) = (|it: f32| it, bf16::from_f32);
    for device in [Some(lanes), gpu].into_iter().flatten() {
        for shape in [[3, 9001], [1, 8193]] {
            let expected = bits(&cpu, shape, wide);
            assert!(bits(&device, shape, wide) == expected, "{shape:?} of f32");
        }
        for shape in [[3, 16_389], [1, 16_385], [2, 33_001], [1, 32_784]] {
            let expected = bits(&cpu, shape, half);
            assert!(bits(&device, shape, half) == expected, "{shape:?} of bf16");
        }
    }
}
