//! NPY files: round trips, files of NumPy, foreign byte orders, and files that are not what they
//! should be.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use exactile::{Array, DType, Error, bf16};
use exactile_core::ir::Literal;
use exactile_harness::npy;

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn round_trip(name: &str, array: &Array) -> Array {
    let path = file(name);
    npy::write(&path, array).expect("the folder is writable");
    npy::read(&path).expect("the file was just written")
}

/// What files hold for `dtype`: the integers of its width where NumPy has no such float.
fn npy_type(dtype: DType) -> DType {
    match dtype.npy().starts_with('u') {
        true => dtype.unsigned(),
        false => dtype,
    }
}

#[test]
fn arrays_come_back_as_they_were() {
    for (index, &dtype) in DType::ALL.iter().enumerate() {
        let stored = npy_type(dtype);
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
            assert_eq!(back.dtype(), stored);
            assert_eq!(back.shape(), shape);
            assert_eq!(back.bytes(), array.bytes());
        }
    }
}

#[test]
fn bf16_is_stored_as_u16() {
    let array = Array::from_slice([2], &[bf16::ONE, bf16::NEG_ONE]).expect("two elements");
    let back = round_trip("bf16.npy", &array);
    assert_eq!(
        back.to_vec::<u16>().expect("stored as u16"),
        [0x3f80, 0xbf80]
    );
}

/// The bytes of a line of `numpy.txt`, in which `\xNN` and `\n` stand for what is no printable ASCII.
fn bytes_of(line: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = line.as_bytes();
    while let [first, after @ ..] = rest {
        (rest, bytes) = match (first, after) {
            (b'\\', [b'n', after @ ..]) => (after, [bytes, vec![b'\n']].concat()),
            (b'\\', [b'x', high, low, after @ ..]) => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16).expect("a digit") as u8;
                (after, [bytes, vec![digit(high) << 4 | digit(low)]].concat())
            }
            (byte, after) => (after, [bytes, vec![*byte]].concat()),
        };
    }
    bytes
}

/// What NumPy put into the files of rank 2: 1 to 6, or three `True` among six.
fn numbers(dtype: DType) -> Array {
    let shape = [2, 3];
    let numbers = if dtype == DType::Bool {
        [1.0, 0.0, 1.0, 0.0, 0.0, 1.0]
    } else {
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    };
    let bits = numbers.map(|number| Literal::from_f64(dtype, number).bits.to_le_bytes());
    let bytes: Vec<u8> = bits
        .iter()
        .flat_map(|bits| &bits[..dtype.bytes() as usize])
        .copied()
        .collect();
    Array::from_bytes(dtype, shape, &bytes).expect("six elements")
}

#[test]
fn files_of_numpy_are_read_and_ours_are_the_same() {
    let path = crate::root().join("tests/npy/numpy.txt");
    let lines = std::fs::read_to_string(path).expect("the file is part of the repository");
    let mut seen = std::collections::BTreeMap::new();
    for line in lines.lines() {
        let (path, bytes) = (file("numpy.npy"), bytes_of(line));
        std::fs::write(&path, &bytes).expect("the folder is writable");
        let array = npy::read(&path).unwrap_or_else(|error| panic!("{line}: {error}"));
        *seen.entry(array.dtype().name()).or_insert(0) += 1;
        if array.shape().len() == 2 && !array.is_empty() {
            let want = numbers(array.dtype());
            assert_eq!(array.shape(), want.shape(), "{line}");
            assert_eq!(array.bytes(), want.bytes(), "{line}");
        }
        let native = !line.contains("'>") && !line.contains("True") && bytes[6] == 1;
        if native {
            npy::write(&path, &array).expect("the folder is writable");
            let ours = std::fs::read(&path).expect("the file was just written");
            assert_eq!(ours, bytes, "{line}");
        }
    }
    let own = DType::ALL.iter().filter(|&&dtype| npy_type(dtype) == dtype);
    assert_eq!(seen.len(), own.count(), "all that NumPy has: {seen:?}");
}

/// A file with the given text as header, of version 2, which has room for long ones.
fn with_header(name: &str, text: &str, data: &[u8]) -> PathBuf {
    let mut bytes = b"\x93NUMPY\x02\x00".to_vec();
    bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
    bytes.extend_from_slice(data);
    let path = file(name);
    std::fs::write(&path, bytes).expect("the folder is writable");
    path
}

/// A file as NumPy writes it, with the given description.
fn raw(name: &str, kind: &str, fortran: &str, shape: &str, data: &[u8]) -> PathBuf {
    let text = format!("{{'descr': '{kind}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
    with_header(name, &text, data)
}

fn refusal(path: &Path) -> String {
    match npy::read(path) {
        Err(error @ Error::Format { .. }) => error.to_string(),
        other => panic!("expected a refusal, found {other:?}"),
    }
}

#[test]
fn files_are_as_long_as_announced_in_either_order() {
    for order in ["False", "True"] {
        for (len, found) in [(20, "20"), (25, "25"), (0, "0")] {
            let path = raw("length.npy", "<f4", order, "(2, 3)", &vec![1; len]);
            let message = refusal(&path);
            let expected = format!("needs 24 bytes, found {found}");
            assert!(message.contains(&expected), "{message}");
        }
    }
}

#[test]
fn nested_headers_are_refused_at_once() {
    for open in ["[", "(", "{", "({'a': ["] {
        let text = open.repeat(60_000 / open.len());
        let nested = with_header("nested.npy", &text, &[]);
        let shape = raw("nested_shape.npy", "<f4", "False", &text, &[]);
        for path in [nested, shape] {
            let begin = Instant::now();
            let message = refusal(&path);
            let time = begin.elapsed();
            assert!(time < Duration::from_millis(10), "{open}: {time:?}");
            assert!(message.len() < 400, "{message}");
        }
    }
}

#[test]
fn a_header_of_four_gigabytes_is_refused_unread() {
    let path = file("claims.npy");
    std::fs::write(&path, b"\x93NUMPY\x02\x00\xff\xff\xff\xff{").expect("the folder is writable");
    let message = refusal(&path);
    assert!(message.contains("header of 4294967295 bytes"), "{message}");
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

/// Whoever reads while others write sees one of the arrays, whole.
#[test]
fn threads_write_one_file_whole() {
    let folder = file("threads_npy");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the folder is writable");
    let path = folder.join("one.npy");
    let array = |thread: usize| {
        let numbers = vec![thread as i64; 1000 * (thread + 1)];
        Array::from_slice([numbers.len()], &numbers).expect("as many as the shape says")
    };
    npy::write(&path, &array(0)).expect("the folder is writable");
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let path = &path;
            scope.spawn(move || {
                for _ in 0..20 {
                    npy::write(path, &array(thread)).expect("the folder is writable");
                    let read = npy::read(path).expect("is whole");
                    let numbers = read.to_vec::<i64>().expect("are integers");
                    let first = usize::try_from(numbers[0]).expect("is a thread");
                    assert_eq!(read.bytes(), array(first).bytes());
                }
            });
        }
    });
    let left = std::fs::read_dir(&folder).expect("the folder is there");
    assert_eq!(left.count(), 1, "partial files are left");
}
