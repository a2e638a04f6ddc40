//! What kernels print: the same text on every device, whoever ran first.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use exactile::text_kernel::{TextArgument, TextKernel};
use exactile::{Array, Error, Options, assert_bits_equal, prelude::*};
use exactile_core::ir::{DType, Literal};

use crate::language::{devices, upload};

/// The lines of what `run` does on a device, one after the other: all tests have one GPU, and its lines have one reader.
fn lines(device: &Device, run: impl FnOnce()) -> Vec<String> {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let lines = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&lines);
    device.on_print(move |line| seen.lock().expect("no panic").push(line.to_string()));
    run();
    device.on_print(|_| {});
    let mut lines = lines.lock().expect("no panic");
    std::mem::take(&mut *lines)
}

#[kernel(BLOCK = 4)]
fn shown<const BLOCK: usize>(x: Ptr<f16>, out: PtrMut<f32>, n: i32) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let x = load(x + at).mask(at < n);
    let y = x.to::<f32>() * 0.5;
    device_print("x", x).mask((x < 0.0) & (at < n));
    for i in range(0, 2) {
        device_print("step", i).mask(program_id(0) == 2);
        device_print("pair", y.reshape([2, 2])).mask((program_id(0) == 1) & (i == 1));
    }
    store(out + at, y).mask(at < n);
}

#[test]
fn lines_come_by_program_and_then_in_order() {
    let x = [1.0, -2.0, -0.0, 4.0, 5.0, 6.5, 7.0, -8.0, 9.0, 10.0, -11.0];
    let numbers: Vec<f16> = x.iter().map(|&x| f16::from_f32(x)).collect();
    let half: Vec<f32> = x.iter().map(|x| x * 0.5).collect();
    for device in devices() {
        let input = upload(&device, &numbers);
        let mut out = Buffer::<f32>::zeros(&device, 11).expect("fits");
        let found = lines(&device, || {
            let kernel = shown();
            kernel
                .run(&device, 3, (&input, &mut out, 11))
                .expect("runs");
        });
        let expected = [
            "30:5 (0, 0, 0) x[1]: -2.0",
            "30:5 (1, 0, 0) x[3]: -8.0",
            "33:9 (1, 0, 0) pair[0, 0]: 2.5",
            "33:9 (1, 0, 0) pair[0, 1]: 3.25",
            "33:9 (1, 0, 0) pair[1, 0]: 3.5",
            "33:9 (1, 0, 0) pair[1, 1]: -4.0",
            "30:5 (2, 0, 0) x[2]: -11.0",
            "32:9 (2, 0, 0) step: 0",
            "32:9 (2, 0, 0) step: 1",
        ];
        let places = found.iter().map(|line| {
            let (file, rest) = line.split_once(".rs:").expect("a place");
            assert!(file.ends_with("print"), "{line}");
            rest
        });
        assert_eq!(places.collect::<Vec<_>>(), expected, "{device}");
        assert_bits_equal(&out, &half);
    }
}

#[kernel]
fn of_type<T: Element>(x: Ptr<T>) {
    device_print("x", load(x + arange(0, 4)));
}

/// What four numbers are shown as.
fn shown_as<T: Element>(device: &Device, x: [T; 4]) -> Vec<String> {
    let input = upload(device, &x);
    let found = lines(device, || {
        let ran = of_type::<T>().run(device, 1, (&input,));
        ran.expect("runs");
    });
    let texts = found.iter().enumerate().map(|(at, line)| {
        let (_, text) = line.split_once(&format!("x[{at}]: ")).expect("a number");
        text.to_string()
    });
    texts.collect()
}

#[test]
fn numbers_of_every_type_are_shown() {
    macro_rules! integers {
        ($device:expr, $($T:ty)*) => { $(
            let x = [<$T>::MIN, <$T>::MAX, 0, 7];
            assert_eq!(shown_as($device, x), x.map(|x| x.to_string()), "{}", stringify!($T));
        )* };
    }
    macro_rules! floats {
        ($device:expr, $($T:ty)*) => { $(
            let x = [1.5, -2.0, -0.0, 0.25].map(<$T>::from_f32);
            assert_eq!(shown_as($device, x), ["1.5", "-2.0", "-0.0", "0.25"], "{}", stringify!($T));
        )* };
    }
    for device in &devices() {
        let flags = [true, false, false, true];
        assert_eq!(shown_as(device, flags), ["true", "false", "false", "true"]);
        integers!(device, i8 i16 i32 i64 u8 u16 u32 u64);
        floats!(device, F8E4M3 F8E5M2 f16 bf16);
        let special = ["-inf", "NaN", "1e-45", "0.1"];
        assert_eq!(
            shown_as(device, [f32::NEG_INFINITY, f32::NAN, 1e-45, 0.1]),
            special
        );
        let special = ["-inf", "NaN", "5e-324", "0.1"];
        assert_eq!(
            shown_as(device, [f64::NEG_INFINITY, f64::NAN, 5e-324, 0.1]),
            special
        );
    }
}

#[kernel(BLOCK = 1024)]
fn much<const BLOCK: usize>(out: PtrMut<i32>) {
    let at = arange(0, BLOCK);
    device_print("at", at);
    store(out + program_id(0), at.sum(0).to::<i32>());
}

#[test]
fn what_finds_no_room_is_counted() {
    for device in devices() {
        let mut out = Buffer::<i32>::zeros(&device, 70).expect("fits");
        let found = lines(&device, || {
            let launched = much().launch(&device, 70, (&mut out,));
            launched.expect("runs");
        });
        // A launch that prints has ended when it returns.
        assert_eq!(found.len(), 63 * 1024 + 1, "{device}");
        let last = found.last().expect("some");
        assert!(
            last.starts_with("7 prints of this launch found no room"),
            "{last}"
        );
        assert_bits_equal(&out, &[1023 * 512; 70]);
    }
}

