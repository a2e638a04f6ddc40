//! NPY files: round trips, foreign byte orders, and files that are not what they should be.

use std::path::PathBuf;

use exactile::{Array, DType, Error, bf16, npy};

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn round_trip(name: &str, array: &Array) -> Array {
    let path = file(name);
    npy::write(&path, array).expect("the folder is writable");
    npy::read(&path).expect("the file was just written")
}

#[test]
fn arrays_come_back_as_they_were() {
    for (index, &dtype) in DType::ALL.iter().enumerate() {
        if dtype == DType::BF16 {
            continue;
        }
        for shape in [vec![], vec![0], vec![3], vec![2, 1, 5]] {
            let mut array = Array::zeros(dtype, &shape).expect("a small shape");
            for (position, byte) in array.bytes_mut().iter_mut().enumerate() {
                *byte = if dtype == DType::Bool {
                    1
                } else {
                    (position * 7 + index) as u8
                };
            }
            let back = round_trip(&format!("trip_{dtype}_{}.npy", shape.len()), &array);
            assert_eq!(back.dtype(), dtype);
            assert_eq!(back.shape(), shape);
            assert_eq!(back.bytes(), array.bytes());
        }
    }
}

#[test]
fn bf16_is_stored_as_u16() {
    let array = Array::from_slice(&[2], &[bf16::ONE, bf16::NEG_ONE]).expect("two elements");
    let back = round_trip("bf16.npy", &array);
    assert_eq!(
        back.to_vec::<u16>().expect("stored as u16"),
        [0x3f80, 0xbf80]
    );
}

/// A file as NumPy writes it, with the given description.
fn raw(name: &str, kind: &str, fortran: &str, shape: &str, data: &[u8]) -> PathBuf {
    let mut text = format!("{{'descr': '{kind}', 'fortran_order': {fortran}, 'shape': {shape}, }}");
    text.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend_from_slice(&(text.len() as u16).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
    bytes.extend_from_slice(data);
    let path = file(name);
    std::fs::write(&path, bytes).expect("the folder is writable");
    path
}

#[test]
fn foreign_orders_are_converted() {
    let big = raw("big.npy", ">i2", "False", "(2,)", &[0, 1, 0x12, 0x34]);
    let array = npy::read(&big).expect("big-endian is read");
    assert_eq!(array.to_vec::<i16>().expect("i16"), [1, 0x1234]);
    let fortran = raw("fortran.npy", "|u1", "True", "(2, 3)", &[1, 4, 2, 5, 3, 6]);
    let array = npy::read(&fortran).expect("Fortran order is read");
    assert_eq!(array.to_vec::<u8>().expect("u8"), [1, 2, 3, 4, 5, 6]);
}

#[test]
fn wrong_files_are_errors() {
    let short = raw("short.npy", "<f4", "False", "(4,)", &[0; 8]);
    let message = npy::read(&short).expect_err("too short").to_string();
    assert!(message.contains("needs 16 bytes, found 8"), "{message}");
    let complex = raw("complex.npy", "<c8", "False", "(1,)", &[0; 8]);
    assert!(matches!(npy::read(&complex), Err(Error::Format { .. })));
    assert!(matches!(
        npy::read(&file("absent.npy")),
        Err(Error::File { .. })
    ));
    let text = file("text.npy");
    std::fs::write(&text, "not an array").expect("the folder is writable");
    assert!(matches!(npy::read(&text), Err(Error::Format { .. })));
}
