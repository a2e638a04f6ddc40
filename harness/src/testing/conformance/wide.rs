//! Numbers of every type in plain Rust: what arithmetic should give, independently of the compiler.

use exactile::prelude::*;
use exactile::{DType, Number};

/// A number of any type: an integer or `bool`, or a float.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wide {
    /// An integer; `bool` is 0 or 1.
    Int(i128),
    /// A float.
    Float(f64),
}

/// A float as the nearest `f32` whose last bit says whether it is inexact, so that another rounding
/// to fewer bits is the only one.
fn odd(value: f64) -> f32 {
    let near = value as f32;
    if f64::from(near) == value || value.is_nan() {
        return near;
    }
    let bits = near.to_bits();
    let below = match f64::from(near).abs() > value.abs() {
        true => bits - 1,
        false => bits,
    };
    f32::from_bits(below | 1)
}

/// An integer as a float whose last bit says whether it is inexact.
fn odd_integer(value: i128) -> f64 {
    let magnitude = value.unsigned_abs();
    let cut = (magnitude >> 11) | u128::from(magnitude & 0x7ff != 0);
    let float = match magnitude >> 53 {
        0 => magnitude as f64,
        _ => cut as f64 * 2048.0,
    };
    match value < 0 {
        true => -float,
        false => float,
    }
}

impl Wide {
    /// The number.
    pub(super) fn of<T: Number>(value: T) -> Self {
        let bits = value.to_bits();
        match T::DTYPE {
            DType::Bool | DType::U8 | DType::U16 | DType::U32 | DType::U64 => {
                Self::Int(i128::from(bits))
            }
            DType::I8 => Self::Int(i128::from(bits as i8)),
            DType::I16 => Self::Int(i128::from(bits as i16)),
            DType::I32 => Self::Int(i128::from(bits as i32)),
            DType::I64 => Self::Int(i128::from(bits as i64)),
            DType::F8E4M3 => Self::Float(f64::from(F8E4M3::from_bits(bits as u8).to_f32())),
            DType::F8E5M2 => Self::Float(f64::from(F8E5M2::from_bits(bits as u8).to_f32())),
            DType::F16 => Self::Float(f64::from(f16::from_bits(bits as u16).to_f32())),
            DType::BF16 => Self::Float(f64::from(bf16::from_bits(bits as u16).to_f32())),
            DType::F32 => Self::Float(f64::from(f32::from_bits(bits as u32))),
            DType::F64 => Self::Float(f64::from_bits(bits)),
        }
    }

    /// The number in another type: integers wrap, floats round once, conversions saturate.
    pub(super) fn to<T: Number>(self) -> T {
        let integer = |saturated: i128| match self {
            Self::Int(value) => value as u64,
            Self::Float(_) => saturated as u64,
        };
        let float = match self {
            Self::Int(value) => odd_integer(value),
            Self::Float(value) => value,
        };
        T::from_bits(match T::DTYPE {
            DType::Bool => match self {
                Self::Int(value) => u64::from(value != 0),
                Self::Float(value) => u64::from(value != 0.0),
            },
            DType::I8 => integer(i128::from(float as i8)),
            DType::I16 => integer(i128::from(float as i16)),
            DType::I32 => integer(i128::from(float as i32)),
            DType::I64 => integer(i128::from(float as i64)),
            DType::U8 => integer(i128::from(float as u8)),
            DType::U16 => integer(i128::from(float as u16)),
            DType::U32 => integer(i128::from(float as u32)),
            DType::U64 => integer(i128::from(float as u64)),
            DType::F8E4M3 => u64::from(F8E4M3::from_f32(odd(float)).to_bits()),
            DType::F8E5M2 => u64::from(F8E5M2::from_f32(odd(float)).to_bits()),
            DType::F16 => u64::from(f16::from_f32(odd(float)).to_bits()),
            DType::BF16 => u64::from(bf16::from_f32(odd(float)).to_bits()),
            DType::F32 => u64::from(match self {
                Self::Int(value) => (value as f32).to_bits(),
                Self::Float(value) => (value as f32).to_bits(),
            }),
            DType::F64 => match self {
                Self::Int(value) => (value as f64).to_bits(),
                Self::Float(value) => value.to_bits(),
            },
        })
    }
}

