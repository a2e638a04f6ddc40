//! The scalar semantics against independent oracles: exhaustive for 16-bit floats, random patterns
//! for the rest.

use crate::ir::{BinaryOp, CompareOp, DType, TernaryOp, UnaryOp};
use crate::random::Random;
use crate::semantics::{binary, bitcast, canonical, cast, compare, ternary, unary};

/// A bit pattern of `dtype`: uniform, near a power of two, or small.
fn pattern(random: &mut Random, dtype: DType) -> u64 {
    let bits = random.bits();
    let shape = random.bits();
    let bits = match shape % 4 {
        0 => bits >> (shape / 4 % 64),
        1 => (bits >> (shape / 4 % 64)).wrapping_neg(),
        2 => (1u64 << (shape / 4 % 64))
            .wrapping_add(bits % 5)
            .wrapping_sub(2),
        _ => bits,
    };
    bits & dtype.mask()
}

const INTEGERS: [DType; 8] = [
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
];

const SMALL_FLOATS: [DType; 2] = [DType::F16, DType::BF16];

/// The value of a 16-bit float, from its definition.
fn value16(dtype: DType, bits: u64) -> f64 {
    let (places, bias) = if dtype == DType::F16 {
        (10, 15)
    } else {
        (7, 127)
    };
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let field = (bits & 0x7fff) >> places;
    let fraction = (bits & ((1 << places) - 1)) as f64 / f64::from(1 << places);
    let greatest = (0x7fff >> places) as u64;
    if field == greatest {
        return if fraction == 0.0 {
            sign * f64::INFINITY
        } else {
            f64::NAN
        };
    }
    let scale = |exponent: i32| 2f64.powi(exponent);
    if field == 0 {
        sign * fraction * scale(1 - bias)
    } else {
        sign * (1.0 + fraction) * scale(field as i32 - bias)
    }
}

/// Whether `bits` is the 16-bit float nearest to `value`, ties to even; `value` must be exact or
/// carry a sticky bit far below.
fn is_nearest16(dtype: DType, bits: u64, value: f64) -> bool {
    if value.is_nan() {
        return value16(dtype, bits).is_nan();
    }
    if (bits >> 15 == 1) != value.is_sign_negative() {
        return false;
    }
    let magnitude = bits & 0x7fff;
    let infinity = if dtype == DType::F16 { 0x7c00 } else { 0x7f80 };
    if magnitude > infinity {
        return false;
    }
    // The number after the greatest finite one, had the format one more exponent.
    let extended = |magnitude: u64| {
        if magnitude == infinity {
            2.0 * value16(dtype, infinity - 1) - value16(dtype, infinity - 2)
        } else {
            value16(dtype, magnitude)
        }
    };
    let target = value.abs();
    let even = magnitude.is_multiple_of(2);
    let above_lower = magnitude == 0 || {
        let middle = (extended(magnitude - 1) + extended(magnitude)) / 2.0;
        target > middle || (target == middle && even)
    };
    let below_upper = magnitude == infinity || {
        let middle = (extended(magnitude) + extended(magnitude + 1)) / 2.0;
        target < middle || (target == middle && even)
    };
    above_lower && below_upper
}

#[test]
fn sixteen_bit_floats_widen_exactly() {
    for dtype in SMALL_FLOATS {
        for bits in 0..=0xffff {
            let expected = value16(dtype, bits);
            let wide = f64::from_bits(cast(dtype, DType::F64, bits));
            let single = f32::from_bits(cast(dtype, DType::F32, bits) as u32);
            if expected.is_nan() {
                assert!(wide.is_nan() && single.is_nan());
            } else {
                assert_eq!(wide.to_bits(), expected.to_bits(), "{dtype} {bits:#x}");
                assert_eq!(f64::from(single).to_bits(), expected.to_bits());
            }
            assert_eq!(cast(dtype, dtype, bits), canonical(dtype, bits));
        }
    }
}

