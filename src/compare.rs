//! Compares results with a reference: bits first, then how far apart they are.
//!
//! Two NaN are equal whatever their bits, since the sign and the payload of a NaN that a kernel
//! stores may differ between devices; everything else is equal when its bits are. The reference is
//! the golden run on the CPU, never the device.

use std::fmt;

use exactile_core::ir::{DType, Literal, Number};
use exactile_cranelift::StandardFloats;
use rayon::prelude::*;

use crate::array::{Array, literal_at};
use crate::buffer::Buffer;
use crate::error::{Error, Result};

/// How many mismatches a [`Comparison`] lists.
const LISTED: usize = 8;

/// How many elements or bytes a thread compares at a time.
const CHUNK: usize = 1 << 16;

/// How far a result may be from its reference where bits are not promised:
/// `|got - want| <= absolute + relative * |want|`. An infinity is close to itself only. Equal numbers
/// are close under every tolerance, unequal ones under none that is negative or NaN.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tolerance {
    /// The absolute part.
    pub absolute: f64,
    /// The part relative to the reference.
    pub relative: f64,
    /// Whether NaN counts as equal to NaN.
    pub nan_equals_nan: bool,
}

impl Tolerance {
    const fn new(absolute: f64, relative: f64) -> Self {
        Self {
            absolute,
            relative,
            nan_equals_nan: true,
        }
    }

    /// The tolerance of this project for `dtype`: 1e-5 for `f32`, 1e-3 for `f16`, 8e-3 for
    /// `bf16`, 1e-7 for `f64`, both absolute and relative; integers and `bool` must be equal. A
    /// unit in the last place of `bf16` is up to 2^-7 of the number: less would refuse neighbours.
    pub const fn standard(dtype: DType) -> Self {
        match dtype.format() {
            Some(format) => Self::new(format.tolerance.0, format.tolerance.1),
            None => Self::new(0.0, 0.0),
        }
    }

    /// The tolerance of PyTorch's `assert_close` for `dtype`.
    pub const fn pytorch(dtype: DType) -> Self {
        match dtype.format() {
            Some(format) => Self::new(format.pytorch.0, format.pytorch.1),
            None => Self::new(0.0, 0.0),
        }
    }

    fn accepts(&self, got: f64, want: f64) -> bool {
        if got.is_nan() || want.is_nan() {
            return self.nan_equals_nan && got.is_nan() && want.is_nan();
        }
        if got == want {
            return true;
        }
        // A bound relative to an infinity would be infinite, and so is the distance to one.
        if got.is_infinite() || want.is_infinite() {
            return false;
        }
        let difference = (got - want).abs();
        if difference.is_finite() {
            return difference <= self.absolute + self.relative * want.abs();
        }
        // It overflows, and a bound that overflows too may still be less.
        let quarter = 0.25;
        (got * quarter - want * quarter).abs()
            <= self.absolute * quarter + self.relative * (want.abs() * quarter)
    }
}

/// One element that differs from the reference.
#[derive(Clone, PartialEq, Debug)]
pub struct Mismatch {
    /// Its coordinates.
    pub index: Vec<usize>,
    /// The result.
    pub got: Literal,
    /// The reference.
    pub want: Literal,
}

/// What a comparison found.
#[derive(Clone, PartialEq, Debug)]
#[must_use]
pub struct Comparison {
    /// The data type of both.
    pub dtype: DType,
    /// The extents of both.
    pub shape: Vec<usize>,
    /// How many elements differ in bits.
    pub mismatches: usize,
    /// How many of these are NaN on one side only; they have no distance.
    pub nan_mismatches: usize,
    /// How many elements the tolerance does not accept.
    pub outside_tolerance: usize,
    /// The greatest distance, in units in the last place; -0 and +0 are 0 apart. For integers, the
    /// greatest difference.
    pub max_ulp: u64,
    /// The mean of result minus reference over all elements, in units in the last place: a value
    /// far from zero means a bias.
    pub mean_signed_ulp: f64,
    /// The first elements that differ, in row-major order.
    pub first: Vec<Mismatch>,
    /// The tolerance that was used.
    pub tolerance: Tolerance,
}

/// Something that can be compared: a slice, a `Vec`, an [`Array`] or a [`Buffer`].
pub trait Comparable {
    /// A copy on the host. A buffer on a device is read back.
    fn to_array(&self) -> Result<Array>;
}

impl Comparable for Array {
    fn to_array(&self) -> Result<Array> {
        Array::from_bytes(self.dtype(), self.shape(), self.bytes())
    }
}

