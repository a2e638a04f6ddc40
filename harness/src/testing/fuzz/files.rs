//! NPY files that nobody wrote: an array or an error, at once, and an array is the same when it is
//! written again.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::npy;
use crate::testing::programs::guarded;
use exactile_core::random::Random;

/// Any file of a few kilobytes is read in less.
const TIME: Duration = Duration::from_secs(5);

/// The most bytes of numbers.
const BYTES: usize = 4096;

const KINDS: &[&str] = &[
    "|b1", "|i1", "|u1", "<i2", ">i2", "<u2", "<i4", ">u4", "<i8", ">u8", "<f2", ">f2", "<f4",
    ">f4", "<f8", ">f8", "|b1", ">i1", "<c8", "|f4", "=f4", "<f16", "|O", "", "\u{e9}",
];

const EXTENTS: &[&str] = &[
    "0",
    "1",
    "1",
    "2",
    "2",
    "3",
    "3",
    "5",
    "7L",
    "03",
    "-1",
    "65536",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "3,,",
    "(2,)",
];

/// Tries one file; what is wrong with it, if anything is, and its bytes.
pub(super) fn case(random: &mut Random) -> Option<(String, String)> {
    let bytes = file(random);
    let name = format!("exactile-{}-{:x}.npy", std::process::id(), random.bits());
    let path = std::env::temp_dir().join(name);
    let judged = guarded(|| judged(&path, &bytes));
    // Absent where it could not be written.
    let _ = std::fs::remove_file(&path);
    let message = judged.err()?;
    Some((message, bytes.escape_ascii().to_string()))
}

fn judged(path: &Path, bytes: &[u8]) -> Result<(), String> {
    std::fs::write(path, bytes).map_err(|error| error.to_string())?;
    let begin = Instant::now();
    let read = npy::read(path);
    if begin.elapsed() > TIME {
        return Err("an NPY file that takes long".to_string());
    }
    let Ok(array) = read else {
        return Ok(());
    };
    let again = npy::write(path, &array).and_then(|()| npy::read(path));
    let again = again.map_err(|error| format!("an array that is not read again: {error}"))?;
    let same = again.dtype() == array.dtype()
        && again.shape() == array.shape()
        && again.bytes() == array.bytes();
    match same {
        true => Ok(()),
        false => Err("an array that is another one when it is read again".to_string()),
    }
}

/// A file, often right, with some changes.
fn file(random: &mut Random) -> Vec<u8> {
    let mut bytes = whole(random);
    if random.one_in(3) {
        return bytes;
    }
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len());
        let other = random.below(bytes.len());
        // A change needs a byte, and leaves one.
        let most = if bytes.len() > 1 { 6 } else { 3 };
        match random.below(most) {
            0 => bytes[at] = random.bits() as u8,
            1 => bytes[at] = random.pick(b"(){}[],:'\"\\L0198 \n|<>FTfuib"),
            2 => bytes[at] ^= 1 << random.below(8),
            3 => drop(bytes.remove(at)),
            4 => bytes.insert(at, bytes[other]),
            _ => bytes.truncate(at + 1),
        }
    }
    bytes
}

/// A file whose parts mostly fit together.
fn whole(random: &mut Random) -> Vec<u8> {
    // Those at the ends of the lists are odd.
    let mut pick = |list: &[&'static str], usual: usize| match random.one_in(8) {
        true => random.pick(list),
        false => random.pick(&list[..usual]),
    };
    let kind = pick(KINDS, 16);
    let fortran = pick(&["False", "True", "true", "1"], 2);
    let axes = pick(&["", "1", "12", "123", "1234", "12345678"], 4).len();
    let extents: Vec<&str> = (0..axes).map(|_| pick(EXTENTS, 9)).collect();
    let comma = if axes == 1 { "," } else { "" };
    let shape = extents.join(", ");
    let text =
        format!("{{'descr': '{kind}', 'fortran_order': {fortran}, 'shape': ({shape}{comma}), }}\n");
    let size = kind.get(2..).and_then(|size| size.parse::<usize>().ok());
    let needed = extents.iter().try_fold(size.unwrap_or(1), |needed, text| {
        let extent: usize = text.trim_end_matches('L').parse().ok()?;
        needed.checked_mul(extent)
    });
    let needed = needed.filter(|&needed| needed <= BYTES);
    let mut bytes = b"\x93NUMPY".to_vec();
    let version = random.pick(&[1, 1, 2, 3]);
    bytes.extend([version, 0]);
    match version {
        1 => bytes.extend((text.len() as u16).to_le_bytes()),
        _ => bytes.extend((text.len() as u32).to_le_bytes()),
    }
    bytes.extend(text.as_bytes());
    bytes.extend((0..needed.unwrap_or(64)).map(|_| random.bits() as u8));
    bytes
}