#[test]
fn floats_narrow_with_one_rounding() {
    let mut random = Random::new(1);
    for dtype in SMALL_FLOATS {
        for bits in 0..0xffffu64 {
            // The point between two neighbours, and its own neighbours in f64.
            let (low, high) = (value16(dtype, bits), value16(dtype, bits + 1));
            if !(low.is_finite() && high.is_finite()) {
                continue;
            }
            let middle = (low + high) / 2.0;
            for step in [-1i64, 0, 1] {
                let value = f64::from_bits(middle.to_bits().wrapping_add_signed(step));
                if value.is_nan() {
                    continue;
                }
                let found = cast(DType::F64, dtype, value.to_bits());
                assert!(
                    is_nearest16(dtype, found, value),
                    "{dtype} {value:e} {found:#x}"
                );
            }
        }
        for _ in 0..200_000 {
            let wide = pattern(&mut random, DType::F64);
            let found = cast(DType::F64, dtype, wide);
            assert!(
                is_nearest16(dtype, found, f64::from_bits(wide)),
                "{wide:#x} {found:#x}"
            );
            let single = pattern(&mut random, DType::F32);
            let found = cast(DType::F32, dtype, single);
            let value = f64::from(f32::from_bits(single as u32));
            assert!(is_nearest16(dtype, found, value), "{single:#x} {found:#x}");
        }
    }
}

#[test]
fn f32_narrows_like_the_half_crate() {
    let mut random = Random::new(2);
    for _ in 0..400_000 {
        let bits = pattern(&mut random, DType::F32);
        let value = f32::from_bits(bits as u32);
        if value.is_nan() {
            continue;
        }
        assert_eq!(
            cast(DType::F32, DType::F16, bits),
            u64::from(half::f16::from_f32(value).to_bits())
        );
        assert_eq!(
            cast(DType::F32, DType::BF16, bits),
            u64::from(half::bf16::from_f32(value).to_bits())
        );
    }
}

/// The value of an integer number.
fn integer(dtype: DType, bits: u64) -> i128 {
    let shift = 128 - dtype.bits();
    if dtype.is_signed() {
        (i128::from(bits) << shift) >> shift
    } else {
        i128::from(bits)
    }
}

#[test]
fn integers_round_once_to_floats() {
    let mut random = Random::new(3);
    for from in INTEGERS {
        for _ in 0..40_000 {
            let bits = pattern(&mut random, from);
            let value = integer(from, bits);
            for to in SMALL_FLOATS {
                let found = cast(from, to, bits);
                if value.unsigned_abs() < 1 << 53 || to == DType::F16 {
                    assert!(
                        is_nearest16(to, found, value as f64),
                        "{from} {value} {found:#x}"
                    );
                    continue;
                }
                // Neighbours in bf16 and the points between them are integers here.
                let at = |bits| value16(to, bits) as i128;
                let distance = (value - at(found)).abs();
                for neighbour in [found - 1, found + 1] {
                    let other = (value - at(neighbour)).abs();
                    let tie = found.is_multiple_of(2);
                    assert!(
                        distance < other || distance == other && tie,
                        "{value} {found:#x}"
                    );
                }
            }
            let single = f32::from_bits(cast(from, DType::F32, bits) as u32);
            assert_eq!(single.to_bits(), (value as f32).to_bits());
            let double = f64::from_bits(cast(from, DType::F64, bits));
            // Nearest: no neighbour is nearer.
            let distance = (value - double as i128).unsigned_abs();
            for step in [-1i64, 1] {
                let neighbour = f64::from_bits(double.to_bits().wrapping_add_signed(step));
                if neighbour.is_finite() {
                    assert!(distance <= (value - neighbour as i128).unsigned_abs());
                }
            }
        }
    }
}

