//! Typed launches: arguments, grids, errors that name the source, devices.

use exactile::prelude::*;
use exactile::{Error, assert_bits_equal};

use crate::language::devices;

#[kernel(BLOCK = 8)]
fn scale<T: Float, const BLOCK: usize>(x: Ptr<T>, y: PtrMut<T>, n: i32) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let inside = at < n;
    store(y + at, load(x + at).mask(inside) * 2.0).mask(inside);
}

/// Forgets the mask of the store.
#[kernel(BLOCK = 8)]
fn overrun<const BLOCK: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: i32) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let value = load(x + at).mask(at < n);
    store(y + at, value);
}

#[test]
fn results_come_back() {
    for device in devices() {
        let x = Buffer::from_slice(
            &device,
            &[1.0f32, 2.5, -3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, -0.0],
        )
        .expect("fits");
        let mut y = Buffer::<f32>::zeros(&device, 10).expect("fits");
        let kernel = scale::<f32>();
        kernel.run(&device, 2, (&x, &mut y, 10)).expect("runs");
        let want = [2.0f32, 5.0, -6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 18.0, -0.0];
        assert_bits_equal(&y, &want);
    }
}

#[test]
fn an_access_out_of_bounds_names_line_program_and_index() {
    for device in devices() {
        let x = Buffer::<f32>::zeros(&device, 10).expect("fits");
        let mut y = Buffer::<f32>::zeros(&device, 10).expect("fits");
        let result = overrun().run(&device, 2, (&x, &mut y, 10));
        match result {
            Err(Error::OutOfBounds {
                kernel,
                loc,
                argument,
                length,
                program,
                element,
                offset,
            }) => {
                assert_eq!((kernel.as_str(), argument.as_str()), ("overrun", "y"));
                assert!(loc.file.ends_with("launch.rs"), "{loc}");
                assert_eq!(loc.line, 20);
                assert_eq!((length, program, element, offset), (10, [1, 0, 0], 2, 10));
            }
            other => panic!("{device}: expected an error, found {other:?}"),
        }
    }
}

#[test]
fn an_empty_grid_does_nothing() {
    for device in devices() {
        let x = Buffer::<f32>::from_slice(&device, &[]).expect("fits");
        let mut y = Buffer::<f32>::from_slice(&device, &[]).expect("fits");
        let kernel = scale::<f32>();
        kernel
            .run(&device, 0, (&x, &mut y, 0))
            .expect("does nothing");
    }
}

#[test]
fn wrong_grids_are_errors() {
    let device = Device::interpreter();
    let x = Buffer::<f32>::zeros(&device, 1).expect("fits");
    let mut y = Buffer::<f32>::zeros(&device, 1).expect("fits");
    let kernel = scale::<f32>();
    let negative = kernel.run(&device, -1, (&x, &mut y, 1));
    let message = negative.expect_err("negative").to_string();
    assert!(message.contains("grid extent `-1`"), "{message}");
    let large = kernel.run(&device, (1, 1u64 << 32), (&x, &mut y, 1));
    assert!(matches!(large, Err(Error::Invalid(_))));
}

#[test]
fn a_kernel_is_compiled_once_for_arguments_alike() {
    // 16 divides the count or not, which the interpreter takes no notice of.
    for (device, codes) in [(Device::lanes(), 2), (Device::interpreter(), 1)] {
        let kernel = scale::<f32>();
        let x = Buffer::<f32>::zeros(&device, 32).expect("fits");
        let mut y = Buffer::<f32>::zeros(&device, 32).expect("fits");
        for n in [32, 17, 16, 5] {
            kernel.run(&device, 4, (&x, &mut y, n)).expect("runs");
        }
        assert_eq!(device.compiled_kernels(), codes, "{device}");
    }
}

#[test]
fn launches_proved_in_bounds_skip_the_checks() {
    let device = Device::cpu();
    let kernel = scale::<f32>();
    let x = Buffer::from_slice(&device, &[1.0f32; 32]).expect("fits");
    let mut y = Buffer::<f32>::zeros(&device, 32).expect("fits");
    for launches in 1..4 {
        kernel.run(&device, 4, (&x, &mut y, 32)).expect("runs");
        assert_bits_equal(&y, &[2.0f32; 32]);
        // Checked code first, unchecked code from the second launch on.
        assert_eq!(device.compiled_kernels(), launches.min(2));
        y.spoil().expect("is on the host");
    }
    let mut short = Buffer::<f32>::zeros(&device, 31).expect("fits");
    let result = kernel.run(&device, 4, (&x, &mut short, 32));
    assert!(
        matches!(result, Err(Error::OutOfBounds { .. })),
        "{result:?}"
    );
}

#[test]
fn devices_that_are_missing_say_why() {
    if cfg!(feature = "nvptx") {
        return;
    }
    let message = Device::cuda(0).expect_err("no GPU code here").to_string();
    assert!(message.contains("feature `nvptx`"), "{message}");
}

#[kernel]
fn marks(out: PtrMut<i32>) {
    store(out + program_id(0), scalar(1));
}

#[test]
fn a_sample_of_programs_is_spread_over_the_grid() {
    for device in [Device::cpu(), Device::interpreter(), Device::lanes()] {
        let few = device.sampling(3);
        let mut out = Buffer::<i32>::zeros(&few, 9).expect("fits");
        marks().launch(&few, 9, (&mut out,)).expect("is valid");
        assert_eq!(out.to_vec().expect("ran"), [1, 0, 0, 0, 1, 0, 0, 0, 1]);
    }
}