#[kernel]
fn failing(x: Ptr<i64>, out: PtrMut<i64>) {
    let x = load(x + program_id(0));
    device_print("x", x);
    device_assert(x != 3, "x is not three");
    store(out + program_id(0), x);
}

#[test]
fn what_was_printed_before_an_error_is_seen() {
    for device in devices() {
        let x = upload(&device, &[1i64, 3, 5]);
        let mut out = Buffer::<i64>::zeros(&device, 3).expect("fits");
        let found = lines(&device, || {
            let launched = failing().launch(&device, 3, (&x, &mut out));
            assert!(
                matches!(launched, Err(Error::Assertion { .. })),
                "{launched:?}"
            );
            device.synchronize().expect("it was told");
        });
        // The interpreter runs no program behind one that fails.
        for (line, end) in found.iter().zip(["(0, 0, 0) x: 1", "(1, 0, 0) x: 3"]) {
            assert!(line.ends_with(end), "{device}: {found:?}");
        }
        assert!(found.len() >= 2, "{device}: {found:?}");
    }
}

#[kernel]
fn misplaced(out: PtrMut<i32>) {
    let printed = device_print("n", program_id(0));
    store(out, 1);
    printed.mask(program_id(0) == 1);
}

#[test]
fn a_mask_follows_at_once() {
    let device = Device::cpu();
    let mut out = Buffer::<i32>::zeros(&device, 1).expect("fits");
    let refused = misplaced().run(&device, 1, (&mut out,));
    let message = refused.expect_err("is refused").to_string();
    let reason = "`mask` does not directly follow a `print`";
    assert!(message.contains(reason), "{message}");
}

/// What `Kernel::ir` gives, run as text.
#[test]
fn kernels_in_text_form_print_the_same() {
    let ir = shown().ir().expect("traces");
    let kernel = TextKernel::parse(&ir, "shown.bir", Options::default()).expect("is valid");
    let numbers: Vec<f16> = (0..11u8)
        .map(|x| f16::from_f32(f32::from(x) - 4.5))
        .collect();
    let mut golden: Option<Vec<String>> = None;
    for device in devices() {
        let mut arguments = BTreeMap::from([
            (
                "x".to_string(),
                TextArgument::Array(Array::from_slice([11], &numbers).expect("fits")),
            ),
            (
                "out".to_string(),
                TextArgument::Array(Array::zeros(DType::F32, [11]).expect("fits")),
            ),
            (
                "n".to_string(),
                TextArgument::Scalar(Literal::from_bits(DType::I32, 11)),
            ),
        ]);
        let found = lines(&device, || {
            kernel
                .run(&device, [3, 1, 1], &mut arguments)
                .expect("runs");
        });
        assert_eq!(found.len(), 5 + 4 + 2, "{found:?}");
        assert!(found[0].contains(" (0, 0, 0) x[0]: -4.5"), "{found:?}");
        assert_eq!(
            golden.get_or_insert_with(|| found.clone()),
            &found,
            "{device}"
        );
    }
    let other = ir.replace(&format!("words={}", 1 << 16), "words=64");
    let kernel = TextKernel::parse(&other, "shown.bir", Options::default()).expect("is valid");
    let refused = kernel.run(&Device::cpu(), [1; 3], &mut BTreeMap::new());
    let message = refused.expect_err("another record").to_string();
    assert!(
        message.contains("writes to the last parameter"),
        "{message}"
    );
}

#[kernel(BLOCK = 2)]
fn several<const BLOCK: usize>(x: Ptr<f32>, out: PtrMut<f32>) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let x = load(x + at);
    let narrow = at.to::<i16>() - 1;
    device_print("both", (x, narrow)).mask(x > 0.0);
    device_print("bits", (x, narrow, x > 0.0))
        .hexadecimal()
        .mask(program_id(0) == 1);
    device_print("one", program_id(0)).hexadecimal();
    store(out + at, x);
}

#[test]
fn several_values_and_bits_are_shown() {
    for device in devices() {
        let x = upload(&device, &[1.5f32, -1.0, 0.0, 2.0]);
        let mut out = Buffer::<f32>::zeros(&device, 4).expect("fits");
        let found = lines(&device, || {
            let kernel = several();
            kernel.run(&device, 2, (&x, &mut out)).expect("runs");
        });
        let expected = [
            "(0, 0, 0) both.0[0]: 1.5",
            "(0, 0, 0) both.1[0]: -1",
            "(0, 0, 0) one: 0x0000000000000000",
            "(1, 0, 0) both.0[1]: 2.0",
            "(1, 0, 0) both.1[1]: 2",
            "(1, 0, 0) bits.0[0]: 0x00000000",
            "(1, 0, 0) bits.0[1]: 0x40000000",
            "(1, 0, 0) bits.1[0]: 0x0001",
            "(1, 0, 0) bits.1[1]: 0x0002",
            "(1, 0, 0) bits.2[0]: 0x0",
            "(1, 0, 0) bits.2[1]: 0x1",
            "(1, 0, 0) one: 0x0000000000000001",
        ];
        let texts = found
            .iter()
            .map(|line| line.split_once(' ').expect("a place").1);
        assert_eq!(texts.collect::<Vec<_>>(), expected, "{device}");
    }
}

#[kernel]
fn misplaced_format(out: PtrMut<f32>) {
    store(out, 1.0).hexadecimal();
}

#[test]
fn a_format_without_a_print_is_refused() {
    let error = misplaced_format().check().expect_err("is refused");
    let text = error.to_string();
    assert!(
        text.contains("`hexadecimal` does not directly follow a `device_print`"),
        "{text}"
    );
}
