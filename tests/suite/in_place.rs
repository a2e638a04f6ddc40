//! One array that a kernel reads and writes through two parameters which it declares as a pair.

use exactile::TensorView;
use exactile::prelude::*;

use super::language::{devices, noise, upload};

#[kernel]
fn softmax(rows: InOut<f32>, columns: i32) {
    let at = arange(0, 32);
    let inside = at < columns;
    let start = program_id(0) * columns;
    let row = load(rows.input + start + at)
        .mask(inside)
        .other(f64::NEG_INFINITY);
    let e = exp(row - row.max(0));
    store(rows.output + start + at, e / e.sum(0)).mask(inside);
}

#[test]
fn in_place_has_the_bits_of_two_arrays() {
    let numbers: Vec<f32> = noise(7 * 29).iter().map(|x| x.clamp(-5.0, 5.0)).collect();
    let mut golden: Option<Vec<u32>> = None;
    for device in devices() {
        let mut x = upload(&device, &numbers);
        let mut out = Buffer::<f32>::zeros(&device, 7 * 29).expect("fits");
        let kernel = softmax();
        // In turns: code for one is none for the other.
        for _ in 0..2 {
            x.copy_from_slice(&numbers).expect("fits");
            out.spoil().expect("spoils");
            kernel.run(&device, 7, ((&x, &mut out), 29)).expect("runs");
            kernel.run(&device, 7, (InPlace(&mut x), 29)).expect("runs");
            for found in [&x, &out] {
                let found = found.to_vec().expect("reads");
                let bits: Vec<u32> = found.into_iter().map(f32::to_bits).collect();
                let golden = golden.get_or_insert_with(|| bits.clone());
                assert_eq!(&bits, golden, "{device}");
            }
        }
        // A part of a buffer, and nothing beside it.
        x.copy_from_slice(&numbers).expect("fits");
        let row = x.slice_mut(29..58).expect("is in it");
        kernel.run(&device, 1, (InPlace(row), 29)).expect("runs");
        let found = x.to_vec().expect("reads");
        let rows = out.to_vec().expect("reads");
        assert_eq!(found[..29], numbers[..29]);
        assert_eq!(found[29..58], rows[29..58], "{device}");
        assert_eq!(found[58..], numbers[58..]);
    }
    for device in [Device::interpreter(), Device::lanes(), Device::cpu()] {
        let mut own = numbers.clone();
        softmax()
            .run(&device, 7, (InPlace(&mut own[..]), 29))
            .expect("runs");
        let bits = own.into_iter().map(f32::to_bits).collect();
        assert_eq!(Some(bits), golden, "{device}");
    }
}

/// Each iteration stores what the next one loads where both are one array; loads may not run ahead then.
#[kernel(STAGES = 3)]
fn chain<const STAGES: usize>(numbers: InOut<i32>, steps: i32) {
    let at = arange(0, 64);
    for step in range(0, steps).stages(STAGES) {
        let here = load(numbers.input + step * 64 + at);
        store(numbers.output + (step + 1) * 64 + at, here + 1);
        let again = load(numbers.input + (step + 1) * 64 + at);
        store(numbers.output + step * 64 + at, again * 2);
    }
}

/// What the programs do, one load and store after the other.
fn chained(input: &[i32], steps: usize, in_place: bool) -> Vec<i32> {
    let mut output = if in_place {
        input.to_vec()
    } else {
        vec![0; input.len()]
    };
    for step in 0..steps {
        for at in step * 64..(step + 1) * 64 {
            let here = if in_place { output[at] } else { input[at] };
            output[at + 64] = here + 1;
            let again = if in_place {
                output[at + 64]
            } else {
                input[at + 64]
            };
            output[at] = again * 2;
        }
    }
    output
}

#[test]
fn loads_and_stores_of_a_program_keep_their_order() {
    let steps = 6;
    let numbers: Vec<i32> = (0..(steps as i32 + 1) * 64).map(|x| x * x % 101).collect();
    for device in devices() {
        for stages in [1, 2, 3, 4] {
            let mut x = upload(&device, &numbers);
            let mut out = Buffer::<i32>::zeros(&device, numbers.len()).expect("fits");
            let kernel = chain().stages(stages);
            for _ in 0..2 {
                let run = kernel.run(&device, 1, ((&x, &mut out), steps as i32));
                run.expect("runs");
            }
            let apart = chained(&numbers, steps, false);
            assert_eq!(out.to_vec().expect("reads"), apart, "{stages} on {device}");
            for _ in 0..2 {
                x.copy_from_slice(&numbers).expect("fits");
                let run = kernel.run(&device, 1, (InPlace(&mut x), steps as i32));
                run.expect("runs");
            }
            let one = chained(&numbers, steps, true);
            assert_ne!(one, apart);
            assert_eq!(x.to_vec().expect("reads"), one, "{stages} on {device}");
        }
    }
}

#[kernel]
fn mirrored(planes: TensorInOut<f32, 2>, scale: f32) {
    let (left, right) = (planes.input, planes.output);
    let own = [program_id(0), program_id(1)];
    let numbers = load(left.tile([4, 8]).at(own)) * scale;
    store(right.tile([4, 8]).at(own), numbers);
}

#[test]
fn tensors_in_place_run_backwards_too() {
    let numbers = noise(6 * 13);
    for device in devices() {
        let mut x = upload(&device, &numbers);
        let mut out = Buffer::<f32>::zeros(&device, 6 * 13).expect("fits");
        let kernel = mirrored();
        let source: TensorView<'_, f32, 2> = x.view([6, 13]).expect("fits");
        let source = source.flip(1).expect("flips");
        let target = out.view_mut([6, 13]).expect("fits");
        kernel
            .run(&device, (2, 2), ((source, target), 3.0))
            .expect("runs");
        let rows = out.to_vec().expect("reads");
        for (row, numbers) in rows.chunks(13).zip(numbers.chunks(13)) {
            let expected = numbers.iter().rev().map(|x| x * 3.0);
            assert!(row.iter().copied().eq(expected), "{device}");
        }
        let own = x.view_mut([6, 13]).expect("fits");
        let own = own.flip(0).expect("flips");
        kernel
            .run(&device, (2, 2), (InPlace(own), 3.0))
            .expect("runs");
        let found = x.to_vec().expect("reads").into_iter();
        assert!(found.eq(numbers.iter().map(|x| x * 3.0)), "{device}");
    }
}