/// Applies a function to two numbers of one kind.
pub(super) fn pair(
    a: Wide,
    b: Wide,
    integers: impl Fn(i128, i128) -> i128,
    floats: impl Fn(f64, f64) -> f64,
) -> Wide {
    match (a, b) {
        (Wide::Int(a), Wide::Int(b)) => Wide::Int(integers(a, b)),
        (Wide::Float(a), Wide::Float(b)) => Wide::Float(floats(a, b)),
        (Wide::Int(a), Wide::Float(b)) => Wide::Float(floats(a as f64, b)),
        (Wide::Float(a), Wide::Int(b)) => Wide::Float(floats(a, b as f64)),
    }
}

/// The smaller of two floats; NaN if either is NaN; -0 is less than +0.
pub(super) fn least(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        return f64::NAN;
    }
    match a == b {
        true if a.is_sign_negative() => a,
        true => b,
        false => a.min(b),
    }
}

/// The larger of two floats, likewise.
pub(super) fn most(a: f64, b: f64) -> f64 {
    -least(-a, -b)
}

/// Numbers of a type: what is special of it, then random ones.
pub(super) fn numbers<T: Number>(count: usize, seed: u64) -> Vec<T> {
    let special = specials::<T>();
    let random = (0..).map(|index| random::<T>(seed, index));
    special.into_iter().chain(random).take(count).collect()
}

/// All pairs of what is special of a type, then random ones.
pub(super) fn pairs<T: Number>(count: usize) -> (Vec<T>, Vec<T>) {
    let special = specials::<T>();
    let both = special
        .iter()
        .flat_map(|&a| special.iter().map(move |&b| (a, b)));
    let random = (0..).map(|index| (random::<T>(1, index), random::<T>(2, index)));
    both.take(count / 2).chain(random).take(count).unzip()
}

/// Zeros, extremes, and what lies beside them.
fn specials<T: Number>() -> Vec<T> {
    match T::DTYPE.is_float() {
        true => {
            let [tiny, huge] = match T::DTYPE {
                DType::F8E4M3 => [0.001_953_125, 448.0],
                DType::F8E5M2 => [1.525_878_906_25e-5, 57344.0],
                DType::F16 => [5.960_464_477_539_063e-8, 65504.0],
                DType::BF16 => [9.183_549_615_799_121e-41, 3.389_531_389_251_535_5e38],
                DType::F64 => [5e-324, f64::MAX],
                DType::F32
                | DType::Bool
                | DType::I8
                | DType::I16
                | DType::I32
                | DType::I64
                | DType::U8
                | DType::U16
                | DType::U32
                | DType::U64 => [1.401_298_464_324_817e-45, f64::from(f32::MAX)],
            };
            let values = [0.0, 1.0, 0.5, 3.0, tiny, 6.0 * tiny, huge, f64::INFINITY];
            let signed = values.iter().flat_map(|&value| [value, -value]);
            signed
                .chain([f64::NAN])
                .map(|value| Wide::Float(value).to())
                .collect()
        }
        false => {
            let values = [
                0,
                1,
                2,
                3,
                7,
                8,
                -1,
                -2,
                i128::from(i64::MAX),
                i128::from(i64::MIN),
            ];
            let edges = [0x7f, 0x80, 0x7fff, 0x8000, 0x7fff_ffff, 0x8000_0000];
            let all = values.into_iter().chain(edges);
            all.map(|value| Wide::Int(value).to()).collect()
        }
    }
}

/// Small and large integers, floats around one.
fn random<T: Number>(seed: u64, index: u64) -> T {
    let mixed = (index + 1 + (seed << 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let bits = mixed ^ (mixed >> 29);
    let bits = bits.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    match T::DTYPE.is_float() {
        true => Wide::Float((bits >> 40) as f64 / f64::from(1u32 << 21) - 4.0).to(),
        false if bits & 1 == 0 => Wide::Int(i128::from(bits >> 32) % 21 - 10).to(),
        false => T::from_bits(bits >> 3),
    }
}

/// Integers from -10 to 10, or floats between -4 and 4: sums of them do not overflow.
pub(super) fn modest<T: Number>(count: usize, seed: u64) -> Vec<T> {
    let index = (0..count as u64).map(|index| index * 2);
    match T::DTYPE.is_float() {
        true => index.map(|index| random(seed, index)).collect(),
        false => index
            .map(|index| Wide::Int(i128::from(index.wrapping_mul(seed * 2 + 7919) % 21) - 10).to())
            .collect(),
    }
}

/// Numbers of another type.
pub(super) fn converted<T: Number, U: Number>(numbers: &[T]) -> Vec<U> {
    numbers
        .iter()
        .map(|&number| Wide::of(number).to())
        .collect()
}