#[test]
fn floats_saturate_to_integers() {
    let mut random = Random::new(4);
    for from in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        for _ in 0..40_000 {
            let bits = pattern(&mut random, from);
            let value = f64::from_bits(cast(from, DType::F64, bits));
            for to in INTEGERS {
                let found = integer(to, cast(from, to, bits));
                let least = if to.is_signed() {
                    -(1i128 << (to.bits() - 1))
                } else {
                    0
                };
                let greatest = least + (1i128 << to.bits()) - 1;
                let expected = if value.is_nan() {
                    0
                } else if value.abs() < 1e30 {
                    (value.trunc() as i128).clamp(least, greatest)
                } else if value > 0.0 {
                    greatest
                } else {
                    least
                };
                assert_eq!(found, expected, "{from} {value:e} to {to}");
            }
            assert_eq!(cast(from, DType::Bool, bits), u64::from(value != 0.0));
        }
    }
}

#[test]
fn sixteen_bit_arithmetic_rounds_the_exact_result_once() {
    let mut random = Random::new(5);
    for dtype in SMALL_FLOATS {
        for _ in 0..200_000 {
            let (a, b) = (pattern(&mut random, dtype), pattern(&mut random, dtype));
            let (x, y) = (value16(dtype, a), value16(dtype, b));
            // Products are exact in f64. Sums are when the exponents are near; quotients and far
            // sums need no more than the 53 bits that f64 keeps.
            for (op, value) in [
                (BinaryOp::Add, x + y),
                (BinaryOp::Sub, x - y),
                (BinaryOp::Mul, x * y),
                (BinaryOp::Div, x / y),
            ] {
                let found = binary(op, dtype, a, b);
                assert!(
                    is_nearest16(dtype, found, value),
                    "{dtype} {op:?} {x:e} {y:e} {found:#x}"
                );
            }
        }
        for bits in 0..=0xffff {
            let x = value16(dtype, bits);
            let found = unary(UnaryOp::Sqrt, dtype, bits);
            assert!(
                is_nearest16(dtype, found, x.sqrt()),
                "sqrt {x:e} {found:#x}"
            );
            for (op, value) in [
                (UnaryOp::Floor, x.floor()),
                (UnaryOp::Ceil, x.ceil()),
                (UnaryOp::Trunc, x.trunc()),
                (UnaryOp::Round, x.round_ties_even()),
            ] {
                assert!(is_nearest16(dtype, unary(op, dtype, bits), value));
            }
            assert_eq!(unary(UnaryOp::Neg, dtype, bits), bits ^ 0x8000);
            assert_eq!(unary(UnaryOp::Abs, dtype, bits), bits & 0x7fff);
        }
    }
}

#[test]
fn fma_of_16_bit_floats_goes_through_f32() {
    let one_and = |bits: u64| 0x3c00 | bits;
    // (1 + 2^-10) * (1 + 2^-10) + 2^-24 in f16: the f32 result keeps 2^-20 and 2^-24.
    let a = one_and(1);
    let tiny = 0x0001;
    let found = ternary(TernaryOp::Fma, DType::F16, a, a, tiny);
    assert_eq!(found, one_and(2));
    let mut random = Random::new(6);
    for dtype in SMALL_FLOATS {
        for _ in 0..100_000 {
            let [a, b, c] = std::array::from_fn(|_| pattern(&mut random, dtype));
            let [x, y, z] = [a, b, c].map(|bits| value16(dtype, bits) as f32);
            let expected = f64::from(x.mul_add(y, z));
            assert!(is_nearest16(
                dtype,
                ternary(TernaryOp::Fma, dtype, a, b, c),
                expected
            ));
        }
    }
}

#[test]
fn minimum_and_maximum_order_zeros_and_treat_nan_as_told() {
    let (negative, nan, one) = (0x8000_0000, 0xffc0_1234, 0x3f80_0000);
    let check = |op, lhs, rhs, expected| {
        let found = canonical(DType::F32, binary(op, DType::F32, lhs, rhs));
        assert_eq!(
            found,
            canonical(DType::F32, expected),
            "{op:?} {lhs:#x} {rhs:#x}"
        );
    };
    for (lhs, rhs) in [(0, negative), (negative, 0)] {
        check(BinaryOp::Minimum, lhs, rhs, negative);
        check(BinaryOp::Maximum, lhs, rhs, 0);
        check(BinaryOp::Minnum, lhs, rhs, negative);
        check(BinaryOp::Maxnum, lhs, rhs, 0);
    }
    for (lhs, rhs) in [(one, nan), (nan, one)] {
        check(BinaryOp::Minimum, lhs, rhs, nan);
        check(BinaryOp::Maximum, lhs, rhs, nan);
        check(BinaryOp::Minnum, lhs, rhs, one);
        check(BinaryOp::Maxnum, lhs, rhs, one);
    }
}