impl<T: Number> Comparable for [T] {
    fn to_array(&self) -> Result<Array> {
        Array::from_slice([self.len()], self)
    }
}

impl<T: Number> Comparable for Vec<T> {
    fn to_array(&self) -> Result<Array> {
        self.as_slice().to_array()
    }
}

impl<T: Number, const N: usize> Comparable for [T; N] {
    fn to_array(&self) -> Result<Array> {
        self.as_slice().to_array()
    }
}

impl<T: Number> Comparable for Buffer<T> {
    fn to_array(&self) -> Result<Array> {
        let mut array = Array::zeros(T::DTYPE, [self.len()])?;
        self.part().read_to(array.bytes_mut())?;
        Ok(array)
    }
}

/// Compares `got` with `want` under the standard tolerance of their type.
///
/// Different data types or shapes are an error, not a mismatch. Any NaN equals any other: which sign
/// and payload a device stores is not promised.
///
/// ```
/// let comparison = exactile::compare(&[1.0f32, f32::NAN], &[1.0f32, f32::NAN])?;
/// assert!(comparison.bits_equal());
/// let comparison = exactile::compare(&[1.0f32, 2.0], &[1.0f32, 2.0000002])?;
/// assert!(!comparison.bits_equal() && comparison.within_tolerance());
/// # Ok::<(), exactile::Error>(())
/// ```
pub fn compare(
    got: &(impl Comparable + ?Sized),
    want: &(impl Comparable + ?Sized),
) -> Result<Comparison> {
    let (got, want) = (got.to_array()?, want.to_array()?);
    compare_within(&got, &want, Tolerance::standard(want.dtype()))
}

/// Compares two arrays under a tolerance of the caller's choice.
pub fn compare_within(got: &Array, want: &Array, tolerance: Tolerance) -> Result<Comparison> {
    if got.dtype() != want.dtype() {
        return Err(Error::DTypeMismatch {
            found: got.dtype(),
            expected: want.dtype(),
        });
    }
    if got.shape() != want.shape() {
        return Err(Error::ShapeMismatch {
            found: got.shape().to_vec(),
            expected: want.shape().to_vec(),
        });
    }
    let mut comparison = Comparison {
        dtype: want.dtype(),
        shape: want.shape().to_vec(),
        mismatches: 0,
        nan_mismatches: 0,
        outside_tolerance: 0,
        max_ulp: 0,
        mean_signed_ulp: 0.0,
        first: Vec::new(),
        tolerance,
    };
    if tolerance.nan_equals_nan && are_same(got.bytes(), want.bytes()) {
        return Ok(comparison);
    }
    let _floats = StandardFloats::new();
    let chunks: Vec<usize> = (0..want.len()).step_by(CHUNK).collect();
    let parts: Vec<(Comparison, f64)> = chunks
        .into_par_iter()
        .map(|first| {
            let _floats = StandardFloats::new();
            let mut part = comparison.clone();
            let mut signed_ulp = 0.0;
            for flat in first..want.len().min(first + CHUNK) {
                let got = literal_at(got.dtype(), got.bytes(), flat);
                let want = literal_at(want.dtype(), want.bytes(), flat);
                if got.bits != want.bits || !tolerance.nan_equals_nan {
                    signed_ulp += part.judge(flat, got, want);
                }
            }
            (part, signed_ulp)
        })
        .collect();
    let mut signed_ulp = 0.0;
    for (part, part_ulp) in parts {
        comparison.merge(part);
        signed_ulp += part_ulp;
    }
    if !want.is_empty() {
        comparison.mean_signed_ulp = signed_ulp / want.len() as f64;
    }
    Ok(comparison)
}

/// Whether two lists of as many bytes are equal.
fn are_same(got: &[u8], want: &[u8]) -> bool {
    let pairs = got.par_chunks(CHUNK).zip(want.par_chunks(CHUNK));
    pairs.all(|(got, want)| got == want)
}

impl Comparison {
    /// Adds what was found in later elements.
    fn merge(&mut self, later: Self) {
        self.mismatches += later.mismatches;
        self.nan_mismatches += later.nan_mismatches;
        self.outside_tolerance += later.outside_tolerance;
        self.max_ulp = self.max_ulp.max(later.max_ulp);
        let room = LISTED - self.first.len();
        self.first.extend(later.first.into_iter().take(room));
    }

