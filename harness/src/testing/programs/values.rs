//! Random numbers of each data type, with the numbers at which implementations go wrong.

use exactile_core::ir::{Class, DType, Literal};

use exactile_core::random::Random;

/// Which numbers to draw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fill {
    /// Mostly edge cases: NaN, infinities, zeros of both signs, subnormals, limits.
    Edges,
    /// Any bits.
    Bits,
    /// Numbers of everyday size, and sometimes an edge case.
    Moderate,
    /// Zeros of both signs.
    Zeros,
    /// Numbers about halfway between two numbers of a narrower type.
    Ties,
    /// Integers in `0..n`.
    Below(u64),
    /// Edge cases of `f32` but for numbers near to zero.
    Addends,
}

/// Below this magnitude an addend of an atomic sum of `f32` is left out. Others are multiples of 2^-123, and so are their
/// sums, of which none but zero is subnormal: a GPU takes subnormal numbers in memory for zero when it adds to them.
/// Source: PTX ISA, `red`, `.add.f32`.
pub const LEAST_ADDEND: f64 = 1.0 / (1u128 << 100) as f64;

impl Fill {
    /// One of the general kinds.
    pub fn random(random: &mut Random) -> Self {
        match random.below(10) {
            0..=2 => Self::Edges,
            3 => Self::Bits,
            4 => Self::Zeros,
            _ => Self::Moderate,
        }
    }
}

/// A random number of type `dtype`.
pub fn literal(random: &mut Random, dtype: DType, fill: Fill) -> Literal {
    let bits = match fill {
        Fill::Bits => random.bits(),
        Fill::Below(bound) => random.below(usize::try_from(bound).unwrap_or(usize::MAX)) as u64,
        Fill::Addends => {
            let edge = literal(random, dtype, Fill::Edges);
            let is_small = f64::from(f32::from_bits(edge.bits as u32)).abs() < LEAST_ADDEND;
            return if is_small {
                Literal::from_bits(dtype, 0)
            } else {
                edge
            };
        }
        Fill::Zeros => match dtype.class() {
            Class::Float => (random.bits() & 1) << (dtype.bits() - 1),
            Class::Bool | Class::Signed | Class::Unsigned => 0,
        },
        Fill::Ties => match dtype.class() {
            Class::Float => float_tie(random, dtype),
            Class::Bool | Class::Signed | Class::Unsigned => integer_tie(random, dtype),
        },
        Fill::Edges if random.one_in(5) => random.bits(),
        Fill::Edges => edge(random, dtype),
        Fill::Moderate if random.one_in(12) => edge(random, dtype),
        Fill::Moderate => return moderate(random, dtype),
    };
    Literal::from_bits(dtype, bits)
}

fn moderate(random: &mut Random, dtype: DType) -> Literal {
    match dtype.class() {
        Class::Bool => Literal::from_bits(dtype, random.bits()),
        Class::Signed => Literal::from_bits(dtype, random.between(-20, 100) as u64),
        Class::Unsigned => Literal::from_bits(dtype, random.between(0, 120) as u64),
        Class::Float => {
            let fraction = random.bits() as i64 as f64 / (1u64 << 63) as f64;
            let scale = random.pick(&[1.0, 1.0, 3.0, 16.0, 0.01]);
            Literal::from_f64(dtype, fraction * scale)
        }
    }
}

fn edge(random: &mut Random, dtype: DType) -> u64 {
    match dtype.class() {
        Class::Bool => random.bits(),
        Class::Signed | Class::Unsigned => integer_edge(random, dtype),
        Class::Float => float_edge(random, dtype),
    }
}

fn integer_edge(random: &mut Random, dtype: DType) -> u64 {
    let width = u64::from(dtype.bits());
    let sign = 1u64 << (width - 1);
    if random.one_in(6) {
        return integer_tie(random, dtype);
    }
    let near = random.pick(&[0, 1, u64::MAX]);
    let edge = random.pick(&[
        0,
        0,
        1,
        u64::MAX,
        sign,
        sign,
        sign - 1,
        width,
        width / 2,
        3,
        7,
        0x5555_5555_5555_5555,
        1 << (width / 2),
    ]);
    if random.one_in(3) {
        edge.wrapping_add(near)
    } else {
        edge
    }
}

/// The number of fraction bits in memory.
fn fraction_bits(dtype: DType) -> u32 {
    dtype.format().map_or(52, |format| format.mantissa)
}

/// A number of `width` bits below its leading one that lies halfway between two numbers with a
/// fraction of fewer bits, or next to halfway: where conversions to a narrower type must round once.
fn tie(random: &mut Random, width: u32, fractions: &[u32]) -> u64 {
    let narrow = random.pick(fractions).min(width - 1);
    let kept = random.bits() & ((1 << narrow) - 1);
    let half = (1u64 << width) | (kept << (width - narrow)) | (1 << (width - narrow - 1));
    half.wrapping_add(random.pick(&[0, 1, u64::MAX]))
}

fn integer_tie(random: &mut Random, dtype: DType) -> u64 {
    let width = 2 + random.below(dtype.bits() as usize - 2) as u32;
    tie(random, width, &[7, 10, 23, 52])
}

fn float_tie(random: &mut Random, dtype: DType) -> u64 {
    let fraction = fraction_bits(dtype);
    let sign = (random.bits() & 1) << (dtype.bits() - 1);
    let one = Literal::from_f64(dtype, 1.0).bits;
    let exponent = (one >> fraction).wrapping_add_signed(random.between(-14, 14));
    let significand = tie(random, fraction, &[7, 10, 23]) & ((1 << fraction) - 1);
    sign | (exponent << fraction) | significand
}

fn float_edge(random: &mut Random, dtype: DType) -> u64 {
    let fraction = fraction_bits(dtype);
    let sign = (random.bits() & 1) << (dtype.bits() - 1);
    let infinity = ((1u64 << (dtype.bits() - 1 - fraction)) - 1) << fraction;
    let quiet = 1u64 << (fraction - 1);
    let magnitude = match random.below(16) {
        14.. => return float_tie(random, dtype),
        0 | 1 => 0,
        2 => infinity,
        3 => infinity | quiet,
        4 => infinity | quiet | (random.bits() & (quiet - 1)),
        5 => infinity | 1,
        6 => 1,
        7 => random.bits() & ((1 << fraction) - 1),
        8 => 1 << fraction,
        9 => infinity - 1,
        10 => Literal::from_f64(dtype, 1.0).bits,
        // Halves and large integers: where conversions round and saturate.
        11 => Literal::from_f64(dtype, random.between(0, 40) as f64 + 0.5).bits,
        12 => Literal::from_f64(dtype, 2f64.powi(random.between(-30, 70) as i32)).bits,
        _ => Literal::from_f64(dtype, 2f64.powi(random.between(6, 66) as i32)).bits + 1,
    };
    sign | magnitude
}
