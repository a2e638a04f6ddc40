//! One step of a tensor core for one element of its result, bit for bit: the truncated fused dot product
//! and addition of Hopper (compute capability 9.0), of floats of 8 to 32 bits, added in `f32`.
//!
//! Every product is exact, and the accumulator is one more term. All terms are cut toward zero at one
//! place, [`Form::fraction`] bits below the greatest exponent of a term, and their sum is exact, whatever its
//! order. The sum is cut once more, to the bits of an `f32` that count: toward zero, subnormals kept, what is too
//! large is infinite. A result of zero is +0.
//!
//! Sources: B. Khattak and M. Mikaitis, arXiv 2512.07004; MMA-Sim, arXiv 2511.10909; and outputs of an
//! H200, of which `tests/data` holds some.

use crate::ir::{DType, FloatFormat};

/// What the type of the operands decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Form {
    /// Bits of a term below the greatest exponent.
    pub fraction: i32,
    /// Bits of the fraction of a result.
    pub kept: i32,
    /// Low bits of an operand that do not count, those of NaN excepted.
    pub ignored: u32,
}

impl Form {
    /// That of operands of this type. Of `f32` numbers the bits of TF32 count.
    #[must_use]
    pub const fn of(operand: DType) -> Self {
        let (fraction, kept, ignored) = match operand.bits() {
            8 => (13, 13, 0),
            32 => (25, KEPT, 13),
            _ => (25, KEPT, 0),
        };
        Self {
            fraction,
            kept,
            ignored,
        }
    }
}

/// The bits of an `f32` that count.
pub const UNCUT: u64 = !((1 << Form::of(DType::F32).ignored) - 1);

/// The exponent of a term that is zero: the least that the greatest exponent can be.
pub const EXPONENT_OF_ZERO: i32 = -133;

/// Bits of the fraction of an `f32`.
const KEPT: i32 = 23;

/// The least exponent of a normal `f32`.
const LEAST: i32 = -126;

/// The bits of the `f32` infinity.
const INFINITY: u64 = 0x7f80_0000;

/// A number that is not NaN: `significand * 2^(exponent - fraction)`.
#[derive(Clone, Copy)]
struct Number {
    negative: bool,
    /// Infinite, whatever the significand.
    infinite: bool,
    significand: u64,
    exponent: i32,
    fraction: i32,
}

impl Number {
    /// Subnormal numbers have the least exponent. `None` for NaN.
    fn of(format: &FloatFormat, bits: u64, ignored: u32) -> Option<Self> {
        let magnitude = bits & ((1 << (format.exponent + format.mantissa)) - 1);
        if magnitude > format.overflow() {
            return None;
        }
        let bits = bits >> ignored << ignored;
        let field = bits >> format.mantissa & ((1 << format.exponent) - 1);
        let rest = bits & ((1 << format.mantissa) - 1);
        let special = format.has_infinity && field == (1 << format.exponent) - 1;
        let normal = field != 0;
        Some(Self {
            negative: bits >> (format.exponent + format.mantissa) & 1 == 1,
            infinite: special,
            significand: rest | u64::from(normal) << format.mantissa,
            exponent: field.max(1) as i32 - format.bias(),
            fraction: format.mantissa as i32,
        })
    }

    /// The exact product; `None` for infinity times zero.
    fn times(self, other: Self) -> Option<Self> {
        let significand = self.significand * other.significand;
        let infinite = self.infinite || other.infinite;
        (!infinite || significand != 0).then_some(Self {
            negative: self.negative != other.negative,
            infinite,
            significand,
            exponent: self.exponent + other.exponent,
            fraction: self.fraction + other.fraction,
        })
    }

    /// In units of `2^(greatest - fraction)`, cut toward zero.
    fn cut(self, greatest: i32, fraction: i32) -> i64 {
        let shift = fraction - self.fraction - (greatest - self.exponent);
        let cut = shifted(self.significand, shift).cast_signed();
        if self.negative { -cut } else { cut }
    }
}

/// `x * 2^by`, cut toward zero. What is shifted to the left has room.
fn shifted(x: u64, by: i32) -> u64 {
    match by {
        0.. => x << by,
        _ => x.checked_shr(by.unsigned_abs()).unwrap_or(0),
    }
}

/// A factor of products, read once for all of them; NaN, or a number.
#[derive(Clone, Copy)]
pub struct Factor(Option<Number>);

impl Factor {
    /// What these bits of `dtype`, a float of 8 to 32 bits, count as.
    pub fn of(dtype: DType, bits: u64) -> Self {
        let ignored = Form::of(dtype).ignored;
        let format = dtype.format();
        Self(format.and_then(|format| Number::of(format, bits, ignored)))
    }
}

/// The bits of `accumulator` (`f32`) plus the products of a step, of factors of `dtype`. A NaN is the canonical one.
pub fn step(
    dtype: DType,
    products: impl Iterator<Item = (Factor, Factor)> + Clone,
    accumulator: u64,
) -> u64 {
    let nan = DType::F32.format().map_or(0, FloatFormat::canonical_nan);
    let form = Form::of(dtype);
    let product = |(a, b): (Factor, Factor)| a.0?.times(b.0?);
    let accumulator = DType::F32
        .format()
        .and_then(|format| Number::of(format, accumulator, 0));
    let terms = products.map(product).chain([accumulator]);
    let (mut greatest, mut infinite) = (EXPONENT_OF_ZERO, [false; 2]);
    for term in terms.clone() {
        let Some(term) = term else {
            return nan;
        };
        infinite[usize::from(term.negative)] |= term.infinite;
        if term.significand != 0 {
            greatest = greatest.max(term.exponent);
        }
    }
    match infinite {
        [true, true] => return nan,
        [true, false] => return INFINITY,
        [false, true] => return with_sign(INFINITY, true),
        [false, false] => {}
    }
    // The exponent of a zero may exceed the greatest.
    let present = terms.flatten().filter(|term| term.significand != 0);
    let total = present.map(|term| term.cut(greatest, form.fraction)).sum();
    rounded(total, greatest - form.fraction, form.kept)
}

