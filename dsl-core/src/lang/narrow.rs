//! Narrow numbers: conversions that round in a direction, numbers of 4 bits, two in a byte, and bytes, four in a word.

use super::element::{Element, Float, SingleFloat};
use super::floats::{is_nan, sign_bit};
use super::math::select;
use super::operators::{Compare, Comparison};
use super::tile::{Scalar, Tile, map};
use crate::ir::floats::F8E4M3;
use crate::semantics::derived::directed::{Rounding, rounded};

macro_rules! roundings {
    ($($Kind:ident)*) => { $(
        impl<T: Float> $Kind<T> {
            /// Each number converted to `U`, rounded once as `rounding` says. What is too large for `U` is an infinity
            /// or the greatest number, as IEEE 754 has it for each rounding; of `F8E4M3`, which has no infinities, the
            /// greatest number. NaN stays NaN.
            #[track_caller]
            pub fn to_rounded<U: Float>(self, rounding: Rounding) -> $Kind<U> {
                map(self, |context, x| rounded(&mut context.builder, x, U::DTYPE, rounding))
            }
        }
    )* };
}
roundings!(Tile Scalar);

/// The signed integers of 4 bits in bytes, those of the low halves first: `[m, n]` becomes `[m, 2 * n]`. With
/// `& 15` the results are the unsigned ones.
#[track_caller]
pub fn unpack_int4(x: Tile<u8>) -> Tile<i8> {
    let low = (x << 4).bitcast::<i8>() >> 4;
    let high = x.bitcast::<i8>() >> 4;
    low.interleave(high)
}

/// The floats of 4 bits in bytes, those of the low halves first: `[m, n]` becomes `[m, 2 * n]`. Their format is E2M1 of
/// the OCP Microscaling formats: 0, 0.5, 1, 1.5, 2, 3, 4 and 6 with a sign, all of which `F8E4M3` has.
#[track_caller]
pub fn unpack_e2m1(x: Tile<u8>) -> Tile<F8E4M3> {
    let (low, high) = (x & 15, x >> 4);
    let codes = low.interleave(high);
    let (sign, magnitude) = ((codes & 8) << 4, codes & 7);
    // The exponents differ by 6; one half is subnormal in the narrower format alone.
    let normal = (magnitude << 2) + 0x30;
    let of_half = select(magnitude.compare(1, Comparison::Equal), 0x30, normal);
    let bits = select(magnitude.compare(0, Comparison::Equal), 0, of_half);
    (sign | bits).bitcast::<F8E4M3>()
}

/// The low 4 bits of each number, two in a byte, the earlier in its low half: `[m, 2 * n]` becomes `[m, n]`. The
/// inverse of [`unpack_int4`] for numbers from -8 to 7.
#[track_caller]
pub fn pack_int4(x: Tile<i8>) -> Tile<u8> {
    let (low, high) = pairs(x.bitcast::<u8>());
    low & 15 | high << 4
}

/// Each number rounded to a float of 4 bits, two in a byte, the earlier in its low half: `[m, 2 * n]` becomes `[m, n]`,
/// of which [`unpack_e2m1`] is the inverse. Of two that are as near the one with an even code is taken; magnitudes above 6,
/// infinities among them, become 6. NaN, which the format lacks, becomes +6, as `cvt.rn.satfinite.e2m1x2` has it.
#[track_caller]
pub fn pack_e2m1<T: SingleFloat>(x: Tile<T>) -> Tile<u8> {
    let x = x.to::<f32>();
    let magnitude = x.abs();
    // Where a code begins, and whether the place between two codes belongs to it.
    let begins = [
        (0.25, Comparison::Greater),
        (0.75, Comparison::GreaterEqual),
        (1.25, Comparison::Greater),
        (1.75, Comparison::GreaterEqual),
        (2.5, Comparison::Greater),
        (3.5, Comparison::GreaterEqual),
        (5.0, Comparison::Greater),
    ];
    let passed = begins.map(|(place, how)| magnitude.compare(place, how).to::<u8>());
    let code = passed.into_iter().reduce(|sum, one| sum + one);
    let code = code.expect("broken invariant: there are places between codes");
    let code = select(sign_bit(x), code | 8, code);
    let (low, high) = pairs(select(is_nan(x), 7, code));
    low | high << 4
}

/// The earlier and the later number of each pair along the last axis.
#[track_caller]
fn pairs<T: Element>(x: Tile<T>) -> (Tile<T>, Tile<T>) {
    let mut shape = x.shape();
    if let Some(last) = shape.last_mut() {
        *last /= 2;
    }
    shape.push(2);
    x.reshape(shape).split()
}

/// Four bytes in a word, the earliest in its lowest bits: `[m, 4 * n]` becomes `[m, n]`. What takes several narrow numbers
/// in a register, such as `inline_ptx` of `vadd4`, takes words.
#[track_caller]
pub fn pack_bytes(x: Tile<u8>) -> Tile<u32> {
    let (even, odd) = pairs(x.to::<u32>());
    let (low, high) = pairs(even | odd << 8);
    low | high << 16
}

/// The four bytes of each word, the lowest first: `[m, n]` becomes `[m, 4 * n]`. The inverse of [`pack_bytes`].
#[track_caller]
pub fn unpack_bytes(x: Tile<u32>) -> Tile<u8> {
    let halves = (x & 0xffff).interleave(x >> 16);
    (halves & 0xff).interleave(halves >> 8).to::<u8>()
}
