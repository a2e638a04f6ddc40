//! Narrow numbers: conversions that round in a direction, and numbers of 4 bits, two in a byte.

use super::element::Float;
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
    let mut shape = x.shape();
    if let Some(last) = shape.last_mut() {
        *last /= 2;
    }
    shape.push(2);
    let (low, high) = x.bitcast::<u8>().reshape(shape).split();
    low & 15 | high << 4
}