    /// Takes one pair of elements into account and returns their signed distance.
    fn judge(&mut self, flat: usize, got: Literal, want: Literal) -> f64 {
        let (got_nan, want_nan) = (is_nan(got), is_nan(want));
        let accepted = match (got.float(), want.float()) {
            (Some(got), Some(want)) => self.tolerance.accepts(got, want),
            (None, _) | (_, None) => got.bits == want.bits,
        };
        self.outside_tolerance += usize::from(!accepted);
        if got.bits == want.bits || (got_nan && want_nan) {
            return 0.0;
        }
        self.mismatches += 1;
        if self.first.len() < LISTED {
            self.first.push(Mismatch {
                index: coordinates(&self.shape, flat),
                got,
                want,
            });
        }
        if got_nan || want_nan {
            self.nan_mismatches += 1;
            return 0.0;
        }
        let distance = ordinal(got) - ordinal(want);
        self.max_ulp = self
            .max_ulp
            .max(u64::try_from(distance.unsigned_abs()).unwrap_or(u64::MAX));
        distance as f64
    }

    /// Whether every element has the reference's bits, any NaN being equal to any other.
    pub fn bits_equal(&self) -> bool {
        self.mismatches == 0
    }

    /// Whether the tolerance accepts every element.
    pub fn within_tolerance(&self) -> bool {
        self.outside_tolerance == 0
    }

    /// The number of elements compared.
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// An error that lists the first mismatches unless all bits are equal.
    pub fn exact(&self) -> Result<()> {
        if self.bits_equal() {
            Ok(())
        } else {
            Err(Error::Mismatch(self.to_string()))
        }
    }

    /// For tests: panics with the report unless all bits are equal.
    #[track_caller]
    pub fn assert_exact(&self) {
        assert!(self.bits_equal(), "{self}");
    }

    /// For tests: panics with the report unless the tolerance accepts every element.
    #[track_caller]
    pub fn assert_close(&self) {
        assert!(self.within_tolerance(), "{self}");
    }
}

/// For tests: panics with a report unless `got` and `want` have the same type, shape and bits, any NaN
/// being equal to any other.
///
/// ```
/// exactile::assert_bits_equal(&vec![1i32, 2], &[1i32, 2]);
/// ```
#[track_caller]
pub fn assert_bits_equal(got: &(impl Comparable + ?Sized), want: &(impl Comparable + ?Sized)) {
    let verdict = compare(got, want).and_then(|comparison| comparison.exact());
    assert!(
        verdict.is_ok(),
        "{}",
        verdict.err().map_or_else(String::new, |e| e.to_string())
    );
}

fn is_nan(literal: Literal) -> bool {
    literal.float().is_some_and(f64::is_nan)
}

/// The position of a number among all numbers of its type; neighbours are 1 apart.
fn ordinal(literal: Literal) -> i128 {
    if let Some(integer) = literal.integer() {
        return integer;
    }
    let sign = 1u64 << (literal.dtype.bits() - 1);
    let magnitude = i128::from(literal.bits & (sign - 1));
    if literal.bits & sign == 0 {
        magnitude
    } else {
        -magnitude
    }
}

fn coordinates(shape: &[usize], mut flat: usize) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    for (slot, &extent) in index.iter_mut().zip(shape).rev() {
        *slot = flat % extent;
        flat /= extent;
    }
    index
}

/// The value with enough digits to tell it from its neighbours, and its bits.
fn show(literal: Literal) -> String {
    match (literal.float(), literal.integer()) {
        (Some(value), _) => {
            let digits = literal.dtype.bits() as usize / 4;
            format!("{value:e} (0x{:0digits$x})", literal.bits)
        }
        (None, Some(value)) => value.to_string(),
        (None, None) => format!("0x{:x}", literal.bits),
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.elements();
        if self.bits_equal() {
            return write!(
                f,
                "all {total} elements of `{}` are equal in bits",
                self.dtype
            );
        }
        write!(
            f,
            "{} of {total} elements of `{}` differ in bits: max {} ulp, mean signed {:+.3e} ulp, {} outside the tolerance",
            self.mismatches, self.dtype, self.max_ulp, self.mean_signed_ulp, self.outside_tolerance
        )?;
        if self.nan_mismatches > 0 {
            write!(f, ", {} NaN on one side only", self.nan_mismatches)?;
        }
        for mismatch in &self.first {
            write!(
                f,
                "\n  at {:?}: found {}, expected {}",
                mismatch.index,
                show(mismatch.got),
                show(mismatch.want)
            )?;
        }
        Ok(())
    }
}
