//! Numbers of products: ordinary ones, and those at which products go wrong.

use exactile_core::ir::{DType, Literal, Number};
use exactile_core::random::Random;
use rayon::prelude::*;

use crate::testing::programs::values::{Fill, literal};

/// What kind of numbers matrices hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Of everyday size.
    Ordinary,
    /// Of many exponents, whose products stay in range.
    Wide,
    /// Every other one is subnormal.
    Subnormal,
    /// Zeros of both signs.
    Zeros,
    /// Few NaN among ordinary numbers.
    Nan,
    /// Few infinities of both signs among ordinary numbers.
    Infinite,
    /// Few limits of their type of any kind among ordinary numbers.
    Edges,
    /// Any bits.
    Bits,
}

impl Kind {
    /// One of them: ordinary and wide ones, whose sums betray their order, more often than others.
    pub(super) fn random(random: &mut Random) -> Self {
        random.pick(&[
            Self::Ordinary,
            Self::Ordinary,
            Self::Wide,
            Self::Wide,
            Self::Subnormal,
            Self::Zeros,
            Self::Nan,
            Self::Infinite,
            Self::Edges,
            Self::Bits,
        ])
    }

    /// The kind of integers that takes its place: they have neither exponents nor NaN.
    pub(super) fn of_integers(self) -> Self {
        let is_there = matches!(self, Self::Zeros | Self::Edges);
        if is_there { self } else { Self::Bits }
    }

    /// What is said of them.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ordinary => "ordinary numbers",
            Self::Wide => "a wide range",
            Self::Subnormal => "subnormal numbers",
            Self::Zeros => "zeros",
            Self::Nan => "some NaN",
            Self::Infinite => "some infinities",
            Self::Edges => "some limits",
            Self::Bits => "any bits",
        }
    }
}

/// Numbers that one random stream gives.
const CHUNK: usize = 4096;

/// `len` numbers of a kind. Of rare ones there is about one in `apart`.
pub(super) fn numbers<T: Number>(kind: Kind, seed: u64, (len, apart): (usize, usize)) -> Vec<T> {
    let chunks = (0..len.div_ceil(CHUNK)).into_par_iter();
    let parts = chunks.flat_map_iter(|chunk| {
        let mut random = Random::stream(seed, chunk as u64);
        let count = CHUNK.min(len - chunk * CHUNK);
        (0..count).map(move |_| T::from_bits(number(kind, &mut random, T::DTYPE, apart)))
    });
    parts.collect()
}

/// The bits of one.
fn number(kind: Kind, random: &mut Random, dtype: DType, apart: usize) -> u64 {
    let Some(format) = dtype.format() else {
        let fill = match kind {
            Kind::Zeros => Fill::Zeros,
            Kind::Edges => Fill::Edges,
            Kind::Ordinary
            | Kind::Wide
            | Kind::Subnormal
            | Kind::Nan
            | Kind::Infinite
            | Kind::Bits => Fill::Bits,
        };
        return literal(random, dtype, fill).bits;
    };
    let sign = (random.bits() & 1) << (dtype.bits() - 1);
    let fraction = random.bits() & ((1 << format.mantissa) - 1);
    let of_exponent = |field: i64| sign | ((field as u64) << format.mantissa) | fraction;
    let is_rare = random.one_in(apart.max(2));
    match kind {
        Kind::Wide => {
            let spread = i64::from(format.bias()) * 9 / 20;
            of_exponent(i64::from(format.bias()) + random.between(-spread, spread))
        }
        Kind::Subnormal if random.one_in(2) => of_exponent(0),
        Kind::Zeros => sign,
        Kind::Nan if is_rare => Literal::from_f64(dtype, f64::NAN).bits | sign,
        Kind::Infinite if is_rare => Literal::from_f64(dtype, f64::INFINITY).bits | sign,
        Kind::Edges if is_rare => literal(random, dtype, Fill::Edges).bits,
        Kind::Bits => random.bits(),
        Kind::Ordinary | Kind::Subnormal | Kind::Nan | Kind::Infinite | Kind::Edges => {
            // 53 bits make a number below 1 exactly.
            let unit = (random.bits() >> 11) as f64 / (1u64 << 53) as f64;
            Literal::from_f64(dtype, 2.0 * unit - 1.0).bits
        }
    }
}

#[cfg(test)]
mod tests {
    use exactile::{F8E4M3, bf16};

    use super::{Kind, numbers};

    #[test]
    fn kinds_are_what_they_are_called() {
        let given = |kind| numbers::<bf16>(kind, 5, (10_000, 50));
        let bits = || {
            given(Kind::Bits)
                .iter()
                .map(|it| it.to_bits())
                .collect::<Vec<u16>>()
        };
        assert!(bits() == bits());
        let count = |kind, is: fn(&bf16) -> bool| given(kind).iter().filter(|it| is(it)).count();
        let is_zero = |it: &bf16| it.to_f32() == 0.0;
        assert_eq!(count(Kind::Zeros, is_zero), 10_000);
        assert!((4000..6000).contains(&count(Kind::Zeros, |it| it.is_sign_negative())));
        assert!((100..300).contains(&count(Kind::Nan, |it| it.is_nan())));
        assert!((100..300).contains(&count(Kind::Infinite, |it| it.is_infinite())));
        let is_subnormal = |it: &bf16| it.to_bits() & 0x7f80 == 0;
        assert!((4000..6000).contains(&count(Kind::Subnormal, is_subnormal)));
        assert_eq!(count(Kind::Wide, |it| !it.is_normal()), 0);
        let exponents: std::collections::BTreeSet<u16> = given(Kind::Wide)
            .iter()
            .map(|it| it.to_bits() >> 7 & 0xff)
            .collect();
        assert_eq!(exponents.len(), 115);
        let small = numbers::<F8E4M3>(Kind::Infinite, 5, (1000, 2));
        // It has no infinity.
        assert!(small.iter().any(|it| it.to_f32() == -448.0));
    }
}