/// `total * 2^unit` as an `f32` whose fraction has `fraction` bits, cut toward zero.
fn rounded(total: i64, unit: i32, fraction: i32) -> u64 {
    let size = total.unsigned_abs();
    let Some(highest) = size.checked_ilog2() else {
        return 0;
    };
    let exponent = highest.cast_signed() + unit;
    let bits = if exponent > -LEAST + 1 {
        INFINITY
    } else {
        // A normal number's leading bit adds one to the field of its exponent.
        let kept = exponent.max(LEAST);
        let field = u64::from((kept - LEAST).unsigned_abs());
        (field << KEPT) + (shifted(size, unit + fraction - kept) << (KEPT - fraction))
    };
    if bits == 0 {
        0
    } else {
        with_sign(bits, total < 0)
    }
}

fn with_sign(bits: u64, negative: bool) -> u64 {
    bits | u64::from(negative) << 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Precision;

    /// Lines of the numbers of a row of A, those of a column of B, C and D, in hexadecimal: outputs of an
    /// NVIDIA H200, measured on 2026-11-21. A third each are random bit patterns, normally distributed
    /// numbers, and such numbers times powers of two.
    fn agrees(dtype: DType, lines: &str) {
        let mut count = 0;
        for line in lines.lines() {
            let numbers: Vec<u64> = line
                .split(',')
                .map(|number| u64::from_str_radix(number, 16).expect("is hexadecimal"))
                .collect();
            let [operands @ .., accumulator, result] = numbers.as_slice() else {
                panic!("a line has too few numbers");
            };
            let (a, b) = operands.split_at(Precision::Hopper.step(dtype));
            let factor = |&bits: &u64| Factor::of(dtype, bits);
            let products = a.iter().map(factor).zip(b.iter().map(factor));
            let found = step(dtype, products, *accumulator);
            // The machine's NaN has all bits set but the sign.
            let wanted = if *result == 0x7fff_ffff {
                0x7fc0_0000
            } else {
                *result
            };
            assert_eq!(found, wanted, "{line}");
            count += 1;
        }
        assert_eq!(count, 240);
    }

    #[test]
    fn f16_agrees_with_a_machine() {
        agrees(DType::F16, include_str!("tests/data/tensor_core_f16.txt"));
    }

    #[test]
    fn bf16_agrees_with_a_machine() {
        agrees(DType::BF16, include_str!("tests/data/tensor_core_bf16.txt"));
    }

    #[test]
    fn tf32_agrees_with_a_machine() {
        agrees(DType::F32, include_str!("tests/data/tensor_core_tf32.txt"));
    }

    #[test]
    fn f8e4m3_agrees_with_a_machine() {
        agrees(
            DType::F8E4M3,
            include_str!("tests/data/tensor_core_f8e4m3.txt"),
        );
    }

    #[test]
    fn f8e5m2_agrees_with_a_machine() {
        agrees(
            DType::F8E5M2,
            include_str!("tests/data/tensor_core_f8e5m2.txt"),
        );
    }

    fn bf16(x: f32) -> Factor {
        Factor::of(DType::BF16, u64::from(x.to_bits() >> 16))
    }

    fn one(a: f32, b: f32, accumulator: f32) -> f32 {
        let bits = step(
            DType::BF16,
            std::iter::once((bf16(a), bf16(b))),
            accumulator.to_bits().into(),
        );
        f32::from_bits(bits as u32)
    }

    #[test]
    fn rounds_toward_zero_from_the_greatest_term_on() {
        assert_eq!(one(1.0, 1.0, 2.0_f32.powi(-24)), 1.0);
        assert_eq!(one(1.0, 1.0, -(2.0_f32.powi(-25))), 1.0 - 2.0_f32.powi(-24));
        assert_eq!(one(1.0, 1.0, -(2.0_f32.powi(-26))), 1.0);
    }

    #[test]
    fn zeros_are_positive_and_the_ends_of_the_range_are_kept() {
        assert_eq!(one(-0.0, 1.0, -0.0).to_bits(), 0);
        assert_eq!(one(1.0, -1.0, 1.0).to_bits(), 0);
        assert_eq!(one(f32::MAX, 2.0, 0.0), f32::INFINITY);
        assert_eq!(one(0.0, 0.0, f32::MIN), f32::MIN);
        assert_eq!(one(0.0, f32::MAX, 1.0), 1.0);
        let least = f32::from_bits(1);
        assert_eq!(one(0.0, 0.0, least), least);
        assert!(one(f32::INFINITY, 0.0, 0.0).is_nan());
        assert!(one(f32::INFINITY, 1.0, f32::NEG_INFINITY).is_nan());
        assert_eq!(one(f32::INFINITY, -1.0, 3.0), f32::NEG_INFINITY);
    }
}
