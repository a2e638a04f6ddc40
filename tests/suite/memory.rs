//! Memory that the system does not have: an error, never the end of the process.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use exactile::{Array, Buffer, Comparable, DType, Device, Error, Number, compare};
use exactile_harness::npy;

/// What a child of these tests may map, in KiB, and a buffer that fits once.
const LIMIT: usize = 2 << 20;
const LEN: usize = 300 << 20;

fn is_short<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Memory { .. }))
}

/// Runs this binary's test `name` in a process with little memory, or `work` where this is one.
fn with_little_memory(name: &str, work: impl FnOnce()) {
    const CHILD: &str = "EXACTILE_TEST_LITTLE_MEMORY";
    if std::env::var_os(CHILD).is_some() {
        return work();
    }
    let binary = std::env::current_exe().expect("the test's binary has a path");
    let output = Command::new("sh")
        .args(["-c", "ulimit -v \"$0\"; exec \"$@\""])
        .arg(LIMIT.to_string())
        .arg(binary)
        .args(["--exact", name, "--test-threads", "1", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .expect("a shell starts");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {text}", output.status);
}

#[test]
fn lengths_that_overflow_are_errors() {
    let cpu = Device::cpu();
    for len in [usize::MAX, usize::MAX / 8 + 1, usize::MAX / 16 + 1] {
        assert!(Buffer::<f64>::zeros(&cpu, len).is_err());
        assert!(Array::zeros(DType::F64, [len]).is_err());
        assert!(Array::zeros(DType::F64, [len, 2]).is_err());
    }
    assert!(is_short(Buffer::<u8>::zeros(&cpu, 1 << 50)));
    assert!(is_short(Array::zeros(DType::U8, [1 << 50])));
}

#[test]
fn copies_that_do_not_fit_are_errors() {
    with_little_memory("memory::copies_that_do_not_fit_are_errors", || {
        let cpu = Device::cpu();
        let buffer = Buffer::<f32>::zeros(&cpu, LEN).expect("once it fits");
        assert!(is_short(buffer.to_vec()));
        assert!(is_short(buffer.to_device(&cpu)));
        assert!(is_short(buffer.to_array()));
        assert!(is_short(compare(&buffer, &buffer)));
        drop(buffer);
        let array = Array::zeros(f32::DTYPE, [LEN]).expect("once it fits");
        assert!(is_short(array.to_vec::<f32>()));
        assert!(is_short(array.to_array()));
        assert!(is_short(compare(&array, &array)));
        drop(array);
        let vector = vec![0f32; LEN];
        assert!(is_short(Buffer::from_slice(&cpu, &vector)));
        assert!(is_short(vector.to_array()));
    });
}

#[test]
fn files_that_do_not_fit_are_errors() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("large.npy");
    with_little_memory("memory::files_that_do_not_fit_are_errors", || {
        for order in ["False", "True"] {
            let header =
                format!("{{'descr': '<f4', 'fortran_order': {order}, 'shape': (2, {LEN})}}");
            let mut file = File::create(&path).expect("the folder is writable");
            let len = u16::try_from(header.len()).expect("a short header");
            file.write_all(b"\x93NUMPY\x01\x00")
                .expect("the disk has room");
            file.write_all(&len.to_le_bytes())
                .expect("the disk has room");
            file.write_all(header.as_bytes())
                .expect("the disk has room");
            let bytes = 10 + header.len() as u64 + 8 * LEN as u64;
            file.set_len(bytes).expect("the file has holes");
            assert!(is_short(npy::read(&path)));
        }
        std::fs::remove_file(&path).expect("the file was written");
    });
}
