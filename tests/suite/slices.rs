//! Slices of the program as arguments: the same bits as buffers, and no copies.

use exactile::prelude::*;
use exactile::{Error, TensorView, TensorViewMut, f16};

#[kernel]
fn scaled<T: Float>(x: Ptr<T>, y: PtrMut<T>, n: i32) {
    let at = program_id(0) * 32 + arange(0, 32);
    let inside = at < n;
    store(y + at, load(x + at).mask(inside) * 3.0).mask(inside);
}

#[kernel]
fn transposed(x: Tensor<f32, 2>, y: TensorMut<f32, 2>) {
    let (row, column) = (program_id(0), program_id(1));
    let tile = load(x.tile([8, 8]).at((column, row)));
    store(y.tile([8, 8]).at((row, column)), tile.transpose());
}

fn hosts() -> [Device; 3] {
    [Device::interpreter(), Device::cpu(), Device::lanes()]
}

#[test]
fn slices_have_the_bits_of_buffers_wherever_they_begin() {
    let x: Vec<f32> = (0..103).map(|index| index as f32 / 7.0).collect();
    let halves: Vec<f16> = x.iter().map(|&x| f16::from_f32(x)).collect();
    for device in hosts() {
        for first in [0, 1, 2, 3, 4, 5] {
            let (x, halves) = (&x[first..], &halves[first..]);
            let (n, count) = (x.len() as i32, x.len());
            let mut y = vec![f32::NAN; count + 1];
            // Nothing but the slice is written, whatever divides its address.
            let kernel = scaled::<f32>();
            kernel
                .run(&device, 4, (x, &mut y[..count], n))
                .expect("runs");
            assert!(y[count].is_nan());
            assert!(
                y.iter().zip(x).all(|(y, x)| *y == x * 3.0),
                "{first} on {device}"
            );
            let buffer = Buffer::from_slice(&device, halves).expect("fits");
            let mut copied = Buffer::<f16>::zeros(&device, count).expect("fits");
            let mut lent = vec![f16::ZERO; count];
            let kernel = scaled::<f16>();
            kernel
                .run(&device, 4, (&buffer, &mut copied, n))
                .expect("runs");
            kernel
                .run(&device, 4, (halves, &mut lent[..], n))
                .expect("runs");
            assert_eq!(
                copied.to_vec().expect("is read"),
                lent,
                "{first} on {device}"
            );
        }
    }
}

#[test]
fn accesses_outside_a_slice_are_errors() {
    let x = [1.0f32; 32];
    for device in hosts() {
        let mut y = [0.0f32; 40];
        let kernel = scaled::<f32>();
        // The second launch is no proved one: the slice is shorter.
        for (len, n, right) in [
            (32, 32, true),
            (31, 32, false),
            (31, 31, true),
            (0, 1, false),
        ] {
            let told = kernel.run(&device, 1, (&x[..len], &mut y[..32], n));
            match told {
                Ok(()) => assert!(right, "{len} {n} on {device}"),
                Err(Error::OutOfBounds {
                    argument, length, ..
                }) => {
                    assert!(!right && argument == "x" && length == len as u64);
                }
                Err(error) => panic!("{error}"),
            }
        }
        kernel
            .launch(&device, 1, (&x[..4], &mut y[..32], 9))
            .expect("is queued");
        assert!(device.synchronize().is_err(), "{device} tells nothing");
        assert_eq!(y[32..], [0.0; 8]);
    }
}

#[test]
fn views_of_slices_have_extents_and_strides() {
    let x: Vec<f32> = (0..16 * 24).map(|index| index as f32).collect();
    for device in hosts() {
        let mut y = vec![0.0f32; 24 * 16];
        let view = TensorView::of_slice(&x, [16, 24]).expect("fits");
        let out = TensorViewMut::of_slice(&mut y, [24, 16]).expect("fits");
        transposed()
            .run(&device, (3, 2), (view, out))
            .expect("runs");
        for (at, y) in y.iter().enumerate() {
            assert_eq!(*y, x[at % 16 * 24 + at / 16], "{device}");
        }
        // Back by strides alone.
        let mut back = vec![0.0f32; 24 * 16];
        let out = TensorViewMut::of_strided_slice(&mut back, [24, 16], [1, 24]).expect("fits");
        let view = TensorView::of_strided_slice(&x, [16, 24], [24, 1]).expect("fits");
        transposed()
            .run(&device, (3, 2), (view, out))
            .expect("runs");
        assert_eq!(back, x, "{device}");
    }
    assert!(TensorView::of_slice(&x, [16, 25]).is_err());
    assert!(TensorView::of_strided_slice(&x, [usize::MAX, 2], [usize::MAX, 1]).is_err());
    assert!(TensorViewMut::of_slice(&mut [0u8; 3], [2, 2]).is_err());
}

/// A GPU has no way to the memory of the program.
#[test]
fn a_gpu_refuses_slices() {
    let Ok(device) = Device::cuda(0) else {
        return;
    };
    let mut y = [0.0f32; 32];
    let kernel = scaled::<f32>();
    let told = kernel.run(&device, 1, (&[1.0f32; 32][..], &mut y[..], 32));
    assert!(
        matches!(told, Err(Error::Placement { index: 0, .. })),
        "{told:?}"
    );
}
