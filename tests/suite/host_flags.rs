//! Launches under flags that a host library has left, and after a kernel has changed.

#![expect(unsafe_code, reason = "flags of the processor have no safe interface")]

use std::sync::atomic::{AtomicBool, Ordering};

use exactile::internals::forget_code;
use exactile::prelude::*;
use exactile::{Array, Error, ListingStage, Result, Tolerance, assert_bits_equal, compare_within};

#[kernel]
fn halves(x: Ptr<f32>, y: PtrMut<f32>) {
    let least = full([1], 1e-38);
    store(y + arange(0, 1), least * 0.5);
    store(y + arange(1, 2), load(x) * 0.5 + 1.0e-40);
    store(y + arange(2, 3), full([1], 1.0) / 3.0);
}

fn halved(device: &Device) -> Result<Vec<f32>> {
    let x = Buffer::from_slice(device, &[1e-38f32])?;
    let mut y = Buffer::<f32>::zeros(device, 3)?;
    halves().run(device, 1, (&x, &mut y))?;
    y.to_vec()
}

fn set_flags(flags: u32) {
    // SAFETY: rounding and subnormals do no harm to the arithmetic between the two calls, which
    // is that of the launches.
    unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &flags, options(nostack, readonly)) };
}

/// What `ask` gives where a host library has left subnormals dropped and another rounding.
fn under_other_flags<R>(ask: impl FnOnce() -> R) -> R {
    set_flags(0x1f80 | 1 << 15 | 1 << 6 | 0x4000);
    let got = ask();
    set_flags(0x1f80);
    got
}

#[test]
fn the_host_does_not_change_bits() {
    let devices = || [Device::interpreter(), Device::lanes(), Device::cpu()];
    let want = devices().map(|device| halved(&device));
    let got = under_other_flags(|| devices().map(|device| halved(&device)));
    for (got, want) in got.into_iter().zip(want) {
        assert_bits_equal(&got.expect("runs"), &want.expect("runs"));
    }
}

#[test]
fn the_host_does_not_change_comparisons() {
    let array = |number: f64| Array::from_slice([1], &[number]).expect("one element");
    let [got, want] = [5e-324, 1e-323].map(array);
    let tolerance = Tolerance {
        absolute: 0.0,
        relative: 0.0,
        nan_equals_nan: true,
    };
    let close = || {
        let compared = compare_within(&got, &want, tolerance).expect("of one type");
        compared.within_tolerance()
    };
    assert!(!close());
    assert!(!under_other_flags(close));
}

#[test]
fn the_host_does_not_change_listings() {
    let text = || {
        let kernel = halves();
        [ListingStage::Trace, ListingStage::Block, ListingStage::Clif]
            .map(|stage| kernel.listing(stage).expect("compiles"))
    };
    assert!(under_other_flags(text) == text());
}

static GREW: AtomicBool = AtomicBool::new(false);

#[kernel]
fn grows(y: PtrMut<f32>) {
    let end = if GREW.load(Ordering::Relaxed) {
        1024
    } else {
        4
    };
    store(y + arange(0, end), 1.0);
}

/// A proof speaks for one trace only.
#[test]
fn a_kernel_that_is_traced_anew_is_checked_anew() {
    let device = Device::cpu();
    let mut y = Buffer::<f32>::zeros(&device, 4).expect("fits");
    let mut launch = || grows().run(&device, 1, (&mut y,));
    launch().expect("runs");
    launch().expect("is proved");
    GREW.store(true, Ordering::Relaxed);
    forget_code(&device);
    assert!(matches!(launch(), Err(Error::OutOfBounds { .. })));
}
