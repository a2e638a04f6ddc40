//! Many launches keep no memory: what a process has after some thousands of them is what it had before.

use std::fs;
use std::ops::Range;
use std::process::Command;

use exactile::prelude::*;

#[kernel(BLOCK = 64)]
fn scales<const BLOCK: usize>(x: Ptr<f32>, out: PtrMut<f32>, n: i32, factor: f32) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    store(out + at, load(x + at).mask(at < n) * factor).mask(at < n);
}

/// What the process has in memory, in bytes.
fn resident() -> usize {
    let text = fs::read_to_string("/proc/self/statm").expect("tells the memory");
    let pages = text.split(' ').nth(1).expect("has a second number");
    pages.parse::<usize>().expect("is a number") * 4096
}

/// Launches with other factors and arrays each time, in the default stream and in one of their own, some of which go
/// out of bounds.
fn launches(device: &Device, numbers: Range<usize>) {
    let stream = device.stream().expect("is made");
    for at in numbers {
        let n = (at % 200) as i32;
        let x = Buffer::<f32>::zeros(device, 200).expect("fits");
        let length = if at % 50 == 49 { 10 } else { 200 };
        let mut out = Buffer::<f32>::zeros(device, length).expect("fits");
        let arguments = (&x, &mut out, n, at as f32);
        let is_wrong = n > length as i32;
        match at % 2 {
            0 => scales().launch(&stream, 4, arguments).expect("starts"),
            _ => assert_eq!(scales().run(device, 4, arguments).is_err(), is_wrong),
        }
        if at % 16 == 0 {
            stream.synchronize().expect("has ended");
        }
    }
    stream.synchronize().expect("has ended");
}

/// How much more memory the process has after this.
fn kept(work: impl FnOnce()) -> usize {
    let before = resident();
    work();
    resident().saturating_sub(before)
}

/// What is kept is found from 132 bytes a launch on by the interpreter, from 525 by lanes, and from 11 by the CPU.
const MOST: usize = 512 << 10;

#[test]
fn many_launches_keep_no_memory() {
    const CHILD: &str = "EXACTILE_TEST_STEADY";
    if std::env::var_os(CHILD).is_none() {
        let binary = std::env::current_exe().expect("the test's binary has a path");
        let name = "steady::many_launches_keep_no_memory";
        let output = Command::new(binary)
            .args(["--exact", name, "--test-threads", "1", "--nocapture"])
            .env(CHILD, "1")
            .output()
            .expect("starts");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {text}", output.status);
        return;
    }
    for (device, count) in [
        (Device::interpreter(), 4000),
        (Device::lanes(), 1000),
        (Device::cpu(), 50_000),
    ] {
        // What is kept once, what an allocator has in reserve, and the proofs of bounds: the second round has other factors, which
        // no access follows from.
        launches(&device, 0..count);
        let kept = kept(|| launches(&device, count..2 * count));
        assert!(
            kept < MOST,
            "{count} launches on {device} keep {kept} bytes"
        );
    }
    let leaking = kept(|| {
        launches(&Device::cpu(), 0..50_000);
        for _ in 0..50_000 {
            Vec::<u8>::leak(vec![1; 512]);
        }
    });
    assert!(
        leaking > MOST,
        "memory that is kept is not found: {leaking}"
    );
}