#[test]
fn integer_arithmetic_wraps_and_never_traps() {
    let mut random = Random::new(7);
    for dtype in INTEGERS {
        let wrap = |value: i128| value as u64 & dtype.mask();
        for _ in 0..20_000 {
            let (a, b) = (pattern(&mut random, dtype), pattern(&mut random, dtype));
            let (x, y) = (integer(dtype, a), integer(dtype, b));
            let check = |op, expected: u64| {
                assert_eq!(binary(op, dtype, a, b), expected, "{dtype} {op:?} {x} {y}");
            };
            check(BinaryOp::Add, wrap(x + y));
            check(BinaryOp::Sub, wrap(x - y));
            check(BinaryOp::Mul, wrap(x.wrapping_mul(y)));
            check(
                BinaryOp::Div,
                if y == 0 { dtype.mask() } else { wrap(x / y) },
            );
            check(BinaryOp::Rem, if y == 0 { a } else { wrap(x % y) });
            check(BinaryOp::Minimum, if x < y { a } else { b });
            check(BinaryOp::Maximum, if x < y { b } else { a });
            let width = u64::from(dtype.bits());
            check(BinaryOp::Shl, if b < width { wrap(x << b) } else { 0 });
            let fill = if x < 0 { dtype.mask() } else { 0 };
            check(BinaryOp::Shr, if b < width { wrap(x >> b) } else { fill });
            for (op, expected) in [
                (CompareOp::Eq, x == y),
                (CompareOp::Ne, x != y),
                (CompareOp::Lt, x < y),
                (CompareOp::Le, x <= y),
                (CompareOp::Gt, x > y),
                (CompareOp::Ge, x >= y),
            ] {
                assert_eq!(compare(op, dtype, a, b), expected);
            }
            assert_eq!(unary(UnaryOp::Neg, dtype, a), wrap(-x));
            assert_eq!(unary(UnaryOp::Abs, dtype, a), wrap(x.abs()));
            assert_eq!(unary(UnaryOp::Not, dtype, a), wrap(!x));
            for to in INTEGERS {
                assert_eq!(cast(dtype, to, a), x as u64 & to.mask());
            }
        }
        // The least integer divided by -1.
        let least = (dtype.mask() >> 1) + 1;
        if dtype.is_signed() {
            assert_eq!(binary(BinaryOp::Div, dtype, least, dtype.mask()), least);
            assert_eq!(binary(BinaryOp::Rem, dtype, least, dtype.mask()), 0);
        }
    }
}

#[test]
fn nan_compares_unequal_and_reads_canonical() {
    for (float, integer, nan) in [
        (DType::F16, DType::U16, 0x7e00),
        (DType::BF16, DType::U16, 0x7fc0),
        (DType::F32, DType::U32, 0x7fc0_0000),
        (DType::F64, DType::U64, 0x7ff8 << 48),
    ] {
        let other = nan | 3 | 1 << (float.bits() - 1);
        assert_eq!(bitcast(float, integer, other), nan);
        assert_eq!(bitcast(integer, float, other), other);
        for op in CompareOp::ALL {
            assert_eq!(compare(*op, float, other, other), *op == CompareOp::Ne);
        }
        // -0 equals +0 and keeps its bits.
        let negative_zero = 1 << (float.bits() - 1);
        assert!(compare(CompareOp::Eq, float, negative_zero, 0));
        assert_eq!(bitcast(float, integer, negative_zero), negative_zero);
    }
}
